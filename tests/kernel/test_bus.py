"""The live bus: everybody who listens now gets everything, and nobody holds up anybody else."""

import gc
import logging
import weakref
from collections.abc import AsyncIterator, Callable

import anyio
import attrs
import pytest
from anyio.lowlevel import checkpoint

from opencode_core.bus import Bus, Subscription
from opencode_core.errors import SubscriberOverflowError

pytestmark = pytest.mark.anyio


@attrs.frozen
class Note:
    text: str


@attrs.frozen
class Heard(Note):
    pass


@attrs.frozen
class Seen(Note):
    pass


async def rest(subscription: AsyncIterator[Note]) -> list[str]:
    """What is left, up to the end."""
    with anyio.fail_after(5):
        return [event.text async for event in subscription]


async def receive_all(subscription: AsyncIterator[Note], received: list[str]) -> None:
    async for event in subscription:
        received.append(event.text)  # noqa: PERF401 -- what came before a failure counts too


@pytest.mark.behaviour("EV-05")
async def test_typed_and_wildcard_subscribers_both_receive_the_event() -> None:
    bus: Bus[Note] = Bus()
    async with bus.subscribe(Heard) as typed, bus.subscribe() as wildcard:
        bus.publish(Heard("one"))
        bus.close()
        assert await rest(typed) == ["one"]
        assert await rest(wildcard) == ["one"]


async def test_a_typed_subscriber_receives_only_its_types_and_their_subclasses() -> None:
    bus: Bus[Note] = Bus()
    typed, several, base = bus.subscribe(Heard), bus.subscribe(Heard, Seen), bus.subscribe(Note)
    for event in (Note("note"), Heard("heard"), Seen("seen")):
        bus.publish(event)
    bus.close()
    assert await rest(typed) == ["heard"]
    assert await rest(several) == ["heard", "seen"]
    assert await rest(base) == ["note", "heard", "seen"]


async def test_nothing_published_after_the_call_is_missed_even_before_the_context_is_entered() -> None:
    bus: Bus[Note] = Bus()
    bus.publish(Note("before"))
    subscription = bus.subscribe()
    bus.publish(Note("called"))
    async with subscription as events:
        bus.publish(Note("entered"))
        bus.close()
        assert await rest(events) == ["called", "entered"]


async def test_a_waiting_subscriber_is_woken_by_an_event() -> None:
    bus: Bus[Note] = Bus()
    received: list[str] = []

    async def read(events: Subscription[Note]) -> None:
        received.extend(await rest(events))

    async with bus.subscribe() as events, anyio.create_task_group() as tasks:
        tasks.start_soon(read, events)
        await anyio.wait_all_tasks_blocked()
        bus.publish(Note("one"))
        await anyio.wait_all_tasks_blocked()
        bus.publish(Note("two"))
        await anyio.wait_all_tasks_blocked()
        bus.close()
    assert received == ["one", "two"]


@pytest.mark.behaviour("EV-14")
async def test_a_subscriber_that_overflows_fails_alone_after_what_it_had_buffered() -> None:
    bus: Bus[Note] = Bus()
    slow, large = bus.subscribe(capacity=2), bus.subscribe(capacity=10)
    texts = [str(number) for number in range(5)]
    for text in texts:
        bus.publish(Note(text))
    bus.close()

    assert [(await anext(slow)).text, (await anext(slow)).text] == ["0", "1"]
    with pytest.raises(SubscriberOverflowError, match="held 2 events"):
        await anext(slow)
    assert await rest(large) == texts


async def test_a_waiting_subscriber_holds_no_more_than_its_capacity() -> None:
    bus: Bus[Note] = Bus()
    received: list[str] = []

    async def read(events: Subscription[Note]) -> None:
        with pytest.raises(SubscriberOverflowError):
            await receive_all(events, received)

    async with bus.subscribe(capacity=1) as events, anyio.create_task_group() as tasks:
        tasks.start_soon(read, events)
        await anyio.wait_all_tasks_blocked()
        bus.publish(Note("one"))
        bus.publish(Note("two"))
    assert received == ["one"]


async def test_an_overflowed_subscriber_receives_nothing_more_after_it_has_made_room() -> None:
    bus: Bus[Note] = Bus()
    slow = bus.subscribe(capacity=1)
    bus.publish(Note("one"))
    bus.publish(Note("two"))
    assert (await anext(slow)).text == "one"
    bus.publish(Note("three"))
    for _ in range(2):
        with pytest.raises(SubscriberOverflowError):
            await anext(slow)


async def test_events_of_other_types_take_no_room() -> None:
    bus: Bus[Note] = Bus()
    typed = bus.subscribe(Heard, capacity=1)
    for event in (Seen("1"), Heard("2"), Seen("3")):
        bus.publish(event)
    bus.close()
    assert await rest(typed) == ["2"]


