"""`plugins trust`: what is shown is what is recorded."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from opencode_core.cli import main
from tests.cli.terminal import GREETS, PROGRAM, run, write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that brings a plugin and declares another one."""
    folder = tmp_path / "project"
    write(folder / ".opencode" / "plugins" / "greets.py", GREETS)
    write(folder / "tools" / "extra.py", "")
    settings = {"plugin": ["./tools/extra.py", "some.module"], "plugins": {"extra": {"token": "hush"}}}
    write(folder / "opencode.json", json.dumps(settings))
    (folder / ".git").mkdir()
    return folder


def states(project: Path) -> dict[str, str]:
    """Return what became of each plugin of a project."""
    said = json.loads(run("plugins", "list", "--json", cwd=project).stdout)
    return {each["name"]: each["state"] for each in said["plugins"] if each["folder"]}


@contextmanager
def asked(*args: str, cwd: Path) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Run a command in a terminal, up to its question."""
    terminal, inner = pty.openpty()
    process = subprocess.Popen([*PROGRAM, *args], cwd=cwd, stdin=inner, stdout=inner, stderr=inner)
    os.close(inner)
    try:
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(terminal, 4096)
        yield process, terminal
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def answer(process: "subprocess.Popen[bytes]", terminal: int, text: bytes) -> int:
    """Type an answer, and return the exit code."""
    if text == b"\x03":
        process.send_signal(signal.SIGINT)  # as a terminal does for the processes that it controls
        text = b"\n"  # wakes a read that began just after the signal came
    os.write(terminal, text)
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:  # how Linux says that the other side of a terminal was closed
        pass
    return process.wait()


def test_everything_that_would_run_is_shown(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "trust", str(project), "--yes"]) == 0
    out = capsys.readouterr().out
    assert f"{project}: not trusted yet\n" in out
    assert f".opencode/plugins/greets.py  {len(GREETS)} B  " in out
    assert "tools/extra.py" in out
    assert f"declares the plugin 'some.module' in {project / 'opencode.json'}" in out
    assert "sets options of the plugin 'extra': token" in out
    assert "hush" not in out
    assert "Trusted: its plugins and settings count." in out
    assert states(project)["greets"] == "active"


def test_settings_without_plugins_are_shown_whole_with_their_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".git").mkdir()
    rules = [f"rules-{number}.md" for number in range(100)]
    settings = {"$schema": "x", "storage": "sqlite:x", "instructions": rules, "odd\x1b[31m": {"a": "\x9b"}}
    first = write(tmp_path / "opencode.json", json.dumps(settings))
    second = write(tmp_path / ".opencode" / "opencode.json", '{"instructions": ["b.md"], "plugin_strict": true}')
    assert main(["plugins", "trust", str(tmp_path), "--yes"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}: not trusted yet",
        f"  sets 'instructions' in {first}: {json.dumps(rules)}",
        f'  sets \'odd\\x1b[31m\' in {first}: {{"a": "\\x9b"}}',
        f"  sets 'instructions' in {second}: [\"b.md\"]",
        f"  sets 'plugin_strict' in {second}: true",
        "Trusted: its plugins and settings count.",
        "",
    ]


def test_a_change_of_settings_is_named(project: Path) -> None:
    run("plugins", "trust", "--yes", cwd=project)
    write(project / "opencode.json", '{"instructions": ["b.md"]}')
    out = run("plugins", "trust", "--yes", cwd=project).stdout
    assert "what its configuration says)\n" in out


def test_without_a_terminal_nobody_can_be_asked(project: Path) -> None:
    done = run("plugins", "trust", cwd=project)
    assert done.returncode == 1
    assert "greets.py" in done.stdout
    assert done.stderr.splitlines() == [
        "Error: Nobody can be asked whether this code is trusted, because the input is not a terminal.",
        "Run it in a terminal, or add --yes after reading the code.",
    ]
    assert states(project)["greets"] == "untrusted"


@pytest.mark.parametrize(
    ("typed", "code", "state"), [(b"y\n", 0, "active"), (b"\n", 1, "untrusted"), (b"\x03", 130, "untrusted")]
)
def test_a_person_is_asked_and_the_answer_counts(typed: bytes, code: int, state: str, project: Path) -> None:
    with asked("plugins", "trust", cwd=project) as (process, terminal):
        assert answer(process, terminal, typed) == code
    assert states(project)["greets"] == state


def test_what_changes_while_the_question_is_open_is_not_trusted(project: Path) -> None:
    with asked("plugins", "trust", cwd=project) as (process, terminal):
        write(project / ".opencode" / "plugins" / "greets.py", f"{GREETS}\nevil = 1\n")
        assert answer(process, terminal, b"y\n") == 0
    assert states(project)["greets"] == "untrusted"


def test_a_change_is_named_and_asked_again(project: Path) -> None:
    run("plugins", "trust", "--yes", cwd=project)
    assert f"{project}: trusted\n" in run("plugins", "trust", cwd=project).stdout
    write(project / ".opencode" / "plugins" / "greets.py", "")
    write(project / ".opencode" / "plugins" / "more.py", "")
    done = run("plugins", "trust", cwd=project)
    assert done.returncode == 1
    changes = "added: .opencode/plugins/more.py; modified: .opencode/plugins/greets.py"
    assert f"changed since it was trusted ({changes})\n" in done.stdout


def test_every_folder_of_the_project_is_asked_about(project: Path) -> None:
    inner = write(project / "inner" / ".opencode" / "plugins" / "inner.py", "").parents[2]
    done = run("plugins", "trust", "--yes", cwd=inner)
    assert done.stdout.count("Trusted: its plugins and settings count.") == 2
    listed = run("plugins", "trust", "--list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == [str(project), str(inner)]


def test_a_refused_file_is_shown_with_its_reason_and_escaped(project: Path, tmp_path: Path) -> None:
    plugins = project / ".opencode" / "plugins"
    (plugins / "link.py").symlink_to(write(tmp_path / "outside.py", ""))
    write(plugins / "evil\x1b[2J.py", "")
    out = run("plugins", "trust", "--yes", cwd=project).stdout
    assert f"refused: '.opencode/plugins/link.py' leads to '{tmp_path / 'outside.py'}'" in out
    assert r"refused: '.opencode/plugins/evil\x1b[2J.py'" in out
    assert "\x1b" not in out


def test_a_decision_can_be_forgotten(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["plugins", "trust", str(project), "--yes"])
    capsys.readouterr()
    assert main(["plugins", "trust", str(project), "--revoke"]) == 0
    assert capsys.readouterr().out == f"Forgotten: the plugins and settings of {project} do not count.\n"
    assert main(["plugins", "trust", str(project), "--revoke"]) == 0
    assert capsys.readouterr().out.startswith("Nothing to forget")
    assert states(project)["greets"] == "untrusted"


def test_a_project_that_is_gone_can_be_forgotten(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["plugins", "trust", str(project), "--yes"])
    project.rename(project.with_name("moved"))
    assert main(["plugins", "trust", str(project), "--revoke"]) == 0
    assert "Forgotten" in capsys.readouterr().out


def test_a_project_without_plugins_needs_no_decision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "trust", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("There is nothing to trust")


def test_nothing_of_the_project_runs_while_it_is_shown(project: Path, tmp_path: Path) -> None:
    write(project / ".opencode" / "plugins" / "greets.py", f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    run("plugins", "trust", "--yes", cwd=project)
    assert not (tmp_path / "ran").exists()


def test_two_contradicting_options_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "trust", "--yes", "--revoke"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
