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
        "for the agent 'build', would start from this baseline:",
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
