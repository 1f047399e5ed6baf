"""What is appended is durable with everything that follows from it, or not at all, and is told afterwards."""

from typing import Any

import anyio
import pytest

from opencode_core.bus import Bus
from opencode_core.errors import LiveOnlyError, SessionNotFoundError, SubscriberOverflowError, UnknownEventError
from opencode_core.model.codec import EVENTS as SESSIONS_ONLY
from opencode_core.model.event.base import Event, EventLocation, Recorded
from opencode_core.model.event.session import SessionTitled
from opencode_core.model.projection import project
from opencode_core.model.rows import SESSIONS, Draft
from opencode_core.storage.log import event_bus
from opencode_core.storage.tables import EVENTS, HEADS
from plugin_sdk.storage import Storage
from tests.storage.making import (
    Noticed,
    Weighed,
    all_rows,
    created,
    log_on,
    sequences,
    take,
    titled,
    touched,
    weighed,
    whole,
)


@pytest.mark.behaviour("EV-01")
async def test_where_something_happened_is_recorded(memory: Storage) -> None:
    log = log_on(memory)
    here = EventLocation(directory="/w", workspace="one")
    await log.append(created(), titled("a"), location=here)
    assert [each.location for each in await whole(log)] == [here, here]


@pytest.mark.behaviour("EV-02")
async def test_without_a_place_none_is_stored(memory: Storage) -> None:
    await log_on(memory).append(created())
    rows = await all_rows(memory)
    assert set(rows[EVENTS, ("ses_1", 0)]) == {"id", "type", "data"}  # type: ignore[arg-type]


@pytest.mark.behaviour("EV-03", "EV-17")
async def test_an_event_is_one_row_with_its_versioned_type_below_its_log(storage: Storage) -> None:
    (recorded,) = await log_on(storage).append(weighed(5))
    rows = await all_rows(storage)
    assert rows == {
        (EVENTS, ("apple", 0)): {"id": recorded.id, "type": "thing.weighed/1", "data": {"at": 1, "grams": 5}},
        (HEADS, ("apple",)): {"sequence": 0},
    }
    assert recorded.event.kind.type == "thing.weighed"


@pytest.mark.behaviour("EV-18")
async def test_each_log_counts_from_0(memory: Storage) -> None:
    log = log_on(memory)
    assert await log.head("ses_1") == -1
    first = await log.append(created())
    second = await log.append(titled("a"), created("ses_2"), titled("b"))
    assert sequences(first + second) == [0, 1, 0, 2]
    assert await log.head("ses_1") == 2


@pytest.mark.behaviour("EV-19")
async def test_an_event_says_by_which_field_its_log_is_chosen(memory: Storage) -> None:
    log = log_on(memory)
    await log.append(weighed(1), weighed(2, thing="pear"), weighed(3))
    assert [each.event for each in await whole(log, "apple")] == [weighed(1), weighed(3)]


@pytest.mark.behaviour("EV-05")
async def test_subscribers_of_a_type_of_all_and_of_recorded_events_all_receive_it(memory: Storage) -> None:
    log = log_on(memory)
    typed: Any = log.bus.subscribe(Weighed)
    recorded: Any = log.bus.subscribe(Recorded)
    everything: Any = log.bus.subscribe()
    other: Any = log.bus.subscribe(SessionTitled)
    (told,) = await log.append(weighed(1))
    await log.append(created(), titled("a"))
    assert await anext(typed) is told
    assert await anext(recorded) == told
    assert await anext(everything) == told
    assert (await anext(other)).event == titled("a")


@pytest.mark.behaviour("EV-06", "EV-10")
async def test_projectors_run_inline_with_what_is_committed_before_anybody_is_told(memory: Storage) -> None:
    happened: list[Any] = []
    log = log_on(memory, projectors=[lambda _, recorded: happened.append(("projected", recorded))])
    log.bus.listen(lambda event: happened.append(("told", event)))
    first = await log.append(weighed(1))
    second = await log.append(weighed(2))
    assert happened == [("projected", first[0]), ("told", first[0]), ("projected", second[0]), ("told", second[0])]


@pytest.mark.behaviour("EV-07")
async def test_a_commit_hook_runs_after_the_projectors_with_the_sequence_in_the_same_transaction(
    memory: Storage,
) -> None:
    log = log_on(memory)

    def hook(rows: Draft, recorded: Recorded) -> None:
        assert rows.get(SESSIONS, ("prj", "ses_1")) is not None
        rows.put("mine", (recorded.sequence,), recorded.id)

    recorded = await log.append(created(), titled("a"), on_commit=hook)
    rows = await all_rows(memory)
    assert [rows["mine", (number,)] for number in (0, 1)] == [each.id for each in recorded]


async def test_a_commit_hook_that_raises_leaves_nothing(memory: Storage) -> None:
    log = log_on(memory)

    def hook(rows: Draft, _: Recorded) -> None:
        rows.put("mine", ("a",), 1)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        await log.append(created(), on_commit=hook)
    assert await all_rows(memory) == {}


async def test_several_events_are_recorded_all_or_none(storage: Storage) -> None:
    log = log_on(storage)
    heard: list[Event] = []
    log.bus.listen(heard.append)
    with pytest.raises(SessionNotFoundError):
        await log.append(created(), weighed(1), titled("a", session="ses_nobody"))
    assert await all_rows(storage) == {}
    assert heard == []
    assert sequences(await log.append(created())) == [0]


