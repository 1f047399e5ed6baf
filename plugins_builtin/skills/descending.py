"""Finds which folders of a project hold configuration, by descending once. Reads none of it.

Looking up each path on its own would cost the square of the depth.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from plugins_builtin.skills.files import lasting

CONFIGURATION = ".opencode"

_ENTER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd


def holding_configuration(folders: Iterable[str]) -> set[str]:
    """Returns those folders that hold configuration. Blocks.

    Args:
        folders: Canonical paths, each inside the one before it.

    Raises:
        OSError: The system failed in a way that passes.
    """
    if not _BY_DESCRIPTOR:
        return {folder for folder in folders if os.path.lexists(os.path.join(folder, CONFIGURATION))}
    found: set[str] = set()
    above: int | None = None
    try:
        for folder in folders:
            inner = _entered(folder, above)
            if inner is None:  # nor can those inside it be entered
                break
            if above is not None:
                os.close(above)
            above = inner
            with suppress(FileNotFoundError):
                os.stat(CONFIGURATION, dir_fd=above, follow_symlinks=False)
                found.add(folder)
    finally:
        if above is not None:
            os.close(above)
    return found


def _entered(folder: str, above: int | None) -> int | None:
    try:
        return os.open(folder if above is None else folder.rpartition("/")[2], _ENTER, dir_fd=above)
    except FileNotFoundError:
        return None
    except OSError as error:
        lasting(error)
        return None
