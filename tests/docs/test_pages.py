"""Every block of code on a page runs, in the order of the page, in an empty folder; commands print what is shown.

A block whose first line is a comment with only a file name is written to that file. Python without one is run, and an
`output` block after it is what it printed. In a `console` block, `…` stands for anything, and alone on a line for any
lines. A block after `<!-- not run: why -->` is left alone. Generated pages are tested with the code they come from.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import attrs
import pytest

from opencode_core import jsonc
from tests.docs.check_docs import Fence, Page, read_page

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = ("docs/behaviours.md", "docs/benchmarks.md", "docs/reference/")
PAGES = [
    path
    for path in ("README.md", *sorted(each.relative_to(ROOT).as_posix() for each in (ROOT / "docs").rglob("*.md")))
    if not path.startswith(NOT_OURS) and read_page(ROOT, Path(path)).fences
]

_FILE = re.compile(r"^(?:#|//) (?P<name>[\w./-]+\.\w+)$")
_COMMAND = re.compile(r"^\$ (?P<command>.+)$")


@pytest.mark.parametrize("path", PAGES)
def test_what_a_page_shows_is_what_happens(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "project"
    work.mkdir()
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(work)
    page = read_page(ROOT, Path(path))
    reader = Reader(work=work)
    for fence in page.fences:
        if not is_left_alone(page, fence):
            reader.follow(fence, f"{path}:{fence.number}")


def test_the_readme_shows_what_make_run_prints() -> None:
    page = read_page(ROOT, Path("README.md"))
    shown = next(fence for fence in page.fences if fence.language == "console")
    (run, printed), (test, _) = sessions(shown.body)
    printed = printed.partition("(once, until pyproject.toml changes)\n")[2]
    assert (run, test) == ("make run", "make test")
    assert "/opencode-core tour" in (ROOT / "Makefile").read_text(encoding="utf-8")
    command = [str(Path(sys.executable).with_name("opencode-core")), "tour"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    assert matches(printed, done.stdout), done.stdout


@attrs.define
class Reader:
    """Somebody who does what a page says, block by block."""

    work: Path
    names: dict[str, Any] = attrs.field(factory=lambda: {"__name__": "__main__"})
    printed: str = ""

    def follow(self, fence: Fence, place: str) -> None:
        if named := _FILE.match(fence.body.split("\n", 1)[0]):
            self.write(named["name"], fence.body)
        match fence.language:
            case "python" if not named:
                self.run_python(fence.body, place)
            case "output":
                assert matches(fence.body, self.printed), f"{place} shows other output than:\n{self.printed}"
            case "console":
                self.run_commands(fence.body, place)
            case "json" | "jsonc":
                jsonc.parse_object(fence.body, place)
            case "toml":
                tomllib.loads(fence.body)

    def write(self, name: str, content: str) -> None:
        file = self.work / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")

    def run_python(self, source: str, place: str) -> None:
        code = compile(source, place, "exec", dont_inherit=True)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, self.names)
        self.printed = printed.getvalue()

    def run_commands(self, body: str, place: str) -> None:
        for command, expected in sessions(body):
            done = subprocess.run(
                ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
            assert matches(expected, done.stdout), f"{place}: '{command}' printed:\n{done.stdout}"


def is_left_alone(page: Page, fence: Fence) -> bool:
    """Return whether the last words before a block say that it is not run."""
    before = [line.text for line in page.prose if line.number < fence.number and line.text.strip()]
    return bool(before) and before[-1].startswith("<!-- not run: ")


def sessions(body: str) -> list[tuple[str, str]]:
    """Return each command of a console block with what it shall print."""
    found: list[tuple[str, list[str]]] = []
    for line in body.rstrip("\n").split("\n"):
        if command := _COMMAND.match(line):
            found.append((command["command"], []))
        elif found:
            found[-1][1].append(line)
    return [(command, "\n".join(lines).strip("\n") + "\n" if lines else "") for command, lines in found]


def matches(expected: str, actual: str) -> bool:
    """Return whether a text is what is shown, trailing blanks aside."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*?") + r"\n"
        for line in expected.strip().splitlines()
    )
    shown = "".join(line.rstrip() + "\n" for line in actual.strip().splitlines())
    return re.fullmatch(pattern, shown) is not None


@pytest.mark.parametrize(
    ("expected", "actual", "fits"),
    [
        ("a\nb", "a  \nb\n", True),
        ("took … s", "took 0.25 s", True),
        ("a\n…\nz", "a\nb\nc\nz", True),
        ("a\n…\nz", "a\nz", True),
        ("a … z", "a b\nc z", False),
        ("a", "a\nb", False),
        ("a.c", "abc", False),
    ],
)
def test_an_ellipsis_stands_for_anything_and_nothing_else_does(expected: str, actual: str, fits: bool) -> None:
    assert matches(expected, actual) is fits


def test_a_console_block_is_read_as_commands_with_their_output() -> None:
    assert sessions("$ one\na\n\nb\n$ two\n") == [("one", "a\n\nb\n"), ("two", "")]