def test_a_subscription_that_could_hold_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="capacity"):
        Bus[Note]().subscribe(capacity=0)


async def test_leaving_the_context_ends_the_subscription() -> None:
    bus: Bus[Note] = Bus()
    async with bus.subscribe() as events:
        bus.publish(Note("unread"))
    bus.publish(Note("later"))
    assert await rest(events) == []


async def test_leaving_the_context_ends_a_reader_that_waits_in_another_task() -> None:
    bus: Bus[Note] = Bus()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks, bus.subscribe() as events:
            tasks.start_soon(rest, events)
            await anyio.wait_all_tasks_blocked()


async def test_a_read_that_is_cancelled_loses_no_event() -> None:
    bus: Bus[Note] = Bus()
    received: list[str] = []
    async with bus.subscribe() as events:
        for cancels_first in (True, False):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(receive_all, events, received)
                await anyio.wait_all_tasks_blocked()
                if cancels_first:
                    tasks.cancel_scope.cancel()
                bus.publish(Note(f"cancelled first: {cancels_first}"))
                tasks.cancel_scope.cancel()
        bus.close()
        received += await rest(events)
    assert received == ["cancelled first: True", "cancelled first: False"]


async def test_a_read_in_a_cancelled_scope_takes_nothing() -> None:
    bus: Bus[Note] = Bus()
    async with bus.subscribe() as events:
        bus.publish(Note("one"))
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anext(events)
        bus.close()
        assert await rest(events) == ["one"]


async def test_two_readers_of_one_subscription_share_its_events() -> None:
    bus: Bus[Note] = Bus()
    received: list[str] = []

    async def read_one(events: Subscription[Note]) -> None:
        received.append((await anext(events)).text)

    with anyio.fail_after(5):
        async with bus.subscribe() as events, anyio.create_task_group() as tasks:
            tasks.start_soon(read_one, events)
            tasks.start_soon(read_one, events)
            await anyio.wait_all_tasks_blocked()
            bus.publish(Note("one"))
            bus.publish(Note("two"))
    assert sorted(received) == ["one", "two"]


async def test_reading_what_is_buffered_lets_other_tasks_run() -> None:
    bus: Bus[Note] = Bus()
    turns: list[str] = []

    async def other() -> None:
        for _ in range(3):
            turns.append("other")
            await checkpoint()

    async with bus.subscribe() as events, anyio.create_task_group() as tasks:
        for number in range(50):
            bus.publish(Note(str(number)))
        tasks.start_soon(other)
        for _ in range(50):
            await anext(events)
            turns.append("read")
    assert "other" in turns[:10]


async def test_closing_ends_all_iterators_after_their_buffered_events() -> None:
    bus: Bus[Note] = Bus()
    ahead, behind = bus.subscribe(), bus.subscribe()
    bus.publish(Note("one"))
    assert (await anext(ahead)).text == "one"
    bus.close()
    bus.close()
    assert await rest(ahead) == []
    assert await rest(behind) == ["one"]


async def test_after_closing_nobody_hears_and_publishing_still_works() -> None:
    bus: Bus[Note] = Bus()
    heard: list[Note] = []
    bus.listen(heard.append)
    bus.close()
    bus.listen(heard.append)
    late = bus.subscribe()
    bus.publish(Note("late"))
    assert await rest(late) == []
    assert heard == []


def test_listeners_are_called_at_once_in_the_order_they_came() -> None:
    bus: Bus[Note] = Bus()
    calls: list[str] = []
    for name in "cab":
        bus.listen(lambda event, name=name: calls.append(name + event.text))  # type: ignore[misc]
    bus.publish(Note("1"))
    assert calls == ["c1", "a1", "b1"]


def test_a_listener_that_raises_is_reported_and_later_listeners_still_run() -> None:
    reports: list[tuple[Callable[[Note], object], Note, Exception]] = []
    bus: Bus[Note] = Bus(lambda *report: reports.append(report))
    failure, heard = ZeroDivisionError("mine"), list[Note]()

    def broken(event: Note) -> None:
        raise failure

    bus.listen(broken)
    bus.listen(heard.append)
    bus.publish(Note("one"))
    assert heard == [Note("one")]
    assert reports == [(broken, Note("one"), failure)]


