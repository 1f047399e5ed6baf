"""What was committed is told once, each log in the order of its sequence, and with the rows that changed."""

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest

from opencode_core.errors import SessionNotFoundError
from opencode_core.model.event.base import Event, Recorded
from opencode_core.model.event.conversation import (
    MessageRemoved,
    PartRemoved,
    StepStarted,
    SyntheticAdded,
    TextEnded,
    TextStarted,
)
from opencode_core.model.event.live import (
    LiveEvent,
    MessageDeleted,
    MessageUpdated,
    PartDeleted,
    PartDelta,
    PartUpdated,
    SessionAppeared,
    SessionDiffUpdated,
    SessionErrored,
    SessionStatus,
    SessionUpdated,
)
from opencode_core.model.event.session import SessionDiffed, SessionImported, SessionMoved
from opencode_core.model.fault import UnknownFault
from opencode_core.model.session import FileDiff, ModelChoice
from opencode_core.storage.log import EventLog
from plugin_sdk.storage import Storage
from tests.storage.making import HeldAcknowledgements, all_rows, created, log_on, sequences, titled, weighed

# The order


@pytest.mark.parametrize("released", [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]])
async def test_commits_are_told_in_the_order_of_the_sequence_however_they_are_acknowledged(
    memory: Storage, released: list[int]
) -> None:
    held = HeldAcknowledgements(memory)
    log = log_on(held)
    told = listened(log)
    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(log.append, weighed(number))
            await held.wait_for(number + 1)
        for number in released:
            held.committed[number].set()
            await anyio.wait_all_tasks_blocked()
    assert [event.event for event in told] == [weighed(0), weighed(1), weighed(2)]
    assert_forgotten(log)


async def test_what_follows_on_what_was_told_does_not_wait_for_later_commits(memory: Storage) -> None:
    held = HeldAcknowledgements(memory)
    log = log_on(held)
    told = listened(log)
    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(log.append, weighed(number))
            await held.wait_for(number + 1)
        for number in (0, 1):
            held.committed[number].set()
            await anyio.wait_all_tasks_blocked()
        assert sequences(told) == [0, 1]
        held.committed[2].set()
    assert sequences(told) == [0, 1, 2]


async def test_a_gap_that_another_process_filled_does_not_block(memory: Storage) -> None:
    here, elsewhere = log_on(memory), log_on(memory)
    told = listened(here)
    await here.append(weighed(0))
    await elsewhere.append(weighed(1), weighed(2))
    await here.append(weighed(3))
    assert sequences(told) == [0, 3]
    assert_forgotten(here)


async def test_a_gap_that_is_still_under_way_is_waited_for_and_one_that_failed_is_not(memory: Storage) -> None:
    held = HeldAcknowledgements(memory)
    here, elsewhere = log_on(held), log_on(memory)
    told = listened(here)
    await elsewhere.append(weighed(0))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(here.append, weighed(1))
        await held.wait_for(1)
        tasks.start_soon(here.append, weighed(2))
        await held.wait_for(2)
        held.committed[1].set()
        await anyio.wait_all_tasks_blocked()
        assert told == []
        held.committed[0].set()
    assert sequences(told) == [1, 2]
    assert_forgotten(here)


