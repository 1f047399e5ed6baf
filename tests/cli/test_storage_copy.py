"""`storage copy`: everything arrives, progress is seen, and an interrupted copy is never taken for a whole one."""

import os
import pty
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest

from opencode_core.cli import main
from opencode_core.cli.storage.progress import PAUSE, Lines
from opencode_core.storage.copying import Progress
from tests.cli.stores import content, filled, made_first_generation, numbered, with_store
from tests.cli.terminal import PROGRAM, run
from tests.storage.filling import put

STOPPING = """\
import os, signal, sys
from opencode_core.cli import main
from opencode_core.storage import copying, pages as reading

reading.LARGEST = 50
real, pages = copying._putter, []

def stopping(table, page):
    pages.append(page)
    if len(pages) == 3:
        os.kill(os.getpid(), int(sys.argv[1]))
    return real(table, page)

copying._putter = stopping
sys.exit(main(["storage", "copy", *sys.argv[2:]]))
"""


def url_of(kind: str, folder: Path, name: str) -> str:
    return f"{kind}://{folder}/{name}"


@pytest.mark.parametrize(("source", "target"), list(permutations(("sqlite", "jsonfiles"))))
def test_a_copy_is_the_same_in_another_backend_and_back_again(source: str, target: str, tmp_path: Path) -> None:
    old = filled(url_of(source, tmp_path, "old"))
    new, again = url_of(target, tmp_path, "new"), url_of(source, tmp_path, "again")
    done = run("storage", "copy", old, new)
    assert done.returncode == 0, done.stderr
    count = len(content(old))
    assert done.stdout.startswith(f"Copied {count} documents in 16 tables from '{old}' to '{new}'; both are the same.")
    assert f"Copying: {count} of {count} (100 %)" in done.stderr
    assert main(["storage", "copy", new, again, "--quiet"]) == 0
    assert content(again) == content(old) == content(new)
    assert main(["storage", "check", again]) == 0


