"""Asks the disk to keep what was written. Writes nothing."""

from __future__ import annotations

import ctypes
import fcntl
import os
from pathlib import Path

_FULL = getattr(fcntl, "F_FULLFSYNC", None)


def sync_content(descriptor: int) -> None:
    """Returns when a file's content and length are on the disk.

    Raises:
        OSError: They are not.
    """
    if _FULL is not None:  # elsewhere an fsync reaches only the disk's own cache
        fcntl.fcntl(descriptor, _FULL)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def sync_all_around(descriptor: int) -> bool:
    """Whether everything on the disk that a file is on could be made safe with one call.

    Raises:
        OSError: Something could not be written.
    """
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "syncfs"):
        return False
    if library.syncfs(descriptor) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return True


def sync_folder(path: Path) -> None:
    """Returns when the names in a folder are on the disk.

    Raises:
        OSError: They are not.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def boot() -> bytes:
    """Returns a number of 16 bytes that is another one each time the machine starts; zeros when that is not known."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return bytes.fromhex(file.read().strip().replace("-", ""))
    except (OSError, ValueError):
        return UNKNOWN_BOOT


UNKNOWN_BOOT = bytes(16)
