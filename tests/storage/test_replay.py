"""Events from elsewhere stand where they stood; a repeat is ignored, and whatever does not fit is refused."""

import json
from decimal import Decimal
from typing import Any

import attrs
import pytest

from opencode_core.errors import (
    DivergenceError,
    EventDecodeError,
    EventReusedError,
    ForeignAggregateError,
    OwnerConflictError,
    SequenceGapError,
    UnknownEventError,
)
from opencode_core.model.event.base import Event, EventLocation, Recorded
from opencode_core.model.event.conversation import MessageImported, StepEnded, StepStarted
from opencode_core.model.event.session import PromptAdmitted, PromptPromoted
from opencode_core.model.part import CacheTokens, Tokens
from opencode_core.model.prompt import Prompt
from opencode_core.model.rows import INBOX, MESSAGE_ORDER, MESSAGES
from opencode_core.model.session import ModelChoice
from opencode_core.storage.envelope import serialize
from opencode_core.storage.log import EventLog
from opencode_core.storage.tables import EVENTS, HEADS
from plugin_sdk.storage import Storage
from tests.storage.making import CODEC, all_rows, created, log_on, opened, sent, sequences, titled, weighed, whole

APPLE = [Recorded(aggregate="apple", sequence=number, id=f"evt_{number}", event=weighed(number)) for number in range(4)]


@pytest.mark.behaviour("EV-25", "EV-26")
async def test_projectors_run_with_what_was_decoded_and_a_row_is_there(storage: Storage) -> None:
    projected: list[Recorded] = []
    log = log_on(storage, projectors=[lambda _, recorded: projected.append(recorded)])
    here = EventLocation(directory="/w")
    event = attrs.evolve(APPLE[0], location=here)
    assert await log.replay(*sent([event])) == (event,)
    assert projected[-1] == event
    assert await whole(log, "apple") == [event]


@pytest.mark.behaviour("EV-27")
async def test_an_event_of_another_log_than_it_says_is_refused(memory: Storage) -> None:
    projected: list[Recorded] = []
    log = log_on(memory, projectors=[lambda _, recorded: projected.append(recorded)])
    await log.append(weighed(1))
    projected.clear()
    before = await all_rows(memory)
    foreign = attrs.evolve(sent(APPLE[:1])[0], aggregate="pear")
    with pytest.raises(ForeignAggregateError, match="sent for 'pear', but belongs to 'apple'"):
        await log.replay(foreign)
    assert await all_rows(memory) == before
    assert projected == []


async def test_an_event_that_does_not_say_whose_it_is_is_refused(memory: Storage) -> None:
    with pytest.raises(ForeignAggregateError):
        await log_on(memory).replay(attrs.evolve(sent(APPLE[:1])[0], data={"at": 1}))


@pytest.mark.behaviour("EV-28")
@pytest.mark.parametrize("sequence", [2, 7, -1])
async def test_a_gap_is_refused(memory: Storage, sequence: int) -> None:
    log = log_on(memory)
    await log.replay(*sent(APPLE[:1]))
    before = await all_rows(memory)
    with pytest.raises(SequenceGapError, match=f"The event {sequence} of 'apple' does not follow on 0"):
        await log.replay(attrs.evolve(sent(APPLE[1:2])[0], sequence=sequence))
    assert await all_rows(memory) == before


@pytest.mark.behaviour("EV-28")
async def test_a_log_does_not_begin_in_the_middle(memory: Storage) -> None:
    with pytest.raises(SequenceGapError):
        await log_on(memory).replay(*sent(APPLE[1:]))
    assert await all_rows(memory) == {}


