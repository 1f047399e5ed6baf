"""What can be wrong with instructions: what a person has to mend, and what passes by itself. Tells nobody."""

from __future__ import annotations

import errno
import stat
from typing import Final

import attrs

from plugin_sdk.text import shown

MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
"""What the system says when nothing is there."""

_LASTING: Final = {
    errno.EACCES: ("it may not be read", "Check its permissions."),
    errno.EPERM: ("it may not be read", "Check its permissions."),
    errno.ELOOP: ("its link leads round in a circle", "Mend the link."),
    errno.ENAMETOOLONG: ("its path is too long", "Move it further up."),
    errno.ENXIO: ("it is not a file", "Make it a text file, or remove it."),
    errno.EISDIR: ("it is a folder", "Make it a text file, or remove it."),
    errno.EOPNOTSUPP: ("it is not a file", "Make it a text file, or remove it."),
    errno.EINVAL: ("the system refuses its name or its kind", "Rename it, or make it a text file."),
    errno.EILSEQ: ("the system refuses its name", "Rename it."),
}
_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@attrs.frozen(kw_only=True)
class Problem:
    """Something that a person has to mend; the rest goes on without it."""

    text: str
    remedy: str


class PassingError(Exception):
    """Instructions cannot be observed just now; what was observed before stays in effect."""


class VanishedError(PassingError):
    """A file that had been found was gone when it was opened."""


def left_out(path: str, why: str, remedy: str) -> Problem:
    """Says that a file is left out."""
    return Problem(text=f"The instructions in '{shown(path)}' are left out: {why}.", remedy=remedy)


def not_a_file(path: str, mode: int) -> Problem:
    """Says that something is no file to read."""
    kind = _KINDS.get(stat.S_IFMT(mode), "not a file")
    return left_out(path, f"it is {kind}", "Make it a text file, or remove it.")


def lasting(path: str, error: OSError) -> Problem | None:
    """Returns what a person has to mend about an error of the system; None when it may pass.

    Only what is known to last does: a disk that fails has more words for it than anybody can list.
    """
    known = _LASTING.get(error.errno or 0)
    return None if known is None else left_out(path, *known)


def passing(path: str, error: OSError) -> PassingError:
    """Returns an error of the system as one that may pass."""
    return PassingError(f"'{shown(path)}' cannot be observed now ({_words(error)})")


def _words(error: OSError) -> str:
    return error.strerror or type(error).__name__
