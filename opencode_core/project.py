"""Finds the project around a directory. Reads nothing inside it."""

from __future__ import annotations

import os
from pathlib import Path

from opencode_core.errors import ConfigError
from opencode_core.model.location import Location

__all__ = ["find_location"]


def find_location(directory: Path | str) -> Location:
    """Finds the project that a directory belongs to.

    The root is the nearest ancestor, or the directory itself, that holds ``.git``: a folder, or the file that
    a git worktree has. Without one the directory is its own project.

    Args:
        directory: Where sessions will run; links in it are followed.

    Returns:
        The Location, with canonical paths.

    Raises:
        ConfigError: It does not exist, cannot be reached, or is not a directory.
    """
    canonical = _canonical(directory)
    for folder in (canonical, *canonical.parents):
        if os.path.exists(folder / ".git"):
            return Location(directory=canonical, root=folder, is_git=True)
    return Location(directory=canonical, root=canonical, is_git=False)


def _canonical(directory: Path | str) -> Path:
    try:
        canonical = Path(os.path.realpath(directory, strict=True))
    except FileNotFoundError as exc:
        raise ConfigError(f"The directory '{directory}' does not exist.", "Create it, or name another one.") from exc
    except (OSError, ValueError) as exc:
        raise ConfigError(
            f"The directory '{directory}' cannot be reached ({_reason(exc)}).",
            "Check the path and its permissions, or name another one.",
        ) from exc
    if not canonical.is_dir():
        raise ConfigError(f"'{directory}' is not a directory.", "Name one that is.")
    return canonical


def _reason(error: OSError | ValueError) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