async def test_a_long_commit_of_another_log_delays_nobody(memory: Storage) -> None:
    held = HeldAcknowledgements(memory)
    log = log_on(held)
    told = listened(log)
    await log_on(memory).append(weighed(0), weighed(0, thing="pear"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(log.append, weighed(1, thing="pear"))
        await held.wait_for(1)
        tasks.start_soon(log.append, weighed(1))
        await held.wait_for(2)
        held.committed[1].set()
        await anyio.wait_all_tasks_blocked()
        assert [event.aggregate for event in told] == ["apple"]
        held.committed[0].set()
    assert [event.aggregate for event in told] == ["apple", "pear"]
    assert_forgotten(log)


async def test_a_commit_of_which_nobody_knows_the_log_is_waited_for_by_all(memory: Storage) -> None:
    held = HeldAcknowledgements(memory)
    log = log_on(held)
    told = listened(log)
    await log_on(memory).append(weighed(0))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(log.commit, lambda writer: writer.append(weighed(1)))
        await held.wait_for(1)
        tasks.start_soon(log.append, weighed(2))
        await held.wait_for(2)
        held.committed[1].set()
        await anyio.wait_all_tasks_blocked()
        assert told == []
        held.committed[0].set()
    assert sequences(told) == [1, 2]
    assert_forgotten(log)


async def test_the_first_event_of_a_log_waits_for_nobody(memory: Storage) -> None:
    held = HeldAcknowledgements(memory)
    log = log_on(held)
    told = listened(log)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(log.append, weighed(0))
        await held.wait_for(1)
        tasks.start_soon(log.append, weighed(1))
        await held.wait_for(2)
        held.committed[0].set()
        await anyio.wait_all_tasks_blocked()
        assert sequences(told) == [0]
        held.committed[1].set()


async def test_a_commit_that_failed_or_was_cancelled_leaves_nothing_behind(memory: Storage) -> None:
    held = HeldAcknowledgements(memory)
    log = log_on(held)
    told = listened(log)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(log.append, weighed(0, thing="pear"))
        await held.wait_for(1)
        async with anyio.create_task_group() as cancelled:
            cancelled.start_soon(log.append, weighed(0))
            await held.wait_for(2)
            cancelled.cancel_scope.cancel()
        with pytest.raises(SessionNotFoundError):
            await log.append(titled("a"))
        held.committed[0].set()
    assert [event.aggregate for event in told] == ["pear"]
    assert_forgotten(log)


async def test_memory_does_not_grow_with_the_logs_while_another_commit_is_under_way(memory: Storage) -> None:
    held = HeldAcknowledgements(memory)
    log = log_on(held)
    told = listened(log)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(log.append, weighed(0, thing="long"))
        await held.wait_for(1)
        for number in range(20):
            tasks.start_soon(log.append, weighed(0, thing=f"thing {number}"))
            await held.wait_for(number + 2)
            held.committed[-1].set()
            await anyio.wait_all_tasks_blocked()
        assert len(told) == 20
        assert (log._announcer._told, log._announcer._held) == ({}, {})
        held.committed[0].set()
    assert_forgotten(log)


async def test_many_writers_are_told_in_order_on_every_backend(storage: Storage) -> None:
    log = log_on(storage)
    told = listened(log)

    async def write() -> None:
        for number in range(5):
            await log.append(weighed(number))

    async with anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(write)
    assert sequences(told) == list(range(30))
    assert_forgotten(log)


# The rows


@pytest.mark.behaviour("V1-23")
async def test_a_new_session_appears_and_a_changed_one_is_updated(memory: Storage) -> None:
    log, row = log_on(memory), partial(the_row, memory, "session", ("prj", "ses_1"))
    assert await live(log, created()) == [SessionAppeared(session="ses_1", document=await row())]
    assert await live(log, titled("a")) == [SessionUpdated(session="ses_1", document=await row())]


@pytest.mark.behaviour("V1-23")
async def test_an_imported_session_appears_and_a_moved_one_is_updated(memory: Storage) -> None:
    log = log_on(memory)
    times = {"created": 1, "updated": 1}
    document: Any = {"id": "ses_1", "projectID": "prj", "directory": "/w", "time": times, "own": 1}
    imported = SessionImported(session="ses_1", at=1, document=document)
    assert await live(log, imported) == [SessionAppeared(session="ses_1", document=document)]
    (moved,) = await live(log, SessionMoved(session="ses_1", at=2, directory="/v", project="other"))
    assert moved == SessionUpdated(session="ses_1", document=await the_row(memory, "session", ("other", "ses_1")))


@pytest.mark.behaviour("V1-23")
async def test_new_diffs_are_told(memory: Storage) -> None:
    log = log_on(memory)
    await log.append(created())
    diff, session = await live(log, SessionDiffed(session="ses_1", at=2, diffs=(FileDiff(file="a", additions=1),)))
    assert diff == SessionDiffUpdated(session="ses_1", document=await the_row(memory, "session_diff", ("ses_1",)))
    assert isinstance(session, SessionUpdated)


@pytest.mark.behaviour("V1-23")
async def test_messages_and_parts_that_come_change_and_go_are_told(memory: Storage) -> None:
    log = log_on(memory)
    await log.append(created())
    who: dict[str, Any] = {"session": "ses_1", "at": 2, "message": "msg_1"}
    message, part = partial(the_row, memory, "message", ("ses_1", "msg_1")), partial(the_row, memory, "part")
    assert await live(log, StepStarted(**who, part="prt_1", model=ModelChoice(provider="p", model="m"))) == [
        MessageUpdated(session="ses_1", message="msg_1", document=await message()),
        PartUpdated(session="ses_1", message="msg_1", part="prt_1", document=await part(("msg_1", "prt_1"))),
    ]
    assert await live(log, TextStarted(**who, part="prt_2")) == [
        PartUpdated(session="ses_1", message="msg_1", part="prt_2", document=await part(("msg_1", "prt_2"))),
    ]
    assert await live(log, TextEnded(**who, part="prt_2", text="hi")) == [
        PartUpdated(session="ses_1", message="msg_1", part="prt_2", document=await part(("msg_1", "prt_2"))),
    ]
    assert await live(log, PartRemoved(**who, part="prt_2")) == [
        PartDeleted(session="ses_1", message="msg_1", part="prt_2")
    ]
    assert await live(log, MessageRemoved(**who)) == [
        MessageDeleted(session="ses_1", message="msg_1"),
        PartDeleted(session="ses_1", message="msg_1", part="prt_1"),
    ]


@pytest.mark.behaviour("V1-23")
async def test_each_session_of_one_commit_is_told_its_own_rows_only(memory: Storage) -> None:
    log = log_on(memory)
    for session in ("ses_1", "ses_2"):
        step = StepStarted(
            session=session, at=1, message=f"msg_{session}", part="prt_1", model=ModelChoice(provider="p", model="m")
        )
        await log.append(created(session), step)
    told = await live(
        log,
        MessageRemoved(session="ses_1", at=2, message="msg_ses_1"),
        SyntheticAdded(session="ses_2", at=2, message="msg_2", text="a"),
    )
    assert [(type(event), event.session) for event in told] == [
        (MessageDeleted, "ses_1"),
        (PartDeleted, "ses_1"),
        (MessageUpdated, "ses_2"),
    ]


@pytest.mark.behaviour("V1-23")
async def test_deltas_statuses_and_errors_are_told_as_they_happen(memory: Storage) -> None:
    log = log_on(memory)
    events: list[LiveEvent] = [
        PartDelta(session="ses_1", message="msg_1", part="prt_1", delta="h"),
        SessionStatus(session="ses_1", status="busy"),
        SessionErrored(session="ses_1", error=UnknownFault(message="what")),
    ]
    told = listened(log)
    for event in events:
        log.tell(event)
    assert told == events


async def test_the_event_itself_is_told_before_the_rows_that_follow_from_it(memory: Storage) -> None:
    log = log_on(memory)
    told = listened(log)
    await log.append(created(), titled("a"))
    assert [type(event) for event in told] == [Recorded, Recorded, SessionAppeared]


async def test_whoever_is_told_of_a_row_sees_it_as_it_is_now(memory: Storage) -> None:
    log = log_on(memory)
    told = listened(log)
    await log.append(created(), titled("a"), titled("b"))
    (appeared,) = [event for event in told if isinstance(event, SessionAppeared)]
    assert appeared.document == await the_row(memory, "session", ("prj", "ses_1"))


def listened(log: EventLog) -> list[Any]:
    heard: list[Any] = []
    log.bus.listen(heard.append)
    return heard


async def live(log: EventLog, *events: Any) -> list[Any]:
    """Appends, and returns the live-only events that were told."""
    heard: list[Event] = []
    leave: Callable[[], None] = log.bus.listen(heard.append)
    await log.append(*events)
    leave()
    return [event for event in heard if isinstance(event, LiveEvent)]


async def the_row(storage: Storage, table: str, key: tuple[str, ...]) -> Any:
    return (await all_rows(storage))[table, key]


def assert_forgotten(log: EventLog) -> None:
    announcer = log._announcer
    assert (announcer._told, announcer._held, announcer._under_way) == ({}, {}, {})
