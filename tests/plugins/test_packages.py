"""A requirement is installed once, into a folder of its own, or not at all."""

import shutil
import sys
import zipfile
from pathlib import Path

import anyio
import pytest

from opencode_core.errors import PluginInstallError
from opencode_core.plugins.loader import from_entry_points
from opencode_core.plugins.packages import PipInstaller
from tests.host.making import ask, clean_imports, opened, tool_plugin

__all__ = ["clean_imports"]

pytestmark = pytest.mark.anyio

WHEEL = "acme_wheel-1.0-py3-none-any.whl"


def inside(folder: Path) -> list[Path]:
    return list(folder.iterdir())


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one wheel, made by hand, which is all that pip may look at."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    info = "acme_wheel-1.0.dist-info"
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr("acme_wheel.py", tool_plugin("from a wheel"))
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: acme-wheel\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/entry_points.txt", "[opencode.plugins]\nacme = acme_wheel\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would have been run; it puts a file where the distribution belongs, or fails."""
    commands: list[list[str]] = []

    async def run(requirement: str, command: list[str]) -> None:
        commands.append(command)
        target = Path(command[command.index("--target") + 1])
        (target / "half.py").write_text("")
        await anyio.lowlevel.checkpoint()
        if "broken" in requirement:
            raise PluginInstallError("It does not work.", plugin=requirement)

    monkeypatch.setattr("opencode_core.plugins.packages._run", run)
    return commands


@pytest.mark.behaviour("PL-10")
async def test_pip_installs_a_wheel_that_a_host_then_loads(tmp_path: Path, wheels: Path) -> None:
    installer = PipInstaller(tmp_path / "packages")

    async with opened(tmp_path / "work", config={"plugin": ["pip:acme-wheel==1.0"]}, installer=installer) as host:
        assert host.plugins.get("acme").version == "1.0"
        assert await ask(host) == "from a wheel"


async def test_what_pip_cannot_install_says_what_pip_said(tmp_path: Path, wheels: Path) -> None:
    installer = PipInstaller(tmp_path / "packages")

    with pytest.raises(PluginInstallError, match=r"'pip:acme-wheel==2\.0' could not be installed: .*acme-wheel==2\.0"):
        await installer.install("acme-wheel==2.0")

    assert inside(installer.folder) == []


@pytest.mark.behaviour("PL-10")
async def test_the_requirement_reaches_the_installer_exactly_and_cannot_be_an_option(
    tmp_path: Path, runs: list[list[str]]
) -> None:
    await PipInstaller(tmp_path).install("--index-url=http://evil")

    assert runs[0][-2:] == ["--", "--index-url=http://evil"]
    assert runs[0][0] == (shutil.which("uv") or sys.executable)


async def test_a_requirement_is_installed_only_once(tmp_path: Path, runs: list[list[str]]) -> None:
    targets = [await PipInstaller(tmp_path).install("acme") for _ in range(2)]

    assert targets[0] == targets[1]
    assert len(runs) == 1


async def test_two_requirements_have_a_folder_each(tmp_path: Path, runs: list[list[str]]) -> None:
    installer = PipInstaller(tmp_path)

    assert await installer.install("acme==1") != await installer.install("acme==2")


async def test_an_install_that_fails_leaves_nothing_and_is_tried_again(tmp_path: Path, runs: list[list[str]]) -> None:
    for _ in range(2):
        with pytest.raises(PluginInstallError):
            await PipInstaller(tmp_path).install("broken")

    assert inside(tmp_path) == []
    assert len(runs) == 2


async def test_an_install_that_is_cancelled_leaves_nothing(tmp_path: Path, runs: list[list[str]]) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await PipInstaller(tmp_path).install("acme")

    assert inside(tmp_path) == []


async def test_two_tasks_that_install_the_same_get_one_whole_copy(tmp_path: Path, runs: list[list[str]]) -> None:
    installer, targets = PipInstaller(tmp_path), []

    async def install() -> None:
        targets.append(await installer.install("acme"))

    async with anyio.create_task_group() as group:
        group.start_soon(install)
        group.start_soon(install)

    assert targets[0] == targets[1]
    assert inside(tmp_path) == [targets[0]]


async def test_an_installer_that_does_not_start_is_a_failed_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opencode_core.plugins.packages._command", lambda *_: [str(tmp_path / "no-such-program")])

    with pytest.raises(PluginInstallError, match="does not start"):
        await PipInstaller(tmp_path / "packages").install("acme")


async def test_a_folder_that_was_installed_into_offers_its_entry_points(tmp_path: Path, wheels: Path) -> None:
    with zipfile.ZipFile(wheels / WHEEL) as wheel:
        wheel.extractall(tmp_path / "target")

    (found,) = from_entry_points([str(tmp_path / "target")])

    assert (found.name, found.distribution) == ("acme", "acme-wheel")
