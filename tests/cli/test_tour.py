"""`tour`: works with nothing, with everything, and with what is broken."""

from pathlib import Path

import pytest

from opencode_core.cli import main
from tests.cli.terminal import TELLS, configure, run, write


def test_it_works_on_a_fresh_machine_without_a_terminal(tmp_path: Path) -> None:
    done = run("tour", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"9 plugins loaded in {tmp_path}\n" in done.stdout
    assert f"      Working directory: {tmp_path}\n" in done.stdout
    assert done.stdout.count("opencode-core plugins ") == 3
    assert "\x1b" not in done.stdout


def test_it_shows_the_baseline_by_source_with_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = r"\n".join(f"line {number}" for number in range(20))
    configure(plugin=[str(write(tmp_path / "tells.py", TELLS.format(key="my/thing", text=text)))])
    assert main(["tour"]) == 0
    out = capsys.readouterr().out
    assert "  my/thing  149 B\n    line 0\n" in out
    assert "line 11\n    ... and 8 more lines\n" in out


def test_it_shows_what_is_broken_and_everything_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fails = TELLS.format(key="my/fails", text="x").replace('return "x"', 'raise OSError("no\\nnet")')
    leaves = TELLS.format(key="my/leaves", text="x").replace('return "x"', "raise SystemExit(3)")
    empty = TELLS.format(key="my/empty", text="")
    configure(
        plugin=[
            str(write(tmp_path / "broken.py", "def broken(:\n")),
            str(write(tmp_path / "fails.py", fails)),
            str(write(tmp_path / "leaves.py", leaves)),
            str(write(tmp_path / "empty.py", empty)),
        ]
    )
    assert main(["tour"]) == 0
    out = capsys.readouterr().out
    assert "failed, so it contributes nothing" in out
    assert f"({tmp_path / 'broken.py'}:1)" in out
    assert "my/fails\n    Error: it raised OSError: no net\n" in out
    assert "my/leaves\n    Error: it raised SystemExit: 3\n" in out
    assert "my/empty\n    Error: The baseline rendering of the context source 'my/empty' is empty." in out
    assert "core/date" in out


def test_it_shows_what_plugins_warn_of_while_they_are_observed_and_what_is_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "AGENTS.md").mkdir()
    file = write(tmp_path / "opencode.json", '{"instructions": ["rules.md"]}')
    assert main(["-C", str(tmp_path), "tour"]) == 0
    out = capsys.readouterr().out
    assert out.count(f"    Warning: The instructions in '{tmp_path / 'AGENTS.md'}' are left out") == 1
    assert out.count(f"  Warning: What '{file}' says is ignored") == 1
