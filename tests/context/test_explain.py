"""Explaining: which source told the model what, from which value to which, at which turn; from the log alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_core.context.explain import PAGE, Explaining, explain
from opencode_core.context.standing import read_epoch
from opencode_core.context.told import EpochTold, Explanation, extent_of
from opencode_core.errors import EventDecodeError
from opencode_core.ids import Ids
from opencode_core.model.codec import encode
from opencode_core.model.context import UNAVAILABLE, SnapshotEntry
from opencode_core.model.event.conversation import (
    MessageImported,
    MessageRemoved,
    SyntheticAdded,
    ToolOutputCleared,
    TurnPrepared,
    TurnSettled,
)
from opencode_core.model.event.session import (
    ContextAdmitted,
    EpochStarted,
    RevertCommitted,
    SessionCreated,
    SessionMoved,
    SessionTitled,
    TextSection,
)
from opencode_core.model.message import SystemMessage
from opencode_core.model.part import Moment
from opencode_core.model.tokens import estimate_tokens
from opencode_core.session.prefix import measure
from opencode_core.storage.log import EventLog
from opencode_core.storage.tables import EVENTS
from plugin_sdk.testing import StillClock
from plugins_builtin.storage_memory import open_store
from tests.context.running import Running, running
from tests.context.worlds import World


@asynccontextmanager
async def told(directory: Path, **things: Any) -> AsyncIterator[tuple[World, Running]]:
    world = World(things)
    async with running(directory, {"world": world}, clock=StillClock()) as run:
        yield world, run


async def explained(run: Running) -> Explanation:
    return await explain(run.store.log, run.session)


async def stored(run: Running) -> Any:
    return await run.store.log.storage.view(lambda rows: read_epoch(rows, run.session))


async def newest_system_message(run: Running) -> str:
    page = await run.store.messages(run.session)
    return next(entry.message.id for entry in page.items if isinstance(entry.message, SystemMessage))


async def prepare(run: Running, **fields: Any) -> None:
    await run.store.log.append(TurnPrepared(session=run.session, at=1, **{"turn": "turn_x", **fields}))


@pytest.mark.behaviour("BX-06")
async def test_a_change_is_explained_by_source_values_turn_and_tokens(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on", rules="short") as (world, run):
        await run.turn("one")
        await run.turn("two")
        world.things["flag"] = {"is": "off"}
        await run.turn("three")
        (epoch,) = (await explained(run)).epochs
        (message,) = epoch.messages
        (change,) = message.sources
        assert (change.key, change.change) == ("world/flag", "changed")
        assert (change.before, change.after) == (
            SnapshotEntry(value="on", removed="There is no flag any more."),
            SnapshotEntry(value={"is": "off"}, removed="There is no flag any more."),
        )
        assert (message.after, message.sent, message.retracted) == (2, 3, None)
        assert message.text == change.text == "The flag is now {'is': 'off'}."
        assert extent_of(change.text).tokens == estimate_tokens(change.text) == 8


@pytest.mark.behaviour("BX-06")
async def test_each_source_of_a_message_has_its_own_values_and_its_own_part_of_the_text(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on", rules="short") as (world, run):
        await run.turn("one")
        world.things = {"rules": "long"}
        await run.turn("two")
        (message,) = (await explained(run)).epochs[0].messages
        assert [(each.key, each.change, each.text) for each in message.sources] == [
            ("world/rules", "changed", "The rules is now long."),
            ("world/flag", "removed", "There is no flag any more."),
        ]
        assert message.sources[1].after is None
        assert message.text == "\n\n".join(each.text for each in message.sources)


@pytest.mark.behaviour("BX-06")
async def test_a_source_that_came_back_is_new_and_has_no_value_before(tmp_path: Path) -> None:
    async with told(tmp_path, rules="short") as (world, run):
        await run.turn("one")
        world.things["flag"] = None  # a value like any other
        await run.turn("two")
        (message,) = (await explained(run)).epochs[0].messages
        (change,) = message.sources
        assert (change.change, change.before) == ("new", None)
        assert change.after == SnapshotEntry(value=None, removed="There is no flag any more.")


async def test_an_epoch_says_when_and_why_it_began_and_what_each_source_gave(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on", rules="short") as (_, run):
        await run.turn("one")
        explanation = await explained(run)
        (epoch,) = explanation.epochs
        assert (epoch.number, epoch.reason, epoch.sequence, epoch.since) == (1, "first", 2, 1)
        assert epoch.at == run.store.now()
        assert [(each.key, each.change, each.text) for each in epoch.sources] == [
            ("world/flag", "new", "The flag is on."),
            ("world/rules", "new", "The rules is short."),
        ]
        assert (epoch.baseline, epoch.end) == ("The flag is on.\n\nThe rules is short.", None)
        assert explanation.snapshot == (await stored(run)).snapshot


# Turns


@pytest.mark.behaviour("BX-04")
async def test_each_turn_has_its_prefix_and_within_an_epoch_it_is_stable(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (world, run):
        for number in range(3):
            world.things["flag"] = number
            await run.turn(f"prompt {number}")
        (epoch,) = (await explained(run)).epochs
        first, second, third = epoch.turns
        assert [turn.stable for turn in epoch.turns] == [None, True, True]
        assert (second.prefix, third.prefix) == (first.digest, second.digest)
        assert [turn.number for turn in epoch.turns] == [1, 2, 3]
        assert [turn.outcome for turn in epoch.turns] == ["completed"] * 3
        whole = measure(run.requests[-1].system, run.requests[-1].messages)
        assert (third.messages, third.digest) == (whole.messages, whole.digest)


@pytest.mark.behaviour("BX-04")
async def test_a_request_that_does_not_begin_with_the_one_before_it_is_a_break(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (_, run):
        await run.turn("one")
        await prepare(run, messages=3, digest="d" * 64, prefix="e" * 64)
        (epoch,) = (await explained(run)).epochs
        first, second = epoch.turns
        assert (second.stable, second.expected, second.cuts) == (False, first.digest, ())


async def test_a_break_names_what_changed_the_conversation_before_it(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on", rules="short") as (world, run):
        await run.turn("one")
        await run.turn("two")
        await run.compact()
        world.things["flag"] = UNAVAILABLE  # so there is no fresh baseline, and the epoch goes on
        await run.turn("three")
        (epoch,) = (await explained(run)).epochs
        assert [turn.stable for turn in epoch.turns] == [None, True, False]
        assert [(cut.kind, cut.sequence < epoch.turns[-1].sequence) for cut in epoch.turns[-1].cuts] == [
            ("compaction", True)
        ]


async def test_a_request_that_was_not_compared_with_the_one_before_is_not_called_broken(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (_, run):
        await run.turn("one")
        await prepare(run, messages=3, digest="d" * 64)
        await prepare(run, turn="turn_y")
        await prepare(run, turn="turn_z", messages=3, digest="d" * 64, prefix="d" * 64)
        (epoch,) = (await explained(run)).epochs
        assert [turn.stable for turn in epoch.turns] == [None, None, None, None]


async def test_attempts_at_one_turn_have_its_number_and_the_last_has_its_outcome(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (_, run):
        await run.turn("one")
        for attempt in (1, 2):
            await prepare(run, attempt=attempt)
        await run.store.log.append(TurnSettled(session=run.session, at=1, turn="turn_x", outcome="failed"))
        (epoch,) = (await explained(run)).epochs
        assert [(turn.number, turn.attempt, turn.outcome) for turn in epoch.turns] == [
            (1, 1, "completed"),
            (2, 1, ""),
            (2, 2, "failed"),
        ]


# How epochs end


async def test_after_a_compaction_the_next_epoch_says_what_changed_since(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on", rules="short") as (world, run):
        await run.turn("one")
        world.things["flag"] = "off"
        await run.turn("two")
        await run.compact()
        world.things = {"flag": "off", "rules": "long"}
        await run.turn("three")
        first, second = (await explained(run)).epochs
        assert first.end is not None
        assert (first.end.kind, first.end.reason, first.end.sequence) == ("replaced", "compaction", second.sequence)
        assert second.reason == "compaction"
        assert [(each.key, each.change) for each in second.sources] == [
            ("world/flag", "unchanged"),
            ("world/rules", "changed"),
        ]
        assert second.sources[1].before is not None
        assert second.sources[1].before.value == "short"
        assert [turn.stable for turn in second.turns] == [None]


async def test_a_fresh_baseline_also_says_which_sources_are_gone(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on", rules="short") as (world, run):
        await run.turn("one")
        await run.compact()
        world.things = {"rules": "short"}
        await run.turn("two")
        _, second = (await explained(run)).epochs
        assert [(each.key, each.change, each.text) for each in second.sources] == [
            ("world/rules", "unchanged", "The rules is short."),
            ("world/flag", "removed", ""),
        ]


async def test_a_value_that_is_no_longer_understood_is_explained_with_both_values(tmp_path: Path) -> None:
    def decode(_stored: Any) -> Any:
        raise ValueError("what is this?")

    world = World({"flag": "on"}, changes={"flag": {"decode": decode}})
    async with running(tmp_path, {"world": world}) as run:
        await run.turn("one")
        world.things["flag"] = "off"
        await run.turn("two")
        first, second = (await explained(run)).epochs
        assert first.end is not None
        assert (first.end.kind, first.end.reason, second.reason) == ("replaced", "incompatible", "incompatible")
        (change,) = second.sources
        assert change.before is not None
        assert change.after is not None
        assert (change.change, change.before.value, change.after.value) == ("changed", "on", "off")


async def test_a_move_ends_the_epoch_and_says_where_to(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (_, run):
        await run.turn("one")
        await run.store.move(run.session, directory="/elsewhere", project="other")
        explanation = await explained(run)
        (epoch,) = explanation.epochs
        assert epoch.end is not None
        assert (epoch.end.kind, epoch.end.directory, epoch.end.sequence) == ("moved", "/elsewhere", explanation.head)
        assert (explanation.snapshot, list(explanation.last)) == ({}, ["world/flag"])
        await run.store.move(run.session, directory=str(tmp_path), project="test")
        await run.turn("two")
        _, second = (await explained(run)).epochs
        assert (second.reason, second.sources[0].change) == ("moved", "unchanged")


async def test_taking_back_a_told_message_ends_the_epoch_and_marks_the_message(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (world, run):
        prompt = await run.admit("one")
        await run.turn()
        world.things["flag"] = "off"
        await run.turn("two")
        message = await newest_system_message(run)
        await run.store.log.append(MessageRemoved(session=run.session, at=9, message=message))
        explanation = await explained(run)
        (epoch,) = explanation.epochs
        assert epoch.end is not None
        assert (epoch.end.kind, epoch.end.reason) == ("retracted", "message removed")
        assert (epoch.end.messages, epoch.end.at) == ((message,), 9)
        assert (epoch.messages[0].sent, epoch.messages[0].retracted) == (2, explanation.head)
        await run.turn("three")
        assert [each.reason for each in (await explained(run)).epochs] == ["first", "retracted"]
        await run.store.log.append(RevertCommitted(session=run.session, at=9, message=prompt))
        assert (await explained(run)).epochs[0].messages == epoch.messages  # it was gone already


async def test_a_revert_behind_a_told_message_ends_the_epoch_and_one_after_it_does_not(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (world, run):
        first = await run.admit("one")
        await run.turn()
        world.things["flag"] = "off"
        await run.turn("two")
        message = await newest_system_message(run)
        late = await run.admit("three")
        await run.turn()
        await run.store.log.append(RevertCommitted(session=run.session, at=1, message=late))
        assert (await explained(run)).epochs[0].end is None
        await run.store.log.append(RevertCommitted(session=run.session, at=1, message=first))
        explanation = await explained(run)
        end = explanation.epochs[0].end
        assert end is not None
        assert (end.kind, end.reason, end.messages) == ("retracted", "revert", (message,))
        assert await stored(run) is None
        assert explanation.snapshot == {}


async def test_taking_back_a_message_that_the_baseline_has_ends_nothing(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (world, run):
        await run.turn("one")
        world.things["flag"] = "off"
        await run.turn("two")
        message = await newest_system_message(run)
        await run.compact()
        await run.turn("three")
        await run.store.log.append(MessageRemoved(session=run.session, at=1, message=message))
        first, second = (await explained(run)).epochs
        assert second.end is None
        assert first.messages[0].retracted is not None
        assert await stored(run) is not None


async def test_a_message_that_was_taken_back_before_the_next_turn_was_never_sent(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (world, run):
        await run.turn("one")
        world.things["flag"] = "off"
        await run.boundaries.cross(run.session)
        assert (await explained(run)).epochs[0].messages[0].sent is None
        message = await newest_system_message(run)
        await run.store.log.append(MessageRemoved(session=run.session, at=1, message=message))
        await run.turn("two")
        first, second = (await explained(run)).epochs
        assert (first.messages[0].after, first.messages[0].sent) == (1, None)
        assert second.turns[0].number == 2


async def test_a_message_that_a_move_overtook_was_never_sent(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (world, run):
        await run.turn("one")
        world.things["flag"] = "off"
        await run.boundaries.cross(run.session)
        await run.store.move(run.session, directory=str(tmp_path), project="test")
        await run.turn("two")
        first, second = (await explained(run)).epochs
        assert (first.messages[0].sent, first.messages[0].retracted) == (None, None)
        assert second.sources[0].text == "The flag is off."


# Logs with nothing, with much, and with what is wrong


async def test_a_session_that_was_never_run_has_no_epoch_and_says_where_it_came_from(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (_, run):
        created = await explained(run)
        assert (created.origin, created.epochs, created.snapshot, created.head) == ("created", (), {}, 0)
        document: Any = {
            "info": {"id": "ses_old", "projectID": "p", "directory": "/", "time": {"created": 1, "updated": 1}}
        }
        await run.store.import_(document)
        imported = await explain(run.store.log, "ses_old")
        assert (imported.origin, imported.epochs) == ("imported", ())
        nothing = await explain(run.store.log, "ses_without_a_log")
        assert (nothing.origin, nothing.head, nothing.epochs) == ("", -1, ())


async def test_a_long_log_is_read_in_pages_and_to_its_end(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (world, run):
        await run.turn("one")
        titles = [SessionTitled(session=run.session, at=1, title=str(number)) for number in range(PAGE * 3)]
        await run.store.log.append(*titles)
        world.things["flag"] = "off"
        await run.turn("two")
        limits: list[int] = []

        class Counting(EventLog):
            async def history(self, *args: Any, limit: int = 50, **more: Any) -> Any:
                limits.append(limit)
                return await super().history(*args, limit=limit, **more)

        log = Counting(storage=run.store.log.storage, ids=run.store.log.ids)
        explanation = await explain(log, run.session)
        assert explanation == await explained(run)
        assert explanation.head == await log.head(run.session)
        assert len(explanation.epochs[0].messages) == 1
        assert set(limits) == {PAGE}
        assert len(limits) == explanation.head // PAGE + 1


async def test_an_event_that_cannot_be_read_is_a_typed_error(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (_, run):
        await run.turn("one")
        await run.store.log.storage.transact(lambda rows: rows.put(EVENTS, (run.session, 2), {"id": "x"}))
        with pytest.raises(EventDecodeError, match="The event 2 of"):
            await explained(run)


async def test_what_was_told_while_no_epoch_stood_is_kept_apart(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (_, run):
        await prepare(run, messages=1, digest="d" * 64)
        await run.store.log.append(
            ContextAdmitted(session=run.session, at=1, message="msg_stray", text="Stray.", removed=("world/flag",))
        )
        explanation = await explained(run)
        assert explanation.epochs == ()
        assert [type(each).__name__ for each in explanation.outside] == ["TurnTold", "MessageTold"]


async def test_sections_that_do_not_fit_their_text_hide_nothing_else(tmp_path: Path) -> None:
    async with told(tmp_path) as (_, run):
        sections = [("a/a", 0, 3), ("a/b", -5, 99), ("a/c", 7, 2), ("a/a", 5, 8)]
        await run.store.log.append(
            EpochStarted(
                session=run.session,
                at=1,
                baseline="one, two",
                sections=tuple(TextSection(key=key, start=start, end=end) for key, start, end in sections),
                snapshot={"a/d": SnapshotEntry(value=1)},
                since=0,
            )
        )
        (epoch,) = (await explained(run)).epochs
        assert {each.key: each.text for each in epoch.sources} == {
            "a/a": "onetwo",
            "a/b": "one, two",
            "a/c": "",
            "a/d": "",
        }


# Whatever happens, what is explained is what is stored

KEYS = ("a/a", "b/b", "c/c")
VALUES = st.none() | st.integers(0, 3) | st.text(max_size=3)
SNAPSHOTS = st.dictionaries(st.sampled_from(KEYS), VALUES.map(lambda value: SnapshotEntry(value=value)))
NUMBERS = st.integers(0, 30)
DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), SNAPSHOTS),
        st.tuples(st.just("admit"), SNAPSHOTS, st.sets(st.sampled_from(KEYS))),
        st.tuples(st.just("say")),
        st.tuples(st.just("import")),
        st.tuples(st.just("turn")),
        st.tuples(st.just("move")),
        st.tuples(st.just("remove"), NUMBERS),
        st.tuples(st.just("revert"), NUMBERS),
    ),
    max_size=14,
)


@attrs.define
class Doing:
    """Appends what a list of deeds says, as far as it can be."""

    log: EventLog
    said: list[str] = attrs.field(factory=list)

    async def do(self, deed: str, *more: Any) -> None:
        who: dict[str, Any] = {"session": "ses_1", "at": 1}
        head = await self.log.head("ses_1")
        match deed:
            case "begin":
                await self.log.append(EpochStarted(**who, baseline="text", snapshot=more[0], since=head))
            case "admit" if await self.stands():
                message, removed = self.new(), tuple(sorted(more[1] - more[0].keys()))
                await self.log.append(
                    ContextAdmitted(**who, message=message, text="told", changed=more[0], removed=removed)
                )
            case "say":
                await self.log.append(SyntheticAdded(**who, message=self.new(), text="said"))
            case "import":
                message = self.new()
                system = SystemMessage(id=message, session="ses_1", time=Moment(created=1), text="told elsewhere")
                document: Any = encode(system)
                await self.log.append(MessageImported(**who, message=message, document=document))
            case "turn":
                await self.log.append(TurnPrepared(**who, turn=f"turn_{head}"))
            case "move":
                await self.log.append(SessionMoved(**who, directory="/x", project="p"))
            case "remove" if self.said:
                message = self.said.pop(more[0] % len(self.said))
                await self.log.append(MessageRemoved(**who, message=message))
            case "revert" if self.said:
                place = more[0] % len(self.said)
                await self.log.append(RevertCommitted(**who, message=self.said[place]))
                del self.said[place + 1 :]

    async def stands(self) -> bool:
        return await self.log.storage.view(lambda rows: read_epoch(rows, "ses_1")) is not None

    def new(self) -> str:
        self.said.append(self.log.ids.ascending("message"))
        return self.said[-1]


@settings(max_examples=100)
@given(deeds=DEEDS)
async def test_whatever_happens_the_snapshot_that_is_explained_is_the_one_that_is_stored(deeds: list[Any]) -> None:
    storage = await open_store("memory:")
    doing = Doing(EventLog(storage=storage, ids=Ids(lambda: 1)))
    await doing.log.append(SessionCreated(session="ses_1", at=1, project="p", directory="/"))
    for deed in deeds:
        await doing.do(*deed)
    explanation = await explain(doing.log, "ses_1")
    epoch = await storage.view(lambda rows: read_epoch(rows, "ses_1"))
    await storage.aclose()
    standing = [each for each in explanation.epochs if each.end is None]
    assert explanation.snapshot == ({} if epoch is None else epoch.snapshot)
    assert [each.sequence for each in standing] == ([] if epoch is None else [epoch.sequence])
    assert standing in ([], [explanation.epochs[-1]] if explanation.epochs else [])


async def test_cuts_belong_to_the_next_request_alone(tmp_path: Path) -> None:
    async with told(tmp_path, flag="on") as (_, run):
        await run.turn("one")
        explaining = Explaining()
        for recorded in (await run.store.log.history(run.session, limit=100, private=True)).events:
            explaining.hear(recorded)
        cleared = ToolOutputCleared(session=run.session, at=1, message="m", part="p")
        turns = [TurnPrepared(session=run.session, at=1, turn=f"turn_{number}") for number in range(2)]
        for event in (cleared, cleared, *turns):
            recorded = attrs.evolve(recorded, sequence=explaining.head + 1, event=event)
            explaining.hear(recorded)
        epoch: EpochTold = explaining.finish().epochs[0]
        assert [len(turn.cuts) for turn in epoch.turns] == [0, 2, 0]
