"""`context SESSION`: what a session was told, by whom, at which turn, and what it would be told now."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from opencode_core.cli import main
from opencode_core.cli.context.values import moment
from opencode_core.model.event.conversation import MessageRemoved, TurnPrepared
from opencode_core.model.message import SystemMessage
from opencode_core.storage.tables import EVENTS
from tests.cli.stores import content, files_in, made_first_generation, with_store
from tests.cli.terminal import configure, run, write
from tests.cli.worlds import BUILTINS, World
from tests.context.running import Running
from tests.storage.filling import put

NOON = 1772452800000


@attrs.define
class Desk:
    """A person with a world, a project and a store, who looks at sessions."""

    world: World
    project: Path
    url: str
    capsys: pytest.CaptureFixture[str]

    def run(self, work: Callable[[Running], Awaitable[object]], **more: Any) -> None:
        self.world.run(work, **{"url": self.url, "directory": self.project, **more})

    def show(self, *args: str) -> str:
        """Return what is printed; nothing goes wrong."""
        assert main(["-C", str(self.project), "context", "ses_1", "--storage", self.url, *args]) == 0
        captured = self.capsys.readouterr()
        assert captured.err == ""
        return captured.out

    def document(self) -> Any:
        return json.loads(self.show("--json"))


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("COLUMNS", "100")
    project = tmp_path / "project"
    project.mkdir()
    return Desk(World(tmp_path / "world", flag="on", rules="short"), project, f"sqlite://{tmp_path}/store.db", capsys)


async def two_turns(run: Running) -> None:
    await run.turn("one")
    await run.turn("two")


def a_change(desk: Desk) -> None:
    """Run three turns, with a change before the third."""

    async def work(run: Running) -> None:
        await two_turns(run)
        desk.world.now(flag="off", rules="short")
        await run.turn("three")

    desk.run(work)


@pytest.mark.behaviour("BX-04", "BX-06")
def test_every_change_is_shown_with_source_values_turn_and_tokens_and_every_turn_with_its_prefix(desk: Desk) -> None:
    a_change(desk)
    epoch = desk.document()["epochs"][0]
    one, two, three = (turn["digest"][:12] for turn in epoch["turns"])
    at = moment(NOON)
    told = desk.show()
    assert told.splitlines()[8:] == [
        f"Epoch 1  #2  {at}  the first of the session",
        f"  baseline  36 B, about 9 tokens  sha256 {epoch['digest'][:12]}",
        "    world/flag  15 B, about 4 tokens",
        "    world/rules  19 B, about 5 tokens",
        f"  turn 1  #4  {at}  1 message  prefix -, the first of its epoch  digest {one}",
        "    agent build  model test/one",
        f"  turn 2  #13  {at}  3 messages  prefix {one}, stable  digest {two}",
        f"  system message  #22  {at}  after turn 2, first sent with turn 3",
        "    20 B, about 5 tokens",
        "    world/flag  changed  20 B, about 5 tokens",
        '      before  "on"',
        '      after   "off"',
        "      told    The flag is now off.",
        f"  turn 3  #23  {at}  6 messages  prefix {two}, stable  digest {three}",
        "",
        "Snapshot  what the model was last told of 2 sources",
        '  world/flag  "off"',
        '  world/rules  "short"',
        "",
        f"Now  in {desk.project}, agent build",
        "  Nothing would be told: the model knows everything already.",
    ]


def test_the_head_says_what_it_is_and_where(desk: Desk, tmp_path: Path) -> None:
    a_change(desk)
    assert desk.show().splitlines()[:8] == [
        "Session ses_1",
        "  title      New session",
        f"  directory  {desk.project}",
        "  agent      -",
        "  model      test/one",
        f"  store      {tmp_path}/store.db",
        "  log        30 events, 1 epoch, 3 turns, 1 system message",
        "",
    ]


@pytest.mark.behaviour("BX-06")
def test_the_json_says_everything_and_shortens_nothing(desk: Desk) -> None:
    a_change(desk)
    said = desk.document()
    assert list(said) == ["session", "store", "head", "origin", "epochs", "outside", "snapshot", "now"]
    assert (said["session"]["id"], said["session"]["directory"]) == ("ses_1", str(desk.project))
    assert (said["head"], said["origin"]) == (29, "created")
    (epoch,) = said["epochs"]
    assert (epoch["reason"], epoch["sequence"], epoch["at"], epoch["end"]) == ("first", 2, NOON, None)
    assert epoch["text"] == "The flag is on.\n\nThe rules is short."
    (message,) = epoch["messages"]
    assert (message["after_turn"], message["sent_with_turn"], message["retracted_at"]) == (2, 3, None)
    gone = "There is no flag any more."
    assert message["sources"] == [
        {
            "key": "world/flag",
            "change": "changed",
            "before": {"value": "on", "removed": gone},
            "after": {"value": "off", "removed": gone},
            "bytes": 20,
            "tokens": 5,
            "text": "The flag is now off.",
        }
    ]
    assert [turn["stable"] for turn in epoch["turns"]] == [None, True, True]
    assert all(turn["prefix"] == turn["expected"] for turn in epoch["turns"])
    assert said["snapshot"]["world/flag"] == {"value": "off", "removed": gone}
    assert said["outside"] == {"messages": [], "turns": []}
    assert (said["now"]["step"], said["now"]["text"], said["now"]["problem"]) == ("stay", "", None)


def test_the_id_may_stand_without_the_command_and_behind_options(desk: Desk) -> None:
    a_change(desk)
    shown = desk.show()
    where = ["-C", str(desk.project), "context"]
    for args in (
        ["show", "ses_1", "--storage", desk.url],
        ["--storage", desk.url, "ses_1"],
        ["show", "--storage", desk.url, "ses_1"],
    ):
        assert main([*where, *args]) == 0
        assert desk.capsys.readouterr().out == shown


def test_without_a_url_it_is_the_configured_store(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    a_change(desk)
    monkeypatch.setenv("OPENCODE_STORAGE", desk.url)
    assert main(["context", "ses_1"]) == 0
    assert "Session ses_1\n" in desk.capsys.readouterr().out


@pytest.mark.parametrize("kind", ["sqlite", "jsonfiles"])
def test_looking_changes_nothing_in_the_store(kind: str, desk: Desk, tmp_path: Path) -> None:
    desk.url = f"{kind}://{tmp_path}/looked-at"
    a_change(desk)
    desk.world.now(flag="on", rules="unavailable")  # so that there would be something to tell
    rows, files = content(desk.url), files_in(tmp_path / "looked-at")
    assert desk.document()["now"]["step"] == "admit"
    assert "A system message would tell" in desk.show()
    assert files_in(tmp_path / "looked-at") == files
    assert content(desk.url) == rows
    assert desk.document()["head"] == 29


# Now


def test_what_would_be_told_now_names_plugin_values_and_tokens(desk: Desk) -> None:
    desk.run(two_turns)
    desk.world.now(flag="off", news="good")
    out = desk.show().partition("Now")[2]
    assert out.splitlines()[1:] == [
        "  A system message would tell what changed: 68 B, about 17 tokens",
        "    world/flag  changed  of the plugin 'world'  20 B, about 5 tokens",
        '      before  "on"',
        '      after   "off"',
        "      told    The flag is now off.",
        "    world/news  new  of the plugin 'world'  17 B, about 4 tokens",
        "      before  -",
        '      after   "good"',
        "      told    The news is good.",
        "    world/rules  removed  of the plugin 'world'  27 B, about 7 tokens",
        '      before  "short"',
        "      after   -",
        "      told    There is no rules any more.",
    ]
    said = desk.document()["now"]
    assert [(each["key"], each["owner"], each["change"]) for each in said["sources"]] == [
        ("world/flag", "world", "changed"),
        ("world/news", "world", "new"),
        ("world/rules", "world", "removed"),
    ]


def test_a_source_that_is_unavailable_now_is_named_with_its_reason(desk: Desk) -> None:
    desk.run(two_turns)
    desk.world.now(flag="raises", rules="short")
    out = desk.show()
    assert "Nothing would be told" in out
    assert r"  Unavailable: world/flag of the plugin 'world': it raised OSError: no \x1b[31mnet" in out
    (missing,) = desk.document()["now"]["unavailable"]
    assert missing == {
        "key": "world/flag",
        "owner": "world",
        "reason": "it raised OSError: no \x1b[31mnet",
        "required": True,
    }


def test_a_pending_prompt_and_a_first_baseline_are_what_a_new_session_waits_for(desk: Desk) -> None:
    desk.run(lambda run: run.admit("hello"))
    out = desk.show()
    assert "It has no Context Epoch: no turn was started yet.\n" in out
    assert "Snapshot  none: no epoch stands\n" in out
    assert "  1 pending prompt would be promoted.\n" in out
    assert "  A new epoch would begin, the first of the session.\n  baseline  36 B, about 9 tokens  sha256 " in out
    assert "    world/flag  of the plugin 'world'  15 B, about 4 tokens\n" in out


def test_a_first_baseline_that_is_blocked_is_said_with_the_sources(desk: Desk) -> None:
    desk.run(lambda run: run.admit("hello"))
    desk.world.now(flag="unavailable", rules="short")
    out = desk.show()
    assert "  It cannot be said: The first baseline is blocked because these context sources are unavailable: " in out
    assert "  Unavailable: world/flag of the plugin 'world': it is unavailable now\n" in out
    desk.world.now(flag="on", rules="renders nothing")
    assert "  Unavailable: world/rules of the plugin 'world': The baseline rendering of" in desk.show()


def test_a_fresh_baseline_that_is_due_and_blocked_is_said(desk: Desk) -> None:
    async def work(run: Running) -> None:
        await two_turns(run)
        await run.compact()

    desk.run(work)
    assert "  A new epoch would begin, after a compaction.\n" in desk.show()
    desk.world.now(flag="unavailable", rules="short")
    assert "  A fresh baseline is due, and cannot be made without 'world/flag'.\n" in desk.show()
    assert desk.document()["now"]["blocked"] == ["world/flag"]


def test_the_directory_of_the_session_is_looked_at_and_not_the_current_one(desk: Desk, tmp_path: Path) -> None:
    told = "environment"
    desk.world = World(tmp_path / "world", tuple(name for name in BUILTINS if name != told))
    here = write(desk.project / ".opencode" / "x", "").parents[1]
    desk.run(two_turns, directory=here)
    other = tmp_path / "other"
    other.mkdir()
    assert main(["-C", str(other), "context", "ses_1", "--storage", desk.url, "--json"]) == 0
    now = json.loads(desk.capsys.readouterr().out)["now"]
    (change,) = now["sources"]
    assert change["after"]["value"]["Working directory"] == str(desk.project)


def test_a_session_that_moved_would_begin_a_new_epoch_where_it_is_now(desk: Desk, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()

    async def work(run: Running) -> None:
        await run.turn("one")
        await run.store.move(run.session, directory=str(other), project="test")

    desk.run(work)
    out = desk.show()
    assert f"Now  in {other}, agent build\n  A new epoch would begin, after the session moved.\n" in out
    assert "    world/flag  unchanged  of the plugin 'world'  15 B, about 4 tokens\n" in out
    assert desk.document()["now"]["reason"] == "moved"


def test_a_directory_that_is_gone_is_said_and_the_past_is_shown(desk: Desk) -> None:
    a_change(desk)
    desk.project.rmdir()
    assert main(["context", "ses_1", "--storage", desk.url]) == 0
    captured = desk.capsys.readouterr()
    assert "system message  #22" in captured.out
    assert f"  It cannot be said: The directory '{desk.project}' does not exist.\n" in captured.out
    assert main(["context", "ses_1", "--storage", desk.url, "--json"]) == 0
    now = json.loads(desk.capsys.readouterr().out)["now"]
    assert (now["step"], now["problem"]) == (None, f"The directory '{desk.project}' does not exist.")


PRODUCES = """\
from plugin_sdk import hookimpl

