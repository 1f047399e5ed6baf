"""What goes wrong with one session or one event hurts nothing else, and what is refused leaves nothing behind."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from opencode_core.errors import (
    DivergenceError,
    ForeignAggregateError,
    IllegalTransitionError,
    InvalidEventError,
    LifecycleConflictError,
    LogRemovedError,
    MessageDecodeError,
    SessionError,
    SessionNotFoundError,
    StorageDamagedError,
)
from opencode_core.model.event.conversation import (
    ReasoningGrew,
    ReasoningStarted,
    StepEnded,
    StepFailed,
    StepStarted,
    TextGrew,
    TextStarted,
    ToolInputGrew,
    ToolInputStarted,
)
from opencode_core.model.event.session import SessionTitled
from opencode_core.model.fault import UnknownFault
from opencode_core.model.part import PendingTool, ReasoningPart, TextPart, ToolPart
from opencode_core.model.rows import MESSAGES, SESSIONS
from opencode_core.model.session import ModelChoice
from opencode_core.session.store import SessionStore
from opencode_core.storage.tables import HEADS
from tests.session.test_history import first_generation, write
from tests.session.test_store import HERE, every_row, say

MODEL = ModelChoice(provider="demo", model="small")


@pytest.mark.parametrize("wrong", [{"title": 5}, {"title": "t", "at": "now"}, {"title": None}])
async def test_an_event_with_a_field_of_another_type_is_refused_before_it_is_written(
    sessions: SessionStore, wrong: Any
):
    made = await sessions.create(**HERE)
    before = await every_row(sessions)
    with pytest.raises(InvalidEventError, match="SessionTitled"):
        await sessions.log.append(SessionTitled(**{"session": made.id, "at": 1, **wrong}))
    assert await every_row(sessions) == before


@pytest.mark.parametrize("wrong", [{"title": 3}, {"directory": None}, {"project": 5}, {"agent": 1}])
async def test_an_argument_of_another_type_is_not_called_damage(sessions: SessionStore, wrong: Any):
    with pytest.raises(InvalidEventError, match="SessionCreated"):
        await sessions.create(**{**HERE, **wrong})
    assert await every_row(sessions) == {}


async def test_one_session_that_cannot_be_read_hides_no_other_and_can_be_removed(
    sessions: SessionStore, caplog: pytest.LogCaptureFixture
):
    good, bad, gone = [await sessions.create(**HERE) for _ in range(3)]

    def break_them(rows: Any) -> None:
        rows.put(SESSIONS, ("abc", bad.id), {"id": bad.id, "title": "private words"})
        rows.delete(SESSIONS, ("abc", gone.id))

    await sessions.log.storage.transact(break_them)
    with caplog.at_level(logging.WARNING, "opencode.session"):
        assert [each.id for each in (await sessions.list()).items] == [good.id]
    assert bad.id in caplog.text
    assert "private words" not in caplog.text
    with pytest.raises(MessageDecodeError):
        await sessions.get(bad.id)
    with pytest.raises(SessionNotFoundError):
        await sessions.get(gone.id)
    await sessions.remove(bad.id)
    await sessions.remove(gone.id)
    places: Any = await every_row(sessions)
    assert [key for _, key in places if bad.id in key or gone.id in key] == []


async def test_a_message_whose_document_is_gone_is_left_out(sessions: SessionStore):
    made = await sessions.create(**HERE)
    first, second = [await say(sessions, made.id, text) for text in ("one", "two")]
    await sessions.log.storage.transact(lambda rows: rows.delete(MESSAGES, (made.id, first)))
    assert [entry.message.id for entry in (await sessions.messages(made.id)).items] == [second]
    assert [entry.message.id for entry in await sessions.context(made.id)] == [second]


async def test_what_has_streamed_can_be_read_before_it_ends_and_is_copied_with_a_fork(sessions: SessionStore):
    made = await sessions.create(**HERE)
    who: Any = {"session": made.id, "at": 1, "message": "msg_1"}
    await sessions.log.append(
        StepStarted(**who, part="prt_0", model=MODEL),
        TextStarted(**who, part="prt_1"),
        TextGrew(**who, part="prt_1", offset=0, text="durable "),
        TextGrew(**who, part="prt_1", offset=8, text="text"),
        ReasoningStarted(**who, part="prt_2"),
        ReasoningGrew(**who, part="prt_2", offset=0, text="thought"),
        ToolInputStarted(**who, part="prt_3", call="c", tool="t"),
        ToolInputGrew(**who, part="prt_3", offset=0, text='{"a'),
    )
    await sessions.log.append(StepFailed(**who, error=UnknownFault(message="killed")))
    fork = await sessions.fork(made.id)
    for session in (made.id, fork.id):
        (entry,) = (await sessions.messages(session)).items
        _, text, reasoning, tool = entry.parts
        assert isinstance(text, TextPart)
        assert text.text == "durable text"
        assert isinstance(reasoning, ReasoningPart)
        assert reasoning.text == "thought"
        assert isinstance(tool, ToolPart)
        assert tool.state == PendingTool(raw='{"a')


async def test_a_step_is_over_once(sessions: SessionStore):
    made = await sessions.create(**HERE)
    who: Any = {"session": made.id, "at": 1, "message": "msg_1"}
    await sessions.log.append(StepStarted(**who, part="prt_0", model=MODEL), StepFailed(**who, error=UnknownFault()))
    for again in (StepEnded(**who, part="prt_1", finish="stop"), StepFailed(**who, error=UnknownFault())):
        with pytest.raises(IllegalTransitionError, match="over already"):
            await sessions.log.append(again)


async def test_following_a_session_that_was_removed_ends_with_an_error(sessions: SessionStore):
    made = await sessions.create(**HERE)
    await sessions.switch_agent(made.id, "a")
    async with sessions.events(made.id) as events:
        assert (await anext(events)).sequence == 1
        async with anyio.create_task_group() as group:
            group.start_soon(sessions.remove, made.id)
            with pytest.raises(LogRemovedError, match=made.id):
                await anext(events)


async def test_following_does_not_go_on_in_another_log_of_the_same_name(sessions: SessionStore):
    made = await sessions.create(**HERE)
    await sessions.switch_agent(made.id, "a")
    async with sessions.events(made.id) as events:
        assert (await anext(events)).sequence == 1
        await sessions.remove(made.id)
        await sessions.create(id=made.id, **HERE)
        for agent in ("b", "c", "d"):
            await sessions.switch_agent(made.id, agent)
        with pytest.raises(LogRemovedError):
            await anext(events)


async def test_a_log_whose_end_is_not_known_is_not_written_over(sessions: SessionStore):
    made = await sessions.create(**HERE)
    await sessions.switch_agent(made.id, "a")
    await sessions.log.storage.transact(lambda rows: rows.delete(HEADS, (made.id,)))
    before = await every_row(sessions)
    with pytest.raises(StorageDamagedError, match=made.id):
        await sessions.switch_agent(made.id, "b")
    assert await every_row(sessions) == before


async def test_an_export_cannot_write_into_another_session(sessions: SessionStore):
    victim = await sessions.create(**HERE, title="mine")
    other = await sessions.create(**HERE)
    document: Any = await sessions.export(victim.id)
    with pytest.raises(ForeignAggregateError):
        await sessions.import_({**document, "session": other.id})
    for wrong in ({**document, "events": []}, {**document, "format": "opencode-core/session/2"}):
        with pytest.raises(Exception, match=r"not an exported session|another version"):
            await sessions.import_(wrong)


async def test_a_first_generation_export_that_is_there_already_changes_nothing(sessions: SessionStore):
    await write(sessions, first_generation("ses_old"))
    document: Any = await sessions.export("ses_old")
    await sessions.remove("ses_old")
    await sessions.import_(document)
    before = await every_row(sessions)
    await sessions.import_(document)
    assert await every_row(sessions) == before
    with pytest.raises(DivergenceError):
        await sessions.import_({**document, "info": {**document["info"], "title": "Other"}})


async def test_a_session_is_not_its_own_parent_and_a_circle_can_be_removed(sessions: SessionStore):
    with pytest.raises(SessionError, match="own parent"):
        await sessions.create(id="ses_x", parent="ses_x", **HERE)
    await sessions.create(id="ses_a", parent="ses_b", **HERE)
    await sessions.create(id="ses_b", parent="ses_a", **HERE)
    await sessions.remove("ses_a")
    assert await every_row(sessions) == {}


async def test_a_first_generation_session_is_not_continued_without_its_log(sessions: SessionStore):
    await write(sessions, first_generation("ses_old"))
    before = await every_row(sessions)
    with pytest.raises(LifecycleConflictError, match=r"would begin with 'session\.titled'"):
        await sessions.log.append(SessionTitled(session="ses_old", at=1, title="New"))
    assert await every_row(sessions) == before
