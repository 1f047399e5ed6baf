"""An error is two lines and an exit code."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from opencode_core.cli import main
from opencode_core.errors import ConfigError
from tests.cli.terminal import PROGRAM, configure, run, running, write


def test_the_version_is_printed_without_loading_click_the_host_or_any_plugin() -> None:
    code = "import sys; from opencode_core.cli import main; main(['--version']); print(*sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    version, modules = printed.splitlines()
    assert version.startswith("opencode-core 0.")
    assert not {"click", "rich", "anyio", "attrs", "opencode_core.host", "plugins_builtin.date"} & set(modules.split())


def test_the_version_is_the_same_wherever_it_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    short = capsys.readouterr().out
    assert main(["--debug", "--version"]) == 0
    assert capsys.readouterr().out == short


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        (["nope"], ["Error: No such command 'nope'.", "Try 'opencode-core --help'."]),
        (["plugins", "nope"], ["Error: No such command 'nope'.", "Try 'opencode-core plugins --help'."]),
        (
            ["tour", "--nope"],
            ["Error: No such option '--nope'.", "Try 'opencode-core tour --help'."],
        ),
        (["plugins", "show"], ["Error: Missing argument 'NAME'.", "Try 'opencode-core plugins show --help'."]),
    ],
)
def test_wrong_usage_is_two_lines_and_exit_code_2(
    args: list[str], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == 2
    assert capsys.readouterr().err.splitlines() == lines


def test_a_failure_is_two_lines_on_stderr_and_exit_code_1(tmp_path: Path) -> None:
    done = run("-C", str(tmp_path / "gone"), "plugins", "list")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"Error: The directory '{tmp_path / 'gone'}' does not exist.",
        "Create it, or name another one.",
    ]


def test_an_error_in_a_configuration_file_names_the_file_and_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    file = write(Path(os.environ["OPENCODE_CONFIG_DIR"]) / "opencode.json", '{\n  "plugin": [,]\n}')
    assert main(["tour"]) == 1
    first, _second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"Error: '{file}:2:14' is not valid")
    assert first.count(str(file)) == 1  # a place that the message has is not repeated after it


def test_debug_shows_the_traceback_before_the_two_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--debug", "-C", str(tmp_path / "gone"), "tour"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[-2].startswith("Error: The directory")


def test_global_options_are_understood_after_the_command_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugins", "list", "-C", str(tmp_path / "gone"), "--debug"]) == 1
    assert capsys.readouterr().err.startswith("Traceback")


def test_an_unexpected_error_is_two_lines_that_say_how_to_see_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_args: object, **_settings: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr("opencode_core.host.Host.open", broken)
    assert main(["plugins", "list"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "Error: internal error: ZeroDivisionError: two lines",
        "Run again with --debug to see the traceback.",
    ]


def test_an_error_inside_a_task_group_is_said_as_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_args: object, **_settings: object) -> None:
        raise ExceptionGroup("tasks", [ExceptionGroup("more tasks", [ConfigError("It is wrong.", "Put it right.")])])

    monkeypatch.setattr("opencode_core.host.Host.open", broken)
    assert main(["tour"]) == 1
    assert capsys.readouterr().err.splitlines() == ["Error: It is wrong.", "Put it right."]


@pytest.mark.parametrize(("args", "code"), [(["tour"], 130), (["plugins", "watch"], 0)])
def test_ctrl_c_ends_a_command_while_a_plugin_blocks_without_a_traceback(
    args: list[str], code: int, tmp_path: Path
) -> None:
    plugin = write(tmp_path / "slow.py", "import time\nprint('loading', flush=True)\ntime.sleep(60)\n")
    configure(plugin=[str(plugin)])
    process = subprocess.Popen([*PROGRAM, *args], stderr=subprocess.PIPE, text=True)
    with process:
        assert process.stderr is not None
        assert process.stderr.readline() == "loading\n"
        process.send_signal(signal.SIGINT)
        assert process.wait() == code
        assert process.stderr.read() == ""


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    for number in range(300):
        write(tmp_path / f"plugin{number}.py", "")
    configure(plugin=[str(path) for path in sorted(tmp_path.glob("*.py"))])
    command = f"{' '.join(PROGRAM)} plugins list --json | head -1"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{\n", "")


@pytest.mark.parametrize("args", [["tour"], ["plugins", "list"], ["plugins", "watch"], ["--help"]])
def test_printing_into_a_closed_pipe_ends_quietly(args: list[str], tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*PROGRAM, *args], cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


def test_what_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    configure(plugin=[str(write(tmp_path / "fine.py", '"Snow."\n'))], plugins={"hλhle": {}})
    done = run("plugins", "list", PYTHONIOENCODING="latin-1")
    assert done.returncode == 0
    assert r"h\u03bbhle" in done.stdout


def test_without_arguments_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "Commands:" in capsys.readouterr().out


def test_the_module_runs_too() -> None:
    assert run("--version").stdout == run("--version").stdout != ""


def test_interrupting_a_watch_is_not_an_error(tmp_path: Path) -> None:
    with running("plugins", "watch", cwd=tmp_path) as (process, until):
        until("Ctrl-C")
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