@pytest.mark.behaviour("EV-29")
async def test_fields_that_are_something_else_in_json_are_decoded_before_they_are_projected(memory: Storage) -> None:
    seen: list[Any] = []
    log = log_on(memory, projectors=[lambda _, recorded: seen.append(recorded.event)])
    tokens = Tokens(input=1, cache=CacheTokens(read=2))
    ended = StepEnded(session="ses_1", at=5, message="m", part="p", finish="stop", cost=Decimal("0.30"), tokens=tokens)
    await log.replay(*sent([Recorded(aggregate="ses_1", sequence=0, id="evt_0", event=ended)]))
    assert seen == [ended]
    assert isinstance(seen[0].cost, Decimal)
    assert seen[0].tokens.cache.read == 2


@pytest.mark.behaviour("EV-30")
async def test_an_unknown_type_or_version_is_refused(memory: Storage) -> None:
    log = log_on(memory)
    (event,) = sent(APPLE[:1])
    for unknown in (attrs.evolve(event, type="thing.eaten"), attrs.evolve(event, version=2)):
        with pytest.raises(UnknownEventError):
            await log.replay(unknown)
    assert await all_rows(memory) == {}


@pytest.mark.parametrize("changes", [{"data": {"thing": "apple", "at": "x"}}, {"location": {"directory": 5}}])
async def test_data_that_do_not_fit_are_refused(memory: Storage, changes: Any) -> None:
    with pytest.raises(EventDecodeError):
        await log_on(memory).replay(attrs.evolve(sent(APPLE[:1])[0], **changes))
    assert await all_rows(memory) == {}


@pytest.mark.behaviour("EV-31", "EV-32")
async def test_a_log_can_be_replayed_whole_and_in_chunks(storage: Storage) -> None:
    log = log_on(storage)
    assert sequences(await log.replay(*sent(APPLE[:2]))) == [0, 1]
    assert sequences(await log.replay(*sent(APPLE[2:]))) == [2, 3]
    assert await whole(log, "apple") == APPLE
    assert sequences(await log.append(weighed(9))) == [4]


async def test_an_exact_repeat_is_ignored_alone_and_together_with_what_is_new(storage: Storage) -> None:
    log = log_on(storage)
    await log.replay(*sent(APPLE[:2]))
    before = await all_rows(storage)
    assert await log.replay(*sent(APPLE[:2])) == ()
    assert await all_rows(storage) == before
    assert await log.replay(*sent(APPLE)) == tuple(APPLE[2:])


async def test_a_repeat_that_was_not_text_yet_is_a_repeat_too(memory: Storage) -> None:
    message: dict[str, Any] = {
        "id": "msg_1",
        "sessionID": "ses_1",
        "role": "synthetic",
        "text": "a",
        "time": {"created": 1},
    }
    imported = MessageImported(session="ses_1", at=1, message="msg_1", document=message, metadata={"a": (1, 2)})
    log = log_on(memory)
    recorded = await log.append(created(), imported)
    assert await log.replay(*[serialize(each, CODEC) for each in recorded]) == ()


async def test_events_are_replayed_all_or_none(memory: Storage) -> None:
    wrong = attrs.evolve(APPLE[1], id=APPLE[0].id)
    with pytest.raises(EventReusedError):
        await log_on(memory).replay(*sent([APPLE[0], wrong]))
    assert await all_rows(memory) == {}


@pytest.mark.behaviour("EV-34")
@pytest.mark.parametrize(
    "other",
    [
        attrs.evolve(APPLE[1], event=weighed(999)),
        attrs.evolve(APPLE[1], id="evt_other"),
        attrs.evolve(APPLE[1], id="evt_other", event=weighed(999)),
    ],
)
async def test_other_content_at_a_sequence_is_refused_and_not_told(memory: Storage, other: Recorded) -> None:
    log = log_on(memory)
    await log.replay(*sent(APPLE[:2]))
    before, told = await all_rows(memory), listened(log)
    with pytest.raises(DivergenceError, match="stands at 1 in the log 'apple'"):
        await log.replay(*sent([other]), publish=True)
    assert await all_rows(memory) == before
    assert told == []


