"""Virtual environments that a test fills with pip, offline. Never touches the environment that runs the tests."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import attrs

OURS = ("opencode_core", "_editable_impl_opencode_core", "__editable__")
OFFLINE = ("--no-index", "--no-deps", "--no-build-isolation", "--no-compile", "--quiet")


@attrs.frozen
class Environment:
    """A fresh virtual environment: third-party packages can be imported, nothing of this project can."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def install(self, *arguments: str | Path) -> None:
        """Installs wheels or folders with pip, without a network; ``-e`` before a folder installs it for editing."""
        self._pip("install", *OFFLINE, *arguments)

    def uninstall(self, distribution: str) -> None:
        """Uninstalls a distribution with pip."""
        self._pip("uninstall", "--quiet", "--yes", distribution)

    def run(self, *arguments: str | Path, cwd: Path, status: int = 0) -> str:
        """Runs a command, with this environment's programs first on PATH, and returns what it printed.

        Raises:
            AssertionError: It ended with another status.
        """
        path = os.pathsep.join([str(self.python.parent), os.environ.get("PATH", os.defpath)])
        return _run(arguments, cwd=cwd, status=status, environ=_environ(PATH=path, VIRTUAL_ENV=str(self.folder)))

    def _pip(self, *arguments: str | Path) -> None:
        command = (sys.executable, "-m", "pip", "--python", str(self.python), *arguments)
        _run(command, cwd=self.folder, status=0, environ=_environ(PIP_CONFIG_FILE=os.devnull))


def create_environment(folder: Path) -> Environment:
    """Makes an environment in a folder that does not exist yet."""
    venv.create(folder, symlinks=True)
    site_packages = next(folder.glob("lib/python*/site-packages"))
    (site_packages / "third_party.pth").write_text(f"{_third_party(folder / 'third_party')}\n", encoding="utf-8")
    return Environment(folder)


def build(root: Path, target: str, directory: Path) -> Path:
    """Builds the ``wheel`` or the ``sdist`` of a project, and returns it."""
    command = (sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(directory))
    _run(command, cwd=root, status=0, environ=_environ())
    [built] = directory.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


def _third_party(folder: Path) -> Path:
    """Links what is installed here into one folder, without this project: pip would see it as installed already."""
    folder.mkdir()
    for site_packages in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(site_packages).iterdir():
            if entry.suffix != ".pth" and not entry.name.startswith(OURS):
                (folder / entry.name).symlink_to(entry)
    return folder


def _environ(**extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON", "VIRTUAL_ENV"))}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **extra}


def _run(arguments: tuple[str | Path, ...], *, cwd: Path, status: int, environ: dict[str, str]) -> str:
    command = [str(argument) for argument in arguments]
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=80)
    assert done.returncode == status, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
