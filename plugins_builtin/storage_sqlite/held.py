"""Knows which files this process has open in SQLite, so that nobody opens one of them beside it. Opens none itself.

POSIX gives up all locks that a process has on a file as soon as it closes any descriptor of it. Another process would
then take itself for the last, and remove the journal into which this one still writes.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

_File: TypeAlias = tuple[int, int]

# The locks belong to the process, whatever stores are in it: so this does too.
_held: Counter[_File] = Counter()
_lock = threading.Lock()


def hold(path: Path) -> Callable[[], None]:
    """Notes that a file is about to be opened in SQLite, and returns what to call when it was closed again.

    Raises:
        OSError: It cannot be reached.
    """
    file = _identity(path)
    with _lock:
        _held[file] += 1

    def release() -> None:
        with _lock:
            _held[file] -= 1
            if not _held[file]:
                del _held[file]

    return release


@contextmanager
def kept_closed(path: Path) -> Iterator[bool]:
    """Yields whether a file may be opened and closed inside the block, since nothing in this process holds it.

    Raises:
        OSError: It cannot be reached.
    """
    file = _identity(path)
    with _lock:
        yield file not in _held


def _identity(path: Path) -> _File:
    found = os.stat(path)
    return found.st_dev, found.st_ino