@pytest.mark.behaviour("EV-35")
@pytest.mark.parametrize("aggregate", ["apple", "pear"])
async def test_an_event_id_that_stands_elsewhere_is_refused(memory: Storage, aggregate: str) -> None:
    log = log_on(memory)
    await log.replay(*sent(APPLE[:1]))
    before = await all_rows(memory)
    sequence = 1 if aggregate == "apple" else 0
    event = weighed(1, thing=aggregate)
    reused = Recorded(aggregate=aggregate, sequence=sequence, id="evt_0", event=event)
    with pytest.raises(EventReusedError, match="'evt_0' belongs to another place"):
        await log.replay(*sent([reused]))
    assert await all_rows(memory) == before


async def test_those_who_listen_are_told_only_when_that_is_wanted(memory: Storage) -> None:
    log = log_on(memory)
    told = listened(log)
    await log.replay(*sent(APPLE[:2]))
    assert told == []
    await log.replay(*sent(APPLE), publish=True)
    assert told == APPLE[2:]


# Owners


@pytest.mark.behaviour("EV-37")
async def test_a_strict_repeat_by_another_owner_is_refused(memory: Storage) -> None:
    log = log_on(memory)
    await log.replay(*sent(APPLE[:1]), owner="ann")
    with pytest.raises(OwnerConflictError, match="belongs to 'ann', not to 'bob'"):
        await log.replay(*sent(APPLE[:1]), owner="bob", strict=True)
    assert await log.replay(*sent(APPLE[:1]), owner="ann", strict=True) == ()


@pytest.mark.behaviour("EV-38")
async def test_a_repeat_with_an_owner_claims_a_log_that_nobody_owns(memory: Storage) -> None:
    log = log_on(memory)
    await log.replay(*sent(APPLE[:1]))
    assert await owner(memory) is None
    await log.replay(*sent(APPLE[:1]), owner="ann")
    assert await owner(memory) == "ann"
    with pytest.raises(OwnerConflictError):
        await log.replay(*sent(APPLE[:2]), owner="bob", strict=True)


@pytest.mark.behaviour("EV-39")
async def test_the_first_replay_with_an_owner_says_so_beside_the_sequence(memory: Storage) -> None:
    await log_on(memory).replay(*sent(APPLE[:2]), owner="ann")
    assert (await all_rows(memory))[HEADS, ("apple",)] == {"sequence": 1, "owner": "ann"}


@pytest.mark.behaviour("EV-40")
async def test_another_owners_events_are_skipped_when_a_log_was_claimed(memory: Storage) -> None:
    log = log_on(memory)
    await log.append(weighed(0))
    claimed = Recorded(aggregate="apple", sequence=1, id="evt_1", event=weighed(1))
    assert len(await log.replay(*sent([claimed]), owner="ann")) == 1
    later = Recorded(aggregate="apple", sequence=2, id="evt_2", event=weighed(2))
    assert await log.replay(*sent([later]), owner="bob") == ()
    assert await log.head("apple") == 1


@pytest.mark.behaviour("EV-41")
async def test_a_strict_new_event_by_another_owner_is_refused(memory: Storage) -> None:
    log = log_on(memory)
    await log.replay(*sent(APPLE[:1]), owner="ann")
    with pytest.raises(OwnerConflictError):
        await log.replay(*sent(APPLE[1:2]), owner="bob", strict=True)
    assert await log.head("apple") == 0


@pytest.mark.behaviour("EV-42")
async def test_another_owners_events_are_neither_stored_nor_told(memory: Storage) -> None:
    log = log_on(memory)
    await log.replay(*sent(APPLE[:1]), owner="ann")
    before, told = await all_rows(memory), listened(log)
    await log.replay(*sent(APPLE[1:]), owner="bob", publish=True)
    assert await all_rows(memory) == before
    assert told == []


@pytest.mark.behaviour("EV-43")
async def test_the_last_to_claim_a_log_owns_it(memory: Storage) -> None:
    log = log_on(memory)
    await log.append(weighed(0))
    await log.claim("apple", "ann")
    await log.claim("apple", "bob")
    assert (await all_rows(memory))[HEADS, ("apple",)] == {"sequence": 0, "owner": "bob"}


