"""Every example is installed into an environment of its own, and does what its README says."""

import ast
import json
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.distribution.environment import Environment
from tests.examples.readme import Command, read_blocks, read_commands

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/pyproject.toml"))
DISTRIBUTIONS = [name for name in NAMES if "entry-points" in (EXAMPLES / name / "pyproject.toml").read_text()]
CONFIGURED = [name for name in NAMES if read_blocks(EXAMPLES / name / "README.md", "json")]
INSTALL = "python -m pip install "
BUILT = shutil.ignore_patterns("__pycache__", ".*", "build", "dist", "demo")

pytestmark = pytest.mark.timeout(85)  # several processes each, on a machine that may be busy


@pytest.mark.parametrize("name", NAMES)
def test_the_commands_of_a_readme_do_what_it_says(
    name: str, environment: Environment, wheel: Path, tmp_path: Path
) -> None:
    folder = copy_example(name, tmp_path)
    first, *others = read_commands(folder / "README.md")
    install(first, environment, wheel, folder)
    for command in others:
        printed = environment.run(*shlex.split(command.line), cwd=folder)
        assert command.is_kept_by(printed), f"$ {command.line}\n{printed}"
    assert "python -m pytest" in [command.line for command in others]


@pytest.mark.parametrize("name", CONFIGURED)
def test_the_configuration_of_a_readme_is_accepted(
    name: str, environment: Environment, wheel: Path, tmp_path: Path
) -> None:
    environment.install(wheel, copy_example(name, tmp_path))
    [settings] = read_blocks(EXAMPLES / name / "README.md", "json")
    configure(settings)
    seen = list_plugins(environment, tmp_path)
    blocked = json.loads(settings).get("plugin_block", [])
    assert [each["name"] for each in seen if each["state"] != "active"] == blocked
    assert [each["diagnostics"] for each in seen if each["diagnostics"]] == []


def test_all_examples_together_contribute_until_they_are_uninstalled(
    environment: Environment, wheel: Path, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    environment.install(wheel, *(copy_example(name, tmp_path) for name in DISTRIBUTIONS))
    assert contributions(environment, tmp_path) == {
        "acme-models": ["hook: opencode_catalog"],
        "acme-release": ["skill: acme-release"],
        "acme-review": ["agent: acme-reviewer", "command: acme-review"],
        "acme-rules": ["context source: acme/rules"],
        "git-branch": ["context source: git-branch/head"],
        "word-count": ["tool: word_count"],
    }
    environment.uninstall("acme-opencode")
    assert set(contributions(environment, tmp_path)) == {"git-branch", "word-count"}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_plugin_imports_nothing_of_this_project_but_the_sdk(name: str) -> None:
    assert {
        module for module in imported_by(EXAMPLES / name) if module.startswith(("opencode_core", "plugins_"))
    } == set()


def test_every_example_is_in_the_list() -> None:
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"]({name}/README.md)" not in listed] == []


def copy_example(name: str, folder: Path) -> Path:
    """Copy an example as a stranger would get it, so that nothing around it helps and nothing is left in it."""
    return Path(shutil.copytree(EXAMPLES / name, folder / name, ignore=BUILT))


def install(command: Command, environment: Environment, wheel: Path, folder: Path) -> None:
    """Do what the first command of a README says, without a network, with the wheel for what is not published."""
    assert command.line.startswith(INSTALL)
    wanted = shlex.split(command.line.removeprefix(INSTALL))
    environment.install(wheel, *(f"{folder}{each[1:]}" if each.startswith(".") else each for each in wanted))


def configure(settings: str) -> None:
    """Make the settings those of the person who runs the test."""
    folder = Path(os.environ["OPENCODE_CONFIG_DIR"])
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(settings, encoding="utf-8")


def list_plugins(environment: Environment, folder: Path) -> list[dict[str, Any]]:
    listed = json.loads(environment.run("opencode-core", "plugins", "list", "--json", cwd=folder))
    return [each for each in listed["plugins"] if not each["builtin"]]


def contributions(environment: Environment, folder: Path) -> dict[str, list[str]]:
    return {each["name"]: each["contributions"] for each in list_plugins(environment, folder)}


def imported_by(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                yield node.module or ""
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
