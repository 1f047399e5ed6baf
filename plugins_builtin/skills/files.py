"""Reads small files of people one may not trust: never waits for one, never reads one that is no file or too long."""

from __future__ import annotations

import errno
import os
import stat
from typing import TypeAlias

LARGEST = 1_048_576

Signature: TypeAlias = tuple[int, int, int, int, int]
"""What changes when a file does."""

SETTLED = 2.0
"""How many seconds after its last change a file may still change without a new signature, on the coarsest of disks."""


class ReplacedError(OSError):
    """A file that is not the one that was checked; one that was saved meanwhile is the right one a moment later."""


class Unreadable(Exception):
    """A file that is not read; its text says why, to be read after "it"."""


def read_text(path: str, checked: os.stat_result) -> tuple[str, Signature]:
    """Returns what a file holds, and the signature that it had when it was opened.

    Args:
        path: The file, every link followed.
        checked: What `check_file` said of it.

    Raises:
        FileNotFoundError: It is not there.
        Unreadable: It is a link, no regular file, too long, not UTF-8, or may not be read.
        ReplacedError: It is another file than was checked, or a folder above it has become a link.
        OSError: It cannot be read now, which may pass.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        raise Unreadable(lasting(error)) from None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        _refuse_odd(status)
        _refuse_another(path, status, checked)
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:  # it grew meanwhile
        raise Unreadable(_TOO_LONG)
    try:
        return content.decode(), signature(status)
    except UnicodeDecodeError:
        raise Unreadable("is not UTF-8") from None


def check_file(path: str) -> os.stat_result:
    """Returns what the system says of a file, without opening it.

    Raises:
        FileNotFoundError: It is not there.
        Unreadable: It is no regular file, too long, or may not be looked at.
        OSError: It cannot be looked at now, which may pass.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        raise Unreadable(lasting(error)) from None
    _refuse_odd(status)
    return status


def lasting(error: OSError) -> str:
    """Returns the words for an error that stays until somebody does something about it, to be read after "it".

    Raises:
        OSError: It is none of those.
    """
    if error.errno not in _LASTING:
        raise error
    return f"cannot be read ({error.strerror})"


def signature(status: os.stat_result) -> Signature:
    """Returns what changes when the file does."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def is_settled(found: Signature, now: float) -> bool:
    """Whether a file that has this signature again is certain to be the same one.

    Args:
        found: The signature.
        now: When it was taken, in seconds.
    """
    return now - max(found[3], found[4]) / 1e9 > SETTLED


def _refuse_odd(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("is not a regular file")
    if status.st_size > LARGEST:
        raise Unreadable(_TOO_LONG)


def _refuse_another(path: str, opened: os.stat_result, checked: os.stat_result) -> None:
    # Where it leads was checked before it was opened, and whoever owns the project may be quick.
    is_in_place = os.path.realpath(path) == path and os.path.samestat(opened, os.stat(path))
    if not is_in_place or not os.path.samestat(opened, checked):
        raise ReplacedError(errno.ESTALE, "A skill file was replaced while it was read")


_TOO_LONG = "is longer than 1 MiB"
# No entry for a file that is not there: whoever looks for one knows best what that means.
_LASTING = {errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.ENOTDIR}
# Not blocking, because opening a pipe would otherwise wait for somebody who writes into it.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
