"""Installs the distribution that a ``pip:`` entry names into a folder of its own. Never touches the environment."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Protocol

import anyio
import attrs

from opencode_core.errors import PluginInstallError
from opencode_core.plugins.candidate import masked


class Installer(Protocol):
    """Makes the distribution of a requirement importable from one folder."""

    async def install(self, requirement: str) -> Path:
        """Returns the folder that holds the distribution.

        Raises:
            PluginInstallError: It could not be installed.
        """
        ...


@attrs.define(eq=False, repr=False)
class PipInstaller:
    """Installs with uv when it is on PATH, else with pip, once for each exact requirement.

    Attributes:
        folder: Where the distributions live, each in a folder of its own.
    """

    folder: Path

    async def install(self, requirement: str) -> Path:
        """Returns the folder that holds the distribution, installing it only when it is not there yet."""
        target = self.folder / hashlib.sha256(requirement.encode()).hexdigest()[:16]
        if target.is_dir():
            return target
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        staging = Path(tempfile.mkdtemp(prefix=f"{target.name}.", suffix=".partial", dir=self.folder))
        try:
            await _run(requirement, _command(requirement, staging))
            _publish(staging, target)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return target


def _command(requirement: str, target: Path) -> list[str]:
    uv = shutil.which("uv")
    by_uv = [str(uv), "pip", "install", "--python", sys.executable]
    by_pip = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    # "--" keeps a requirement that starts with a dash from being read as an option.
    return [*(by_uv if uv else by_pip), "--quiet", "--target", str(target), "--", requirement]


async def _run(requirement: str, command: list[str]) -> None:
    try:
        result = await anyio.run_process(command, check=False)
    except OSError as error:
        raise _failed(requirement, f"'{command[0]}' does not start ({error.strerror})") from error
    if result.returncode != 0:
        said = result.stderr.decode(errors="replace").strip().splitlines()
        raise _failed(requirement, said[-1] if said else "the installer failed")


def _failed(requirement: str, why: str) -> PluginInstallError:
    return PluginInstallError(
        f"The plugin 'pip:{masked(requirement)}' could not be installed: {masked(why)}",
        "Check the requirement, and that the package registry can be reached.",
        plugin=requirement,
    )


def _publish(staging: Path, target: Path) -> None:
    try:
        staging.rename(target)
    except OSError:  # another process was first: its copy is as good
        if not target.is_dir():
            raise
