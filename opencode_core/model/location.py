"""Where a session runs. Looks at no disk."""

from __future__ import annotations

from pathlib import Path

import attrs


@attrs.frozen(kw_only=True)
class Location:
    """Where a session runs: a directory, and the project around it.

    Attributes:
        directory: The working directory, canonical.
        root: The project's root: the directory itself or one of its ancestors, canonical.
        is_git: Whether the root is the top of a git working tree.
    """

    directory: Path
    root: Path
    is_git: bool

    @property
    def folders(self) -> tuple[Path, ...]:
        """Every folder that may hold configuration: from the root down to the directory, never above the root."""
        folders = (*reversed(self.directory.parents), self.directory)
        return tuple(folder for folder in folders if folder.is_relative_to(self.root))