def test_quiet_shows_no_progress(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = filled(url_of("sqlite", tmp_path, "old"))
    assert main(["storage", "copy", "-q", old, url_of("sqlite", tmp_path, "new")]) == 0
    assert capsys.readouterr().err == ""


def test_a_store_of_the_first_generation_is_only_read_and_can_be_listed_in_the_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = made_first_generation(url_of("jsonfiles", tmp_path, "old"), 3), url_of("sqlite", tmp_path, "new")
    before = content(old)
    assert main(["storage", "copy", old, new]) == 0
    assert "3 sessions of the first generation can be listed in the copy." in capsys.readouterr().out
    assert content(old) == before
    assert main(["storage", "check", new]) == 0


def test_a_store_moves_into_postgresql(postgres_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = filled(url_of("sqlite", tmp_path, "old"))
    assert main(["storage", "copy", old, postgres_url]) == 0
    assert main(["storage", "check", postgres_url]) == 0
    assert "2 logs with 22 events" in capsys.readouterr().out
    assert main(["storage", "copy", postgres_url, url_of("jsonfiles", tmp_path, "new")]) == 0
    assert content(url_of("jsonfiles", tmp_path, "new")) == content(old)
    assert main(["storage", "copy", old, postgres_url]) == 1
    assert "is not empty" in capsys.readouterr().err


def test_a_target_that_is_not_empty_is_refused_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = filled(url_of("sqlite", tmp_path, "old")), filled(url_of("jsonfiles", tmp_path, "new"), "ses_7")
    before = content(new)
    assert main(["storage", "copy", old, new]) == 1
    assert capsys.readouterr().err.splitlines()[0] == f"Error: The store '{tmp_path}/new' is not empty."
    assert content(new) == before


@pytest.mark.parametrize("kind", ["sqlite", "jsonfiles"])
def test_a_store_is_not_copied_onto_itself(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = filled(url_of(kind, tmp_path, "old"))
    before = content(url)
    assert main(["storage", "copy", url, f"{kind}://{tmp_path}/x/../old"]) == 1
    assert "cannot be copied onto itself" in capsys.readouterr().err
    assert content(url) == before


def test_a_source_that_is_not_there_makes_no_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = url_of("sqlite", tmp_path, "new")
    assert main(["storage", "copy", url_of("sqlite", tmp_path, "old"), new]) == 1
    newer = filled(url_of("jsonfiles", tmp_path, "newer"))
    with_store(newer, lambda storage: put(storage, {("store", ("schema",)): {"version": 9}}))
    assert main(["storage", "copy", newer, new]) == 1
    assert not (tmp_path / "new").exists()
    assert "Use a newer program." in capsys.readouterr().err


def test_passwords_in_urls_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["storage", "copy", "memory:", "redis://me:hunter2@there/x"]) == 1
    assert main(["storage", "copy", "redis://me:hunter2@there/x", "memory:"]) == 1
    captured = capsys.readouterr()
    assert "hunter2" not in captured.out + captured.err


@pytest.mark.parametrize("kind", ["sqlite", "jsonfiles"])
def test_a_copy_that_was_killed_cannot_be_opened_and_is_begun_anew(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = numbered(url_of("sqlite", tmp_path, "old"), 140), url_of(kind, tmp_path, "new")
    before = content(old)
    killed = subprocess.run([sys.executable, "-c", STOPPING, "9", old, new], capture_output=True, check=False)
    assert killed.returncode == -9
    assert content(old) == before
    for command in ("check", "stats", "migrate"):
        assert main(["storage", command, new]) == 1
        first, second = capsys.readouterr().err.splitlines()
        assert first == f"Error: The store is a copy of '{old}' that was never finished."
        assert second.startswith("Run 'opencode-core storage copy' again")
    assert main(["storage", "copy", new, url_of(kind, tmp_path, "third")]) == 1
    assert main(["storage", "copy", old, new]) == 0
    assert content(new) == before


def test_a_copy_that_is_interrupted_says_so_and_leaves_the_source_alone(tmp_path: Path) -> None:
    old, new = numbered(url_of("sqlite", tmp_path, "old"), 140), url_of("sqlite", tmp_path, "new")
    before = content(old)
    done = subprocess.run([sys.executable, "-c", STOPPING, "2", old, new], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert f"Interrupted. '{new}' is marked as unfinished; run it again." in done.stderr
    assert "Traceback" not in done.stderr
    assert content(old) == before
    assert main(["storage", "check", new]) == 1
    assert main(["storage", "copy", old, new]) == 0


def test_progress_is_a_bar_in_a_terminal(tmp_path: Path) -> None:
    old, new = numbered(url_of("sqlite", tmp_path, "old"), 700), url_of("sqlite", tmp_path, "new")
    here, there = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, "storage", "copy", old, new],
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=there,
        text=True,
    ) as process:
        os.close(there)
        shown = _read(here)
        assert process.stdout is not None
        said = process.stdout.read()
    assert process.returncode == 0
    assert said.startswith("Copied 701 documents")
    for words in ("Counting", "Copying", "Comparing", "100%", "701/701", "━"):
        assert words in shown


def _read(terminal: int) -> str:
    shown = b""
    try:
        while more := os.read(terminal, 65536):
            shown += more
    except OSError:  # how a terminal ends
        pass
    os.close(terminal)
    return shown.decode()


def test_lines_come_at_the_end_of_a_stage_and_now_and_then() -> None:
    class Clock:
        seconds = 0.0

        def now(self) -> None:
            raise NotImplementedError

        def monotonic(self) -> float:
            return self.seconds

    clock, printed = Clock(), list[str]()
    lines = Lines(clock, printed.append)  # type: ignore[arg-type]
    lines.show(Progress("counting", 500, None))
    lines.show(Progress("copying", 500, 2000))
    assert printed == []
    clock.seconds += PAUSE
    lines.show(Progress("copying", 1000, 2000))
    lines.show(Progress("copying", 1500, 2000))
    lines.show(Progress("copying", 2000, 2000))
    assert printed == ["Copying: 1,000 of 2,000 (50 %)", "Copying: 2,000 of 2,000 (100 %)"]
