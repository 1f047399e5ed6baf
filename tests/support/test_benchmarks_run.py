"""The benchmarks run and print every row. Nothing here says how long anything may take."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ROWS = {
    "start: time over bare Python": [
        "bare Python, itself",
        "import opencode_core",
        "import plugin_sdk",
        "import opencode_core.host",
        "opencode-core --version",
    ],
    "open a host": [
        "0 objects",
        "0 objects and entry points",
        "3 objects",
        "3 objects and entry points",
        "10 objects",
        "10 objects and entry points",
        "3 files",
        "3 files and entry points",
        "3 files of a trusted project",
        "close 3 objects",
    ],
    "reload": [
        "the same file: read, compile, exec",
        "a file, no other plugin",
        "a file, 3 other plugins",
        "a file of a trusted project, 2 beside it",
        "an installed plugin (date)",
    ],
    "read the registry with 3 plugins": [
        "iterate a plain tuple of the 6 values",
        "warm: read, sources, tools",
        "warm: read, sources, tools, compose",
        "warm: materialize the tools of a turn",
        "after a change: read, sources, tools",
        "after a change: read, sources, tools, compose",
        "the change itself: a tool comes and goes",
    ],
    "memory": [
        "one open Location, no plugins",
        "one open Location, 3 plugins",
        "one session scope that registers nothing",
        "one session scope with a tool of its own, 3 plugins",
        "growth over 4 reloads",
        "growth per reload",
    ],
}

STORAGE_SECTIONS = [
    "durable appends to SQLite, each",
    "durable appends to other backends, each",
    "reading the events of a session",
    "listing sessions",
    "bytes and memory",
]
CONTEXT_SECTIONS = [
    "observing and reconciling unchanged sources",
    "a whole boundary with nothing to do",
    "instructions far above the working directory",
]
STORAGE_GOALS = [
    "sqlite, 1 session",
    "sqlite, 10 sessions",
    "sqlite, 50 sessions",
    "sqlite, 1 session, no projection",
    "history, decoded to values",
    "a page of 10 out of 120",
    "a page of 50 out of 120",
]


def test_the_kernel_benchmark_prints_and_saves_every_row(tmp_path: Path) -> None:
    saved = tmp_path / "results.json"
    ran = run("kernel", "--quick", "--plugins", "3", "--json", str(saved))
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(saved.read_text(encoding="utf-8"))["benchmarks"]["kernel"]
    printed = ran.stdout.splitlines()
    for section, names in ROWS.items():
        of_section = [row["name"] for row in rows if row["section"] == section]
        assert [name for name in of_section if not name.startswith("resident")] == names
        assert any(line.startswith(f"-- {section} --") for line in printed)
    for row in rows:
        assert any(line.startswith(row["name"]) for line in printed), row["name"]
        assert row["least"] is not None or row["note"], row["name"]


def test_the_storage_benchmark_prints_and_saves_every_section(tmp_path: Path) -> None:
    saved = tmp_path / "results.json"
    ran = run("storage", "--quick", "--json", str(saved))
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(saved.read_text(encoding="utf-8"))["benchmarks"]["storage"]
    assert list(dict.fromkeys(row["section"] for row in rows)) == STORAGE_SECTIONS
    judged = [row["name"] for row in rows if row["ratio_target"] is not None]
    assert judged == STORAGE_GOALS
    for row in rows:
        assert any(line.startswith(row["name"]) for line in ran.stdout.splitlines()), row["name"]
        assert row["least"] is not None or row["note"], row["name"]


def test_the_context_benchmark_prints_and_saves_every_section(tmp_path: Path) -> None:
    saved = tmp_path / "results.json"
    ran = run("context", "--quick", "--json", str(saved))
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(saved.read_text(encoding="utf-8"))["benchmarks"]["context"]
    assert list(dict.fromkeys(row["section"] for row in rows)) == CONTEXT_SECTIONS
    assert [row["name"] for row in rows if row["verdict"]] == ["50 sources", "each of 500"]
    for row in rows:
        assert any(line.startswith(row["name"]) for line in ran.stdout.splitlines()), row["name"]
        assert row["least"] is not None, row["name"]


@pytest.mark.parametrize("arguments", [("nothing",), ("kernel", "--slow")])
def test_a_benchmark_or_an_option_that_does_not_exist_is_an_error(arguments: tuple[str, ...]) -> None:
    ran = run(*arguments)
    assert ran.returncode == 2
    assert arguments[-1] in ran.stderr


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
