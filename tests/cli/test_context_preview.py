"""`context preview`: what a new session here would be told, by source, and what keeps it from being told."""

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from opencode_core.cli import main
from tests.cli.terminal import TELLS, configure, run, write
from tests.cli.worlds import BUILTINS, World

AGENTS = """\
from plugin_sdk import Agent, Boundary, ContextSource, hookimpl

@hookimpl
def opencode_agents():
    yield Agent(name="plan")

async def load(boundary: Boundary):
    return boundary.agent.name if boundary.agent else "nobody"

@hookimpl
def opencode_context_sources():
    yield ContextSource(key="my/agent", load=load, baseline=lambda name: f"You are {name}.", update=lambda a, b: b)
"""

WARNS = """\
from plugin_sdk import ContextSource, hookimpl

@hookimpl
def opencode_context_sources(scope):
    async def load():
        for _ in range(2):
            scope.warn("The file 'a\x1b[31m' is left out.", "Make it\\n shorter.")
        return "here"

    yield ContextSource(key="my/warns", load=load, baseline=str, update=lambda before, now: now)
"""

LOADS = """\
from plugin_sdk import hookimpl

def opencode_tools():
    return {}

@hookimpl
def opencode_agents():
    return []
"""


def shown(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert main(["context", "preview", *args]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_it_shows_each_source_with_plugin_size_and_tokens_and_the_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    World(tmp_path, flag="on", rules="é" * 1000)
    text = f"The flag is on.\n\nThe rules is {'é' * 1000}."
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    assert shown(capsys, str(tmp_path)).splitlines() == [
        f"A new session in {tmp_path}",
        "for the agent 'build', which no plugin defines, would start from this baseline:",
        "",
        "  source       plugin  size     tokens",
        "  world/flag   world   15 B     4",
        "  world/rules  world   2.0 KiB  254",
        "",
        f"Together 2.0 KiB, about 258 tokens, sha256 {digest}.",
        "It is complete.",
        "Nothing to tell: world/news.",
    ]


def test_it_works_for_a_person_who_never_ran_the_program_and_makes_no_store(tmp_path: Path) -> None:
    done = run("context", "preview", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"A new session in {tmp_path}\n" in done.stdout
    assert "  core/environment" in done.stdout
    assert "\x1b" not in done.stdout
    assert not list(Path(os.environ["OPENCODE_DATA_DIR"]).rglob("*.db"))


def test_a_required_source_that_is_unavailable_blocks_and_it_says_so_plainly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    World(tmp_path, flag="unavailable", rules="short")
    out = shown(capsys)
    assert "  world/flag of the plugin 'world', required: it is unavailable now\n" in out
    assert "A first turn would be blocked, and its prompt would wait.\n" in out
    assert "  world/rules  world   19 B  5\n" in out
    assert "sha256" not in out
    assert "It is complete" not in out


def test_a_first_turn_does_not_wait_for_a_source_that_is_not_required(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    World(tmp_path, flag="on", news="unavailable")
    out = shown(capsys)
    assert "  world/news of the plugin 'world', told when it is there: it is unavailable now\n" in out
    assert "A first turn would not wait for that.\n" in out
    assert "blocked" not in out


def test_what_raises_and_what_renders_nothing_are_named_without_their_escapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    World(tmp_path, flag="raises", rules="renders nothing")
    out = shown(capsys)
    assert r"world/flag of the plugin 'world', required: it raised OSError: no \x1b[31mnet" in out
    assert "The baseline rendering of the context source 'world/rules' is empty." in out
    assert "No source has anything to tell." in out
    assert "\x1b" not in out


def test_the_json_is_whole_and_has_a_shape_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    World(tmp_path, flag="on", news="unavailable")
    said = json.loads(shown(capsys, "--json", str(tmp_path)))
    text = "The flag is on."
    assert said == {
        "directory": str(tmp_path),
        "agent": {"name": "build", "defined": False},
        "complete": False,
        "blocked": [],
        "bytes": 15,
        "tokens": 4,
        "digest": hashlib.sha256(text.encode()).hexdigest(),
        "text": text,
        "sources": [
            {
                "key": "world/flag",
                "owner": "world",
                "state": "told",
                "required": True,
                "reason": None,
                "bytes": 15,
                "tokens": 4,
                "text": text,
            },
            {
                "key": "world/news",
                "owner": "world",
                "state": "unavailable",
                "required": False,
                "reason": "it is unavailable now",
                "bytes": 0,
                "tokens": 0,
                "text": "",
            },
            {
                "key": "world/rules",
                "owner": "world",
                "state": "absent",
                "required": None,
                "reason": None,
                "bytes": 0,
                "tokens": 0,
                "text": "",
            },
        ],
        "warnings": [],
    }


def test_a_baseline_that_would_not_be_made_has_no_digest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    World(tmp_path, flag="on", rules="unavailable")
    said = json.loads(shown(capsys, "--json"))
    assert (said["complete"], said["blocked"], said["digest"]) == (False, ["world/rules"], None)


def test_text_is_the_baseline_byte_for_byte_and_nothing_else(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    World(tmp_path, flag="é\x1b[31m\r\n\ud800", rules="\n")
    assert main(["context", "preview", "--text"]) == 0
    captured = capfdbinary.readouterr()
    text = "The flag is é\x1b[31m\r\n\ud800.\n\nThe rules is \n."
    assert (captured.out, captured.err) == (text.encode("utf-8", "surrogatepass"), b"")


def test_text_on_a_terminal_has_nothing_in_it_to_obey(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    World(tmp_path, flag="\x1b[31m\r", rules="é")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert shown(capsys, "--text") == "The flag is \\x1b[31m\\r.\n\nThe rules is é.\n"


def test_text_is_an_error_when_it_would_not_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    World(tmp_path, flag="on", rules="raises")
    assert main(["context", "preview", "--text"]) == 1
    captured = capsys.readouterr()
    first, second = captured.err.splitlines()
    assert captured.out == ""
    assert first.startswith("Error: The first baseline is blocked because")
    assert "'world/rules' of the plugin 'world'" in first
    assert second


def test_the_agent_decides_what_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = write(tmp_path / "agents.py", AGENTS)
    configure(plugin=[str(plugin)], plugin_block=list(BUILTINS))
    for args, text, agent in (
        ((), "You are plan.", {"name": "plan", "defined": True}),
        (("--agent", "plan"), "You are plan.", {"name": "plan", "defined": True}),
        (("--agent", "x\n"), "You are nobody.", {"name": "x\n", "defined": False}),
    ):
        said = json.loads(shown(capsys, "--json", *args))
        assert (said["text"], said["agent"]) == (text, agent)
    assert "for the agent 'x', which no plugin defines, would" in shown(capsys, "--agent", "x\n")


def test_an_agent_that_a_plugin_defines_is_not_said_to_be_undefined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = write(tmp_path / "agents.py", AGENTS)
    configure(plugin=[str(plugin)], plugin_block=list(BUILTINS))
    assert "for the agent 'plan', would start from this baseline:\n" in shown(capsys)


def test_what_a_plugin_warns_of_while_it_is_observed_is_shown_once_and_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(plugin=[str(write(tmp_path / "warns.py", WARNS))], plugin_block=list(BUILTINS))
    out = shown(capsys)
    assert out.endswith(
        "It is complete, but something was left out:\n"
        "  Warning: The file 'a\\x1b[31m' is left out.\n"
        "    Make it shorter.\n"
    )
    assert out.count("is left out") == 1
    said = json.loads(shown(capsys, "--json"))
    problem = "The file 'a\x1b[31m' is left out."
    assert said["warnings"] == [{"plugin": "warns", "problem": problem, "remedy": "Make it\n shorter."}]
    assert said["complete"] is True
    assert shown(capsys, "--text") == "here"


def test_a_warning_that_takes_nothing_away_does_not_say_that_something_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(plugin=[str(write(tmp_path / "loads.py", LOADS))], plugin_block=list(BUILTINS))
    out = shown(capsys)
    assert "It is complete.\nAlso noted:\n  Warning: The function 'opencode_tools' of the plugin 'loads' has" in out
    assert "left out" not in out


def test_a_fault_is_shown_with_its_place_beside_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    World(tmp_path, flag="raises")
    out = shown(capsys)
    assert "Also noted:\n  Error: The context source 'world/flag' of the plugin 'world' could not be loaded:" in out
    assert f"({tmp_path / 'world.py'}:" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("what", ["folder", "large", "binary", "loop", "link out"])
def test_instructions_that_cannot_be_read_are_said_to_be_left_out(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    bad = project / "AGENTS.md"
    match what:
        case "folder":
            bad.mkdir()
        case "large":
            bad.write_text("x" * 5_000_000)
        case "binary":
            bad.write_bytes(b"\xff\x00" * 100)
        case "loop":
            bad.symlink_to(bad)
        case "link out":
            bad.symlink_to(write(tmp_path / "elsewhere.md", "Secret."))
    out = shown(capsys, str(project))
    assert f"left out:\n  Warning: The instructions in '{bad}' are left out" in out
    (warning,) = json.loads(shown(capsys, "--json", str(project)))["warnings"]
    assert (warning["plugin"], str(bad) in warning["problem"]) == ("instructions", True)


def test_settings_of_a_project_that_is_not_trusted_are_said_to_be_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".git").mkdir()
    file = write(tmp_path / "opencode.json", '{"instructions": ["rules.md"]}')
    out = shown(capsys, str(tmp_path))
    assert f"left out:\n  Warning: What '{file}' says is ignored, because the project" in out
    assert f"    Read it, then run `opencode-core plugins trust {tmp_path}`.\n" in out
    assert len(json.loads(shown(capsys, "--json", str(tmp_path)))["warnings"]) == 1
    assert main(["plugins", "trust", "--yes", str(tmp_path)]) == 0
    capsys.readouterr()
    assert "is ignored" not in shown(capsys, str(tmp_path))


def test_the_directory_is_where_the_session_would_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for args in (["-C", str(tmp_path), "context", "preview", "deep/er"], ["context", "preview", f"{tmp_path}/deep/er"]):
        assert main([*args, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["directory"] == str(tmp_path / "deep" / "er")
    assert main(["context", "preview", str(tmp_path / "gone")]) == 1
    assert capsys.readouterr().err.splitlines()[0] == f"Error: The directory '{tmp_path}/gone' does not exist."


def test_who_is_missing_is_said_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path / "good.py", TELLS.format(key="my/good", text="good"))
    broken = write(tmp_path / "broken.py", "def broken(:\n")
    configure(plugin=[str(good), str(broken)], plugin_block=list(BUILTINS))
    assert main(["context", "preview", "--json"]) == 0
    captured = capsys.readouterr()
    assert "my/good" in [each["key"] for each in json.loads(captured.out)["sources"]]
    assert captured.err.startswith("Warning: 1 plugin is not active: 'broken' (failed).")


@pytest.mark.parametrize("args", [["--json", "--text"], ["a", "b"], ["--nope"]])
def test_wrong_usage_is_two_lines_and_exit_code_2(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["context", "preview", *args]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
