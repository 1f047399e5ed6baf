"""A stranger's distribution, installed with pip beside the wheel, is a plugin like any other."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.distribution.environment import Environment
from tests.distribution.plugin_project import write_plugin_project

PROBE = Path(__file__).with_name("probe.py")
GHOST = 'ghost = "acme_ghost"\n'

pytestmark = pytest.mark.timeout(85)  # several processes each, on a machine that may be busy


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_plugin_project(tmp_path / "project")


def test_an_installed_plugin_contributes_until_it_is_uninstalled(
    environment: Environment, wheel: Path, project: Path
) -> None:
    environment.install(wheel, project)
    seen = look(environment)
    assert Path(seen["kernel"]).is_relative_to(environment.folder)
    assert seen["plugins"]["acme"] == {
        "state": "active",
        "version": "1.2.3",
        "builtin": False,
        "generation": 1,
        "problems": [],
    }
    assert "People here say hello." in seen["baseline"]
    assert seen["tool"] == "hello"
    assert listed(environment)["acme"] == ("active", "1.2.3")

    environment.uninstall("acme-plugin")
    seen = look(environment)
    assert "acme" not in seen["plugins"]
    assert "acme" not in listed(environment)
    assert "People here" not in seen["baseline"]
    assert seen["tool"] is None


def test_the_wheel_alone_brings_each_builtin_once_and_no_problem(environment: Environment, wheel: Path) -> None:
    environment.install(wheel)
    seen = look(environment)
    told = ("date", "environment", "instructions", "references", "skills")
    kept = ("storage_jsonfiles", "storage_memory", "storage_postgres", "storage_sqlite")
    assert {name: (each["state"], each["builtin"]) for name, each in seen["plugins"].items()} == dict.fromkeys(
        (*told, *kept), ("active", True)
    )
    assert all(each["problems"] == [] for each in seen["plugins"].values())
    assert wheel.name.split("-")[1] in environment.run("opencode-core", "--version", cwd=environment.folder)


def test_an_entry_point_without_its_module_is_quarantined_and_the_others_work(
    environment: Environment, wheel: Path, tmp_path: Path
) -> None:
    environment.install(wheel, write_plugin_project(tmp_path / "project", entry_points=GHOST))
    seen = look(environment)
    assert seen["plugins"]["ghost"]["state"] == "failed"
    assert seen["plugins"]["ghost"]["problems"] == [
        "The plugin 'ghost' is declared by the distribution 'acme-plugin' as 'acme_ghost', which is not installed."
    ]
    assert {name for name, each in seen["plugins"].items() if each["state"] == "active"} >= {"acme", "date"}
    assert seen["tool"] == "hello"


def look(environment: Environment) -> dict[str, Any]:
    [seen] = json.loads(environment.run("python", PROBE, "look", cwd=environment.folder))
    assert isinstance(seen, dict)
    return seen


def listed(environment: Environment) -> dict[str, tuple[str, str]]:
    """Return the state and version of each plugin, as the command line lists them."""
    printed = environment.run("opencode-core", "plugins", "list", "--json", cwd=environment.folder)
    return {each["name"]: (each["state"], each["version"]) for each in json.loads(printed)["plugins"]}
