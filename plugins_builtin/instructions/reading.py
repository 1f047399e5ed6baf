"""Reads instruction files: regular ones, whole, of bounded size, in UTF-8. Waits for nothing that is no such file.

What was read is kept, and read again only when the file is another one by what the system says of it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import TypeAlias

import attrs

from plugin_sdk.text import shown
from plugins_builtin.instructions.problems import (
    MISSING,
    PassingError,
    Problem,
    VanishedError,
    lasting,
    left_out,
    not_a_file,
    passing,
)
from plugins_builtin.instructions.scanning import Found, names_below

_READ = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_NOFOLLOW", 0)  # links were followed before it was checked where they lead
    | getattr(os, "O_NONBLOCK", 0)  # a named pipe that took the place of the file must not hold anybody up
)
_PIECE = 262_144
_SETTLED = 2_000_000_000
"""After how many nanoseconds a file that is changed again surely gets another time, on any file system."""


@attrs.frozen(kw_only=True)
class Text:
    """What a file says, and where it really is."""

    resolved: str
    text: str


@attrs.frozen
class _Kept:
    """What came of a file that was ``signature`` then, and had to be inside ``inside``.

    No signature, if the file changed so shortly before that another change might not show in it.
    """

    signature: tuple[int, ...] | None
    inside: str | None
    outcome: Text | Problem


Kept: TypeAlias = dict[str, _Kept]


@attrs.define(eq=False, kw_only=True)
class Reader:
    """Reads the files of one observation after the other.

    Attributes:
        limit: How many bytes a file may have.
        open_file: Opens a file.
        read_bytes: Reads from it.
        machine_ns: The machine's clock, by which files are dated, whatever time it is for the host.
    """

    limit: int
    open_file: Callable[[str, int], int] = os.open
    read_bytes: Callable[[int, int], bytes] = os.read
    machine_ns: Callable[[], int] = time.time_ns
    _kept: Kept = attrs.field(init=False, factory=dict)

    def begin(self) -> Reading:
        """Begins an observation."""
        return Reading(self, self._kept)

    def keep(self, kept: Kept) -> None:
        """Ends an observation: what it did not need is forgotten."""
        self._kept = kept

    def read(self, found: Found, inside: str | None) -> _Kept | Problem:
        """Reads a file anew; what can be kept comes with what the file was."""
        path = found.path
        try:
            for is_again in (False, True):
                is_resolved = found.is_canonical and not is_again and not os.path.islink(path)
                resolved = path if is_resolved else os.path.realpath(path, strict=True)
                if inside is not None and names_below(inside, resolved) is None:
                    return _outside(path)
                checked = os.lstat(resolved) if is_again else found.status
                kept = self._read_once(path, resolved, inside, checked)
                if kept is not None:
                    return kept
        except OSError as error:
            return _problem(path, error)
        raise PassingError(f"'{shown(path)}' kept changing while it was read")

    def _read_once(
        self, path: str, resolved: str, inside: str | None, checked: os.stat_result
    ) -> _Kept | Problem | None:
        """Reads it; None when it changed meanwhile, so that what was read may be half of each, or another file."""
        descriptor = self.open_file(resolved, _READ)
        try:
            before = os.fstat(descriptor)
            if refusal := self._refusal(path, before, 0):
                return refusal
            if inside is not None and not _is_same(before, checked, resolved):
                return None
            content = self._content(descriptor)
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if refusal := self._refusal(path, after, len(content)):
            return refusal
        # Files that the system makes up say that they are empty, and are not.
        if _dated(before) != _dated(after) or len(content) != after.st_size > 0:
            return None
        outcome = _decoded(path, resolved, content)
        is_settled = self.machine_ns() - max(after.st_mtime_ns, after.st_ctime_ns) > _SETTLED
        return _Kept(signature(after) if is_settled else None, inside, outcome)

    def _refusal(self, path: str, status: os.stat_result, size: int) -> Problem | None:
        if not stat.S_ISREG(status.st_mode):
            return not_a_file(path, status.st_mode)
        if max(size, status.st_size) > self.limit:
            why, remedy = f"it is longer than {self.limit} bytes", "Make it shorter, or raise the option 'file_limit'."
            return left_out(path, why, remedy)
        return None

    def _content(self, descriptor: int) -> bytes:
        content = bytearray()
        while len(content) <= self.limit:
            piece = self.read_bytes(descriptor, min(_PIECE, self.limit + 1 - len(content)))
            if not piece:
                break
            content += piece
        return bytes(content)


@attrs.define(eq=False)
class Reading:
    """One observation."""

    _reader: Reader
    _before: Kept
    _kept: Kept = attrs.field(init=False, factory=dict)

    def read(self, found: Found, *, inside: str | None = None) -> Text | Problem:
        """Returns what a file says, or why it is left out.

        Args:
            found: The file.
            inside: The folder, canonical, that it may not leave, links followed; None for no such bound.

        Raises:
            VanishedError: It is gone.
            PassingError: It cannot be read now.
        """
        if not stat.S_ISREG(found.status.st_mode):
            return not_a_file(found.path, found.status.st_mode)
        known = self._before.get(found.path)
        if known is None or known.inside != inside or known.signature != signature(found.status):
            read = self._reader.read(found, inside)
            if isinstance(read, Problem):
                return read
            known = read
        self._kept[found.path] = known
        return known.outcome

    def end(self) -> None:
        """Lets the next observation have what this one read."""
        self._reader.keep(self._kept)


def signature(status: os.stat_result) -> tuple[int, ...]:
    """Returns what tells a file, as it is, from any other."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def as_text(content: bytes) -> str | None:
    """Returns content as text, without a byte order mark; None when it is not UTF-8, or not text at all."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _problem(path: str, error: OSError) -> Problem:
    if error.errno in MISSING:
        raise VanishedError(f"'{shown(path)}' vanished before it was read") from None
    problem = lasting(path, error)
    if problem is None:
        raise passing(path, error) from None
    return problem


def _is_same(opened: os.stat_result, checked: os.stat_result, resolved: str) -> bool:
    """Whether what was opened is what was found to be in the project: a folder above it may have become a link."""
    return os.path.samestat(opened, checked) and os.path.realpath(resolved) == resolved


def _outside(path: str) -> Problem:
    return left_out(path, "it leads out of the project", "Copy it into the project, or configure its absolute path.")


def _dated(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _decoded(path: str, resolved: str, content: bytes) -> Text | Problem:
    text = as_text(content)
    if text is None:
        return left_out(path, "it is not UTF-8 text", "Save it as UTF-8.")
    return Text(resolved=resolved, text=text)
