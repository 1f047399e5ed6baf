"""`plugins reload` and `plugins watch`: two terminals of one person."""

import signal
from pathlib import Path

import pytest

from opencode_core.cli import main
from tests.cli.terminal import GREETS, configure, run, running, sockets, write


@pytest.fixture
def greets(tmp_path: Path) -> Path:
    """A plugin that the person configured."""
    file = write(tmp_path / "greets.py", GREETS)
    configure(plugin=[str(file)])
    return file


def test_a_reload_reaches_a_running_host(greets: Path, tmp_path: Path) -> None:
    with running("plugins", "watch", cwd=tmp_path) as (process, until):
        start = until("Ctrl-C")
        assert start[0].startswith("Watching 10 plugins in ")
        assert f"  {greets}" in start
        done = run("plugins", "reload", "greets", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"process {process.pid} in {tmp_path}: 'greets' is now generation 2\n"
        assert until("reloaded")[-1].endswith("reloaded 'greets', generation 2")


def test_every_running_host_is_asked(greets: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with (
        running("plugins", "watch", cwd=tmp_path) as (_first, until_first),
        running("plugins", "watch", cwd=tmp_path / "other") as (_second, until_second),
    ):
        until_first("Ctrl-C")
        until_second("Ctrl-C")
        assert run("plugins", "reload", "greets").stdout.count("is now generation 2") == 2


def test_a_changed_file_is_reloaded_and_a_broken_one_reported(greets: Path, tmp_path: Path) -> None:
    with running("plugins", "watch", cwd=tmp_path) as (_process, until):
        until("Ctrl-C")
        write(greets, f"{GREETS}\nmore = 1\n")
        until("reloaded 'greets', generation 2")
        write(greets, "def broken(:\n")
        line = until("failed 'greets', generation 2")[-1]
        assert f"SyntaxError: invalid syntax. ({greets}:1)" in line


def test_a_file_that_was_emptied_is_reported_and_the_old_code_goes_on(greets: Path, tmp_path: Path) -> None:
    with running("plugins", "watch", cwd=tmp_path) as (_process, until):
        until("Ctrl-C")
        write(greets, "")
        line = until("failed 'greets', generation 1")[-1]
        assert "The plugin 'greets' implements no hook." in line
        write(greets, f"{GREETS}\nmore = 1\n")
        until("reloaded 'greets', generation 2")


def test_a_host_that_cannot_reload_says_so_in_two_lines(greets: Path, tmp_path: Path) -> None:
    with running("plugins", "watch", cwd=tmp_path) as (process, until):
        until("Ctrl-C")
        write(greets, "x = 1\ndef broken(:\n")
        done = run("plugins", "reload", "greets")
        assert (done.returncode, done.stdout) == (1, "")
        first, second = done.stderr.splitlines()
        assert first.startswith(
            f"Error: process {process.pid} in {tmp_path}: The plugin 'greets' could not be imported"
        )
        assert first.endswith(f"({greets}:2)")
        assert second == "Fix the file, or block the plugin."


@pytest.mark.usefixtures("greets")
def test_ctrl_c_ends_a_watch_soon_and_removes_its_socket(tmp_path: Path) -> None:
    with running("plugins", "watch", cwd=tmp_path) as (process, until):
        until("Ctrl-C")
        assert len(sockets()) == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=4) == 0  # a second, and patience with a busy machine
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert sockets() == []


@pytest.mark.usefixtures("greets")
def test_the_socket_of_a_killed_host_is_cleaned_up(tmp_path: Path) -> None:
    with running("plugins", "watch", cwd=tmp_path) as (process, until):
        until("Ctrl-C")
        process.kill()
        process.wait()
    assert len(sockets()) == 1
    done = run("plugins", "reload", "greets")
    assert done.returncode == 0
    assert done.stdout.startswith("No host is running")
    assert sockets() == []


@pytest.mark.usefixtures("greets")
def test_without_a_running_host_the_code_is_loaded_twice_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "reload", "greets"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "No host is running, so nothing was reloaded.",
        "Checked instead: the code of 'greets' loads here, and loads again.",
    ]


def test_without_a_running_host_broken_code_is_still_reported(greets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(greets, "x = 1\ndef broken(:\n")
    assert main(["plugins", "reload", "greets"]) == 1
    first, _second = capsys.readouterr().err.splitlines()
    assert first.endswith(f"({greets}:2)")


def test_a_name_that_no_plugin_has_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "reload", "dtae"]) == 1
    assert capsys.readouterr().err.splitlines() == ["Error: There is no plugin called 'dtae'.", "Did you mean 'date'?"]