async def test_a_projector_that_raises_leaves_nothing_and_what_it_raised_comes_out(memory: Storage) -> None:
    def refuse(rows: Draft, recorded: Recorded) -> None:
        rows.put("mine", ("a",), 1)
        if recorded.sequence == 1:
            raise RuntimeError("not two")

    log = log_on(memory, projectors=[project, refuse])
    await log.append(created())
    before = await all_rows(memory)
    with pytest.raises(RuntimeError, match="not two"):
        await log.append(titled("a"))
    assert await all_rows(memory) == before


@pytest.mark.behaviour("EV-09")
async def test_a_commit_hook_with_a_live_only_event_is_refused(memory: Storage) -> None:
    log = log_on(memory)
    heard: list[Event] = []
    log.bus.listen(heard.append)
    with pytest.raises(LiveOnlyError, match="'Noticed'"):
        log.tell(Noticed(), on_commit=lambda rows, recorded: None)
    assert heard == []


async def test_neither_kind_of_event_goes_the_way_of_the_other(memory: Storage) -> None:
    log = log_on(memory)
    with pytest.raises(LiveOnlyError):
        log.tell(weighed(1))
    (recorded,) = await log.append(weighed(1))
    with pytest.raises(LiveOnlyError):
        log.tell(recorded)
    before = await all_rows(memory)
    with pytest.raises(LiveOnlyError):
        await log.append(weighed(1), Noticed())  # type: ignore[arg-type]
    assert await all_rows(memory) == before


async def test_an_event_that_the_codec_does_not_know_is_refused(memory: Storage) -> None:
    with pytest.raises(UnknownEventError, match="'Weighed'"):
        await log_on(memory, codec=SESSIONS_ONLY).append(weighed(1))
    assert await all_rows(memory) == {}


@pytest.mark.behaviour("EV-11")
async def test_a_listener_runs_after_the_projectors_until_it_leaves(memory: Storage) -> None:
    happened: list[str] = []
    log = log_on(memory, projectors=[lambda rows, recorded: happened.append("projected")])
    leave = log.bus.listen(lambda event: happened.append("heard"))
    await log.append(weighed(1))
    leave()
    await log.append(weighed(2))
    assert happened == ["projected", "heard", "projected"]


@pytest.mark.behaviour("EV-12")
async def test_a_listener_that_raises_on_a_durable_event_is_alone_with_it(memory: Storage) -> None:
    heard: list[Event] = []
    problems: list[Exception] = []
    bus: Bus[Event] = Bus(on_error=lambda listener, event, error: problems.append(error))
    log = log_on(memory, bus=bus)

    def fail(event: Event) -> None:
        raise RuntimeError("broken listener")

    bus.listen(fail)
    bus.listen(heard.append)
    recorded = await log.append(weighed(1))
    assert sequences(recorded) == [0]
    assert heard == [*recorded]
    assert [str(problem) for problem in problems] == ["broken listener"]


@pytest.mark.behaviour("EV-13")
async def test_whoever_is_told_can_read_what_was_committed(storage: Storage) -> None:
    log = log_on(storage)
    async with log.bus.subscribe(Recorded) as told, anyio.create_task_group() as tasks:
        tasks.start_soon(log.append, weighed(1))
        recorded = await anext(told)
        rows = await all_rows(storage)
    assert (EVENTS, ("apple", 0)) in rows
    assert recorded.sequence == 0


@pytest.mark.behaviour("EV-14")
async def test_a_subscriber_that_reads_too_slowly_fails_alone(memory: Storage) -> None:
    log = log_on(memory)
    slow, other = log.bus.subscribe(Recorded, capacity=2), log.bus.subscribe(Recorded, capacity=10)
    for grams in range(4):
        await log.append(weighed(grams))
    assert sequences(await take(other, 4)) == [0, 1, 2, 3]
    assert sequences(await take(slow, 2)) == [0, 1]
    with pytest.raises(SubscriberOverflowError):
        await anext(slow)


@pytest.mark.behaviour("EV-16")
async def test_what_a_listener_raises_on_a_live_only_event_comes_out_of_telling(memory: Storage) -> None:
    log = log_on(memory)
    heard: list[Event] = []

    def fail(event: Event) -> None:
        raise RuntimeError("broken listener")

    log.bus.listen(fail)
    log.bus.listen(heard.append)
    with pytest.raises(RuntimeError, match="broken listener"):
        log.tell(Noticed(what="a"))
    assert heard == [Noticed(what="a")]


async def test_a_live_only_event_is_told_and_never_stored(memory: Storage) -> None:
    log = log_on(memory)
    subscription = log.bus.subscribe(Noticed)
    log.tell(Noticed(what="a"))
    assert await anext(subscription) == Noticed(what="a")
    assert await all_rows(memory) == {}


async def test_appending_nothing_changes_nothing(memory: Storage) -> None:
    assert await log_on(memory).append() == ()
    assert await all_rows(memory) == {}


async def test_a_private_event_takes_a_sequence_too(memory: Storage) -> None:
    log = log_on(memory)
    assert sequences(await log.append(created(), touched(), titled("a"))) == [0, 1, 2]


async def test_a_cancelled_append_left_nothing_or_everything(storage: Storage) -> None:
    log = log_on(storage)
    await log.append(created())
    with anyio.CancelScope() as scope:
        scope.cancel()
        await log.append(titled("a"))
    events = await whole(log)
    row = (await all_rows(storage))[SESSIONS, ("prj", "ses_1")]
    assert isinstance(row, dict)
    assert (len(events), row["title"]) in [(1, ""), (2, "a")]
    assert sequences(await log.append(titled("b"))) == [len(events)]


def test_a_log_has_a_bus_of_its_own() -> None:
    assert event_bus() is not event_bus()
