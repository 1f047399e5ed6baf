"""The wheel of this project, and fresh environments to install it into."""

import shutil
from pathlib import Path

import pytest

from tests.distribution.environment import Environment, build, create_environment

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(".venv", ".git", ".*cache*", ".hypothesis", "__pycache__", "build", "dist")


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This project as it is now, in a place where nobody edits it, with what running it leaves behind."""
    folder = tmp_path_factory.mktemp("checkout") / "project"
    shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
    for leftover in ("opencode_core/__pycache__/host.cpython-311.pyc", "build/lib/left.py", ".venv/bin/left"):
        (folder / leftover).parent.mkdir(parents=True)
        (folder / leftover).write_bytes(b"")
    return folder


@pytest.fixture(scope="session")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this project, built once per process: that takes half a second, less than a lock is worth."""
    return build(checkout, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """A virtual environment with nothing of this project in it."""
    return create_environment(tmp_path / "environment")