async def test_what_is_appended_here_does_not_ask_for_the_owner(memory: Storage) -> None:
    log = log_on(memory)
    await log.claim("apple", "ann")
    assert sequences(await log.append(weighed(0))) == [0]
    assert await owner(memory) == "ann"


@pytest.mark.behaviour("EV-44")
async def test_a_removed_log_is_gone_and_can_be_replayed_again(storage: Storage) -> None:
    log = log_on(storage)
    await log.replay(*sent(APPLE), owner="ann")
    await log.append(weighed(1, thing="pear"))
    await log.remove("apple")
    rows = await all_rows(storage)
    assert {(table, key) for table, key in rows if key[0] == "apple"} == set()
    assert [table for table, _ in rows] == [EVENTS, HEADS]
    assert await log.head("apple") == -1
    assert sequences(await log.replay(*sent(APPLE), owner="bob", strict=True)) == [0, 1, 2, 3]


# Sessions


@pytest.mark.behaviour("SE-09", "IN-13")
async def test_a_session_is_replayed_into_an_empty_store_in_two_chunks(storage: Storage) -> None:
    asked = PromptAdmitted(session="ses_1", at=2, message="msg_1", prompt=Prompt(text="hi"), parts=("prt_1",))
    async with opened("memory:") as elsewhere:
        source = log_on(elsewhere)
        await source.append(created(), asked)
        await source.append(PromptPromoted(session="ses_1", at=3, message="msg_1", admitted=1, admitted_at=2))
        events = sent(await whole(source))
        target = await all_rows(elsewhere)
    log = log_on(storage)
    told = listened(log)
    await log.replay(*events[:2])
    rows = await all_rows(storage)
    assert (INBOX, ("ses_1", "pending", 1)) in rows
    assert not [key for key in rows if key[0] in (MESSAGES, MESSAGE_ORDER)]
    await log.replay(*events[2:])
    rows = await all_rows(storage)
    assert (INBOX, ("ses_1", "pending", 1)) not in rows
    assert rows[INBOX, ("ses_1", "promoted", 1)]["promoted"] == 2  # type: ignore[index, call-overload]
    assert rows[MESSAGE_ORDER, ("ses_1", 2)] == {"id": "msg_1", "role": "user"}
    assert sequences(await whole(log)) == [0, 1, 2]
    assert rows == target
    assert told == []


async def test_an_event_that_does_not_fit_what_happened_before_is_refused_whole(memory: Storage) -> None:
    log = log_on(memory)
    step = StepStarted(session="ses_1", at=1, message="msg_1", part="prt_1", model=ModelChoice(provider="p", model="m"))
    events = [created(), step, titled("a"), step]
    recorded = [
        Recorded(aggregate="ses_1", sequence=number, id=f"evt_{number}", event=event)
        for number, event in enumerate(events)
    ]
    with pytest.raises(Exception, match="'msg_1' is already used"):
        await log.replay(*sent(recorded))
    assert await all_rows(memory) == {}


def test_what_is_sent_is_nothing_but_json() -> None:
    event = attrs.evolve(APPLE[1], location=EventLocation(directory="/w"))
    assert json.loads(json.dumps(attrs.asdict(serialize(event, CODEC)))) == {
        "aggregate": "apple",
        "sequence": 1,
        "id": "evt_1",
        "type": "thing.weighed",
        "version": 1,
        "data": {"at": 1, "grams": 1, "thing": "apple"},
        "location": {"directory": "/w"},
    }


def listened(log: EventLog) -> list[Event]:
    heard: list[Event] = []
    log.bus.listen(heard.append)
    return heard


async def owner(storage: Storage) -> Any:
    row: Any = (await all_rows(storage))[HEADS, ("apple",)]
    return row.get("owner")