async def produce():
    raise LookupError("gone \\x1b[31m")

@hookimpl
def opencode_context_sources(scope):
    scope.add_context("broken/entry", produce)
    return ()
"""


def test_whatever_fails_now_the_past_is_shown(desk: Desk, tmp_path: Path) -> None:
    a_change(desk)
    broken = write(tmp_path / "broken.py", PRODUCES)
    configure(plugin=[str(desk.world.plugin), str(broken)], plugin_block=list(BUILTINS))
    out = desk.show()
    assert "system message  #22" in out
    assert "  It cannot be said: LookupError: gone \\x1b[31m\n" in out
    assert "Traceback" not in out
    assert "    Traceback" in desk.show("--debug")


# What may have happened to a session


def test_the_end_of_each_epoch_is_told(desk: Desk) -> None:
    async def work(run: Running) -> None:
        await run.turn("one")
        await run.compact()
        await run.turn("two")
        desk.world.now(flag="off")
        await run.turn("three")
        page = await run.store.messages(run.session)
        message = next(entry.message.id for entry in page.items if isinstance(entry.message, SystemMessage))
        await run.store.log.append(MessageRemoved(session=run.session, at=NOON, message=message))
        await run.turn("four")
        await run.store.move(run.session, directory=f"{desk.project}\n\x1b[0m", project="other")

    desk.run(work)
    out = desk.show()
    at = moment(NOON)
    assert f"  ended  #13  {at}  replaced, after a compaction\n" in out
    assert f"Epoch 2  #13  {at}  after a compaction\n" in out
    assert "1 system message that it had told was removed\n" in out
    assert "taken back at #" in out
    assert f"{at}  after a system message was taken back\n" in out
    assert f"the session moved to '{desk.project} \\x1b[0m'\n" in out


@pytest.mark.behaviour("BX-04")
def test_a_broken_prefix_is_loud(desk: Desk) -> None:
    async def work(run: Running) -> None:
        await run.turn("one")
        prepared = TurnPrepared(
            session=run.session, at=NOON, turn="t", attempt=2, messages=3, digest="d" * 64, prefix="e" * 64
        )
        await run.store.log.append(prepared)

    desk.run(work)
    out, first = desk.show(), desk.document()["epochs"][0]["turns"][0]["digest"][:12]
    assert "2 turns, 0 system messages, the prefix broke 1 time\n" in out
    assert f"  turn 2, attempt 2  #11  {moment(NOON)}  3 messages  prefix eeeeeeeeeeee, BROKEN" in out
    why = f"THE PREFIX BROKE: it does not begin with what turn 1 sent, {first}. Nothing in the log says why."
    assert why in " ".join(out.split())


def test_a_prefix_that_a_compaction_cut_says_so(desk: Desk) -> None:
    async def work(run: Running) -> None:
        await two_turns(run)
        await run.compact()
        desk.world.now(flag="unavailable", rules="short")
        await run.turn("three")

    desk.run(work)
    assert "Since then: compaction at #" in " ".join(desk.show().split())


def test_sessions_that_never_ran_here_say_why_they_have_no_epoch(desk: Desk, tmp_path: Path) -> None:
    old: Any = {"info": {"id": "ses_1", "projectID": "p", "directory": "/", "time": {"created": 1, "updated": 1}}}
    desk.run(lambda run: run.store.import_(old), session="ses_2")
    assert "It has no Context Epoch: it came from elsewhere, and no turn was started here.\n" in desk.show()
    url = made_first_generation(f"jsonfiles://{tmp_path}/old", 1)
    assert main(["storage", "migrate", url]) == 0
    (session,) = [str(key[1]) for table, key, _ in content(url) if table == "session"]
    desk.capsys.readouterr()
    assert main(["context", "show", session, "--storage", url]) == 0
    out = desk.capsys.readouterr().out
    assert "It has no Context Epoch: it is of the first generation, and was never continued here.\n" in out
    assert "  log        0 events, 0 epochs" in out


def test_what_was_told_outside_of_any_epoch_is_loud(desk: Desk) -> None:
    desk.run(lambda run: run.store.log.append(TurnPrepared(session=run.session, at=NOON, turn="t")))
    assert "Outside of any epoch, which should not be\n  turn 1  #1" in desk.show()


# What people may see


def _without_paths(out: str) -> str:
    """Return what does not depend on where the tests run."""
    return out.partition("Epoch 1")[2].partition("Now")[0]


def test_texts_are_shortened_from_where_they_differ_and_whole_with_full(desk: Desk) -> None:
    long = "All is well. " * 400
    desk.world.now(flag=long, rules="short")

    async def work(run: Running) -> None:
        await run.turn("one")
        desk.world.now(flag=f"{long}Or not.", rules="short")
        await run.turn("two")

    desk.run(work)
    out = desk.show()
    assert '      before  …l. All is well. "\n' in out
    assert '      after   …l. All is well. Or not."\n' in out
    assert all(len(line) <= 100 for line in _without_paths(out).splitlines())
    full = desk.show("--full")
    assert f"        The flag is now {long}Or not..\n" in full
    assert f"        The flag is {long}.\n" in full
    assert desk.document()["epochs"][0]["messages"][0]["sources"][0]["before"]["value"] == long


@pytest.mark.parametrize("columns", ["60", "100", "200"])
def test_whatever_others_wrote_is_escaped_and_fits(columns: str, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    hostile = "\x1b]0;owned\x07\x1b[2J\r\n\u202e\u2028\ud800"

    async def work(run: Running) -> None:
        await run.store.update(run.session, lambda found: attrs.evolve(found, title=hostile))
        desk.world.now(flag=hostile, rules={hostile: [hostile]})
        await run.turn(hostile)
        desk.world.now(flag="\x1b" * 100_000, rules={hostile: [1]})
        await run.turn("two")
        await run.store.switch_agent(run.session, hostile)
        await run.turn("three")
        prepared = TurnPrepared(session=run.session, at=10**30, turn=hostile, digest=hostile * 9, prefix=hostile * 9)
        await run.store.log.append(prepared)

    desk.run(work)
    for args in ((), ("--full",)):
        out = desk.show(*args)
        assert [char for char in out if not char.isprintable() and char != "\n"] == []
    assert max(map(len, _without_paths(desk.show()).splitlines())) <= int(columns)
    assert desk.document()["session"]["title"] == hostile


def test_many_updates_are_told_in_order(desk: Desk) -> None:
    async def work(run: Running) -> None:
        for number in range(40):
            desk.world.now(flag=number, rules="short")
            await run.turn(f"prompt {number}")

    desk.run(work)
    epoch = desk.document()["epochs"][0]
    assert [each["sources"][0]["after"]["value"] for each in epoch["messages"]] == list(range(1, 40))
    assert [each["sent_with_turn"] for each in epoch["messages"]] == list(range(2, 41))
    assert {turn["stable"] for turn in epoch["turns"][1:]} == {True}


# What goes wrong


def test_an_unknown_id_is_two_lines_that_name_the_store(desk: Desk, tmp_path: Path) -> None:
    a_change(desk)
    assert main(["context", "ses_9", "--storage", desk.url]) == 1
    assert desk.capsys.readouterr().err.splitlines() == [
        f"Error: There is no session 'ses_9' in the store '{tmp_path}/store.db'.",
        "Check the id, or name another store with '--storage'.",
    ]


@pytest.mark.parametrize(
    ("word", "meant"), [("preveiw", " Did you mean 'preview'?"), ("shwo", " Did you mean 'show'?"), ("xyz", "")]
)
def test_a_word_that_is_neither_a_command_nor_an_id_says_what_it_may_have_been(
    word: str, meant: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opencode_core.host.Host.open", None)
    assert main(["context", word]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"Error: '{word}' is neither a command nor the id of a session, which begins with 'ses_'.{meant}",
        "Try 'opencode-core context --help'.",
    ]


@pytest.mark.parametrize("args", [["ses_1", "more"], ["show"], ["--nope"], ["ses_1", "--nope"], ["show", "a", "b"]])
def test_wrong_usage_is_two_lines_and_exit_code_2(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["context", *args]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_the_group_says_what_it_can_do_without_opening_anything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("opencode_core.host.Host.open", None)
    for args in ([], ["--help"], ["preview", "--help"], ["show", "--help"]):
        assert main(["context", *args]) == 0
    out = capsys.readouterr().out
    for word in ("preview", "show", "SESSION", "--json", "--full", "--storage", "--agent", "--text"):
        assert word in out


def test_a_store_that_is_not_there_is_an_error_and_none_is_made(desk: Desk, tmp_path: Path) -> None:
    for url in (f"sqlite://{tmp_path}/deep/x.db", f"jsonfiles://{tmp_path}/deep/x"):
        assert main(["context", "ses_1", "--storage", url]) == 1
        assert desk.capsys.readouterr().err.startswith("Error: There is no store")
    assert not (tmp_path / "deep").exists()


def test_an_older_store_is_not_migrated(desk: Desk, tmp_path: Path) -> None:
    url = made_first_generation(f"jsonfiles://{tmp_path}/old", 1)
    before = content(url)
    assert main(["context", "ses_1", "--storage", url]) == 1
    assert "Run 'opencode-core storage migrate'" in desk.capsys.readouterr().err
    assert content(url) == before


def test_an_event_that_cannot_be_read_is_two_lines_and_a_traceback_with_debug(desk: Desk) -> None:
    a_change(desk)
    spoiled: Any = {(EVENTS, ("ses_1", 5)): {"id": "x", "type": "nope/1", "data": {}}}
    with_store(desk.url, lambda storage: put(storage, spoiled))
    assert main(["context", "ses_1", "--storage", desk.url]) == 1
    assert len(desk.capsys.readouterr().err.splitlines()) == 2
    assert main(["context", "ses_1", "--storage", desk.url, "--debug"]) == 1
    assert "Traceback" in desk.capsys.readouterr().err


def test_it_runs_as_a_program_of_its_own(desk: Desk) -> None:
    a_change(desk)
    done = run("context", "ses_1", "--storage", desk.url, cwd=desk.project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == desk.show()


async def one_turn(run: Running) -> None:
    await run.turn("one")


def test_what_is_warned_of_and_ignored_in_its_directory_is_shown_under_now(desk: Desk, tmp_path: Path) -> None:
    desk.run(one_turn)
    (desk.project / ".git").mkdir()
    (desk.project / "AGENTS.md").mkdir()
    write(desk.project / "opencode.json", '{"instructions": ["rules.md"]}')
    configure(plugin=[str(desk.world.plugin)], plugin_block=[each for each in BUILTINS if each != "instructions"])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for where in (desk.project, elsewhere):
        assert main(["-C", str(where), "context", "ses_1", "--storage", desk.url]) == 0
        now = desk.capsys.readouterr().out.partition("\nNow  ")[2]
        assert now.count(f"  Warning: The instructions in '{desk.project / 'AGENTS.md'}' are left out") == 1
        assert now.count(f"  Warning: What '{desk.project / 'opencode.json'}' says is ignored") == 1
    warnings = desk.document()["now"]["warnings"]
    assert [list(each) for each in warnings] == [["plugin", "problem", "remedy"]] * 2


def test_a_session_that_nothing_is_warned_of_has_no_warnings(desk: Desk) -> None:
    desk.run(one_turn)
    assert desk.document()["now"]["warnings"] == []
    assert "Warning" not in desk.show()
