"""The packages stay light to import, and the repository names neither a machine nor a package registry."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

HEAVY = {
    "click",
    "dataset",
    "httpx",
    "httpx2",
    "importlib_metadata",
    "psycopg",
    "rich",
    "sqlalchemy",
    "starlette",
    "watchfiles",
}

PRIVATE_WORDS = [
    "/work/",
    "crates.io",
    "npmjs.org",
    "pypi.org",
    "pythonhosted.org",
    "pypi.python.org",
]


@pytest.mark.parametrize("package", ["opencode_core", "plugin_sdk"])
def test_importing_a_package_imports_nothing_heavy(package: str) -> None:
    assert modules_after(f"import {package}") & HEAVY == set()


def test_the_measure_of_imports_sees_a_heavy_one() -> None:
    assert "click" in modules_after("import click")


def test_the_repository_names_no_machine_path_and_no_registry() -> None:
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in repository_files()}
    named = [
        f"{path.relative_to(ROOT)}: {word}" for path, text in texts.items() for word in PRIVATE_WORDS if word in text
    ]
    assert named == []


def modules_after(statement: str) -> set[str]:
    """Return the top-level modules a fresh interpreter holds after the statement."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def repository_files() -> list[Path]:
    """Return the files that are tracked or about to be, without this one, which must name the words."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        pytest.skip("not a git checkout: there is no list of the repository's files")
    paths = [ROOT / name for name in done.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and path != Path(__file__)]
