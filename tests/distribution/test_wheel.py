"""What is built is exactly the three packages, typed, licensed and with its entry points, from either source."""

import tarfile
from collections.abc import Iterator
from configparser import ConfigParser
from email import message_from_string
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.distribution.environment import build

PACKAGES = ("opencode_core", "plugin_sdk", "plugins_builtin")
METADATA = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}


@pytest.fixture
def contents(wheel: Path) -> dict[str, bytes]:
    return read(wheel)


def test_the_wheel_holds_every_file_of_the_three_packages_and_nothing_else(
    contents: dict[str, bytes], checkout: Path
) -> None:
    packaged = {name for name in contents if ".dist-info/" not in name}
    assert packaged == set(files_of_the_packages(checkout))


def test_the_wheel_describes_itself_with_nothing_but_metadata_and_the_license(
    contents: dict[str, bytes], checkout: Path
) -> None:
    described = {name.partition(".dist-info/")[2] for name in contents if ".dist-info/" in name}
    assert described == METADATA
    assert contents[metadata_file(contents, "licenses/LICENSE")] == (checkout / "LICENSE").read_bytes()


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_says_that_it_is_typed(contents: dict[str, bytes], package: str) -> None:
    assert f"{package}/py.typed" in contents


def test_the_wheel_declares_the_command_and_every_builtin_plugin(contents: dict[str, bytes], checkout: Path) -> None:
    declared = ConfigParser()
    declared.read_string(contents[metadata_file(contents, "entry_points.txt")].decode())
    builtins = {f"plugins_builtin.{path.stem}" for path in builtin_plugins(checkout)}
    assert dict(declared["console_scripts"]) == {"opencode-core": "opencode_core.cli:main"}
    assert set(declared["opencode.plugins"].values()) == builtins


def test_the_wheel_says_what_it_needs(contents: dict[str, bytes]) -> None:
    metadata = read_metadata(contents)
    assert metadata["Name"] == "opencode-core"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert set(metadata.get_all("Provides-Extra", [])) == {"dev", "mcp", "postgres", "server"}


def test_the_source_distribution_builds_the_same_wheel(
    contents: dict[str, bytes], checkout: Path, tmp_path: Path
) -> None:
    sdist = build(checkout, "sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source")  # an archive that this test built itself
    [source] = (tmp_path / "source").iterdir()
    assert read(build(source, "wheel", tmp_path / "wheel")) == contents


def read(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def read_metadata(contents: dict[str, bytes]) -> Message:
    return message_from_string(contents[metadata_file(contents, "METADATA")].decode())


def metadata_file(contents: dict[str, bytes], name: str) -> str:
    [found] = [path for path in contents if path.endswith(f".dist-info/{name}")]
    return found


def files_of_the_packages(checkout: Path) -> Iterator[str]:
    for package in PACKAGES:
        for path in (checkout / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(checkout).as_posix()


def builtin_plugins(checkout: Path) -> list[Path]:
    """Return the modules and folders of ``plugins_builtin``, each of which is one plugin."""
    folder = checkout / "plugins_builtin"
    modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    return [*modules, *(path.parent for path in folder.glob("*/__init__.py"))]