def test_a_listener_that_raises_is_logged_with_its_traceback_by_default(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus: Bus[Note] = Bus()

    def broken(event: Note) -> None:
        raise ZeroDivisionError

    bus.listen(broken)
    with caplog.at_level(logging.ERROR, "opencode.bus"):
        bus.publish(Heard("secret"))
    [record] = caplog.records
    assert "broken" in record.getMessage()
    assert "'Heard'" in record.getMessage()
    assert "secret" not in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


def test_a_failing_error_handler_is_logged_and_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[Note] = []

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    bus: Bus[Note] = Bus(fail)
    bus.listen(fail)
    bus.listen(heard.append)
    bus.publish(Note("one"))
    assert heard == [Note("one")]
    assert "ZeroDivisionError" in caplog.text


async def test_a_listener_that_is_interrupted_leaves_the_bus_usable() -> None:
    bus: Bus[Note] = Bus()
    heard: list[Note] = []

    def interrupted(event: Note) -> None:
        raise KeyboardInterrupt

    unsubscribe = bus.listen(interrupted)
    bus.listen(heard.append)
    with pytest.raises(KeyboardInterrupt):
        bus.publish(Note("one"))
    unsubscribe()
    bus.publish(Note("two"))
    assert heard == [Note("two")]


def test_a_listener_that_left_is_not_called_and_leaving_twice_is_harmless() -> None:
    bus: Bus[Note] = Bus()
    heard: list[Note] = []
    leave = bus.listen(heard.append)
    leave()
    leave()
    bus.publish(Note("one"))
    assert heard == []


def test_one_callback_that_listens_twice_is_called_twice_and_leaves_one_at_a_time() -> None:
    bus: Bus[Note] = Bus()
    heard: list[Note] = []
    leave = bus.listen(heard.append)
    bus.listen(heard.append)
    bus.publish(Note("one"))
    leave()
    bus.publish(Note("two"))
    assert heard == [Note("one"), Note("one"), Note("two")]


def test_a_listener_may_unsubscribe_itself_and_others_while_it_is_called() -> None:
    bus: Bus[Note] = Bus()
    calls: list[str] = []

    def first(event: Note) -> None:
        calls.append("first")
        leave_first()
        leave_second()

    leave_first = bus.listen(first)
    leave_second = bus.listen(lambda event: calls.append("second"))
    bus.listen(lambda event: calls.append("third"))
    bus.publish(Note("one"))
    assert calls == ["first", "third"]


async def test_who_joins_from_a_listener_hears_the_next_event_and_not_this_one() -> None:
    bus: Bus[Note] = Bus()
    heard: list[Note] = []
    joined: list[Subscription[Note]] = []

    def join(event: Note) -> None:
        leave()
        bus.listen(heard.append)
        joined.append(bus.subscribe())

    leave = bus.listen(join)
    bus.publish(Note("one"))
    bus.publish(Note("two"))
    bus.close()
    assert heard == [Note("two")]
    assert await rest(joined[0]) == ["two"]


async def test_everybody_sees_what_a_listener_publishes_after_the_event_that_caused_it() -> None:
    bus: Bus[Note] = Bus()
    later: list[str] = []

    def answer(event: Note) -> None:
        if event.text == "question":
            bus.publish(Note("answer"))

    bus.listen(answer)
    bus.listen(lambda event: later.append(event.text))
    subscription = bus.subscribe()
    bus.publish(Note("question"))
    bus.close()
    assert later == ["question", "answer"]
    assert await rest(subscription) == ["question", "answer"]


def test_subscribers_have_the_event_before_listeners_are_called() -> None:
    bus: Bus[Note] = Bus()
    subscription = bus.subscribe()
    seen: list[bool] = []
    bus.listen(lambda event: seen.append(event in subscription._buffer))
    bus.publish(Note("one"))
    assert seen == [True]


@attrs.define
class Traced(Note):
    """An event whose memory can be watched."""


def test_a_dropped_subscription_leaves_nothing_behind() -> None:
    bus: Bus[Note] = Bus()
    event = Traced("one")
    subscription = bus.subscribe()
    bus.publish(event)
    watched: list[weakref.ref[object]] = [weakref.ref(subscription), weakref.ref(event)]
    del subscription, event
    gc.collect()
    assert [reference() for reference in watched] == [None, None]
    assert len(bus._subscriptions) == 0


async def test_a_context_that_was_left_leaves_nothing_behind() -> None:
    bus: Bus[Note] = Bus()
    event = Traced("one")
    async with bus.subscribe() as events:
        bus.publish(event)
        watched = weakref.ref(event)
        del event
    gc.collect()
    assert watched() is None
    assert len(bus._subscriptions) == 0
    assert await rest(events) == []


def test_a_listener_that_left_leaves_nothing_behind() -> None:
    class Ear:
        def hear(self, event: Note) -> None:
            """Listen."""

    bus: Bus[Note] = Bus()
    ear = Ear()
    watched = weakref.ref(ear)
    leave = bus.listen(ear.hear)
    bus.publish(Note("one"))
    leave()
    del ear
    gc.collect()
    assert watched() is None
