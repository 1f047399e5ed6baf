"""Which events and which messages are shown, of this generation and of the first."""

from __future__ import annotations

from typing import Any

import pytest

from opencode_core.errors import MessageDecodeError
from opencode_core.model.context import SnapshotEntry
from opencode_core.model.event.conversation import SyntheticAdded
from opencode_core.model.event.session import (
    CompactionEnded,
    CompactionStarted,
    ContextAdmitted,
    EpochStarted,
    SessionTitled,
    SessionTouched,
)
from opencode_core.model.message import UserMessage
from opencode_core.model.rows import MESSAGES, PARTS, SESSION_LISTS, SESSION_PLACES, SESSIONS, list_keys
from opencode_core.session.store import SessionStore

HERE: Any = {"project": "abc", "directory": "/work"}


async def titled(sessions: SessionStore, session: str, *titles: str) -> None:
    await sessions.log.append(*(SessionTitled(session=session, at=1, title=title) for title in titles))


@pytest.mark.behaviour("HI-02", "HI-03")
async def test_pages_skip_private_events_and_never_repeat_one(sessions: SessionStore):
    made = await sessions.create(**HERE)
    await titled(sessions, made.id, "one")
    await sessions.log.append(SessionTouched(session=made.id, at=1))
    await titled(sessions, made.id, "three", "four")
    first = await sessions.history(made.id, limit=2)
    assert [each.sequence for each in first.events] == [1, 3]
    assert first.has_more
    second = await sessions.history(made.id, after=3, limit=2)
    assert [each.sequence for each in second.events] == [4]
    assert not second.has_more


@pytest.mark.behaviour("HI-04")
async def test_an_event_committed_between_pages_is_on_the_next(sessions: SessionStore):
    made = await sessions.create(**HERE)
    await titled(sessions, made.id, "one", "two")
    first = await sessions.history(made.id, limit=2)
    assert not first.has_more
    await titled(sessions, made.id, "three")
    second = await sessions.history(made.id, after=first.events[-1].sequence)
    assert [each.sequence for each in second.events] == [3]


@pytest.mark.behaviour("HI-05")
async def test_exactly_the_limit_is_all_and_one_more_is_not(sessions: SessionStore):
    made = await sessions.create(**HERE)
    await titled(sessions, made.id, *"abc")
    assert not (await sessions.history(made.id, limit=3)).has_more
    assert (await sessions.history(made.id, limit=2)).has_more
    await sessions.log.append(SessionTouched(session=made.id, at=1))
    assert not (await sessions.history(made.id, limit=3)).has_more, "a private event is not more"


async def test_history_wants_a_positive_limit(sessions: SessionStore):
    made = await sessions.create(**HERE)
    with pytest.raises(ValueError, match="positive"):
        await sessions.history(made.id, limit=0)


def said(session: str, message: str) -> SyntheticAdded:
    return SyntheticAdded(session=session, at=1, message=message, text=message)


def told(session: str, message: str) -> ContextAdmitted:
    return ContextAdmitted(
        session=session, at=1, message=message, text=message, changed={"core/date": SnapshotEntry(value=message)}
    )


async def shown(sessions: SessionStore, session: str) -> list[str]:
    return [entry.message.id for entry in await sessions.context(session)]


@pytest.mark.behaviour("HI-08")
async def test_without_an_epoch_only_the_compaction_cuts(sessions: SessionStore):
    session = (await sessions.create(**HERE)).id
    await sessions.log.append(said(session, "msg_1"), told(session, "msg_2"), said(session, "msg_3"))
    assert await shown(sessions, session) == ["msg_1", "msg_2", "msg_3"]
    await sessions.log.append(
        CompactionStarted(session=session, at=1, message="msg_4"),
        CompactionEnded(session=session, at=1, message="msg_4", text="so far"),
        said(session, "msg_5"),
        told(session, "msg_6"),
    )
    assert await shown(sessions, session) == ["msg_4", "msg_5", "msg_6"]


@pytest.mark.behaviour("HI-07", "HI-08")
async def test_system_messages_that_the_baseline_has_not_folded_stay(sessions: SessionStore):
    session = (await sessions.create(**HERE)).id
    await sessions.log.append(said(session, "msg_1"), told(session, "msg_2"))
    await sessions.log.append(EpochStarted(session=session, at=1, baseline="b", snapshot={}, since=2))
    assert await shown(sessions, session) == ["msg_1"], "what the baseline folded in is not said again"
    await sessions.log.append(told(session, "msg_3"), said(session, "msg_4"))
    await sessions.log.append(CompactionEnded(session=session, at=1, message="msg_5", text="so far"))
    await sessions.log.append(told(session, "msg_6"))
    assert await shown(sessions, session) == ["msg_3", "msg_5", "msg_6"], "until a new baseline, the newer ones stay"
    newest = await sessions.log.head(session) - 1
    await sessions.log.append(
        EpochStarted(session=session, at=1, baseline="c", snapshot={}, since=newest, reason="compaction")
    )
    assert await shown(sessions, session) == ["msg_5", "msg_6"]


@pytest.mark.behaviour("HI-09")
async def test_a_row_that_cannot_be_read_names_its_session_and_message(sessions: SessionStore):
    session = (await sessions.create(**HERE)).id
    await sessions.log.append(said(session, "msg_1"))
    broken = {"role": "user", "id": "msg_1", "secret": "do not say this"}
    await sessions.log.storage.transact(lambda rows: rows.put(MESSAGES, (session, "msg_1"), broken))
    for call in (sessions.messages(session), sessions.context(session)):
        with pytest.raises(MessageDecodeError) as raised:
            await call
        assert (raised.value.session, raised.value.message) == (session, "msg_1")
        assert "do not say this" not in str(raised.value)


def first_generation(session: str) -> dict[Any, Any]:
    """What a first-generation program left: documents alone, with a field that nobody here knows."""
    model = {"providerID": "p", "modelID": "m"}
    rows: dict[Any, Any] = {
        (SESSIONS, ("abc", session)): {
            "id": session,
            "version": "0.9",
            "projectID": "abc",
            "directory": "/work",
            "title": "Old",
            "time": {"created": 5, "updated": 6},
            "fromTheFuture": {"kept": True},
        },
        (SESSION_PLACES, (session,)): {"project": "abc", "created": 5},
    }
    for number, role in enumerate(("user", "assistant", "user")):
        id = f"msg_{number}"
        info: dict[str, Any] = {"id": id, "sessionID": session, "role": role, "time": {"created": number}}
        if role == "user":
            info |= {"agent": "build", "model": model}
        else:
            info |= {"parentID": "msg_0", "modelID": "m", "providerID": "p", "mode": "build", "agent": "build"}
            info |= {"path": {"cwd": "/work", "root": "/work"}, "cost": 0.01, "finish": "stop"}
            info |= {"tokens": {"input": 1, "output": 2, "reasoning": 0, "cache": {"read": 0, "write": 0}}}
        rows[MESSAGES, (session, id)] = info
        part = {"id": f"prt_{number}", "sessionID": session, "messageID": id, "type": "text", "text": role}
        rows[PARTS, (id, part["id"])] = part
    for key in list_keys(session, "abc", "/work", None, 5):
        rows[SESSION_LISTS, key] = True
    return rows


async def write(sessions: SessionStore, rows: dict[Any, Any]) -> None:
    def work(transaction: Any) -> None:
        for (table, key), row in rows.items():
            transaction.put(table, key, row)

    await sessions.log.storage.transact(work)


@pytest.mark.behaviour("HI-01", "V1-27")
async def test_a_first_generation_session_is_readable_and_has_no_events(sessions: SessionStore):
    await write(sessions, first_generation("ses_old"))
    page = await sessions.history("ses_old")
    assert (page.events, page.has_more) == ((), False)
    entries = (await sessions.messages("ses_old", oldest_first=True, limit=2)).items
    assert [(entry.sequence, entry.message.id) for entry in entries] == [(None, "msg_0"), (None, "msg_1")]
    assert [entry.message.id async for entry in sessions.stream("ses_old")] == ["msg_2", "msg_1", "msg_0"]
    assert await shown(sessions, "ses_old") == ["msg_0", "msg_1", "msg_2"]
    assert [each.title for each in (await sessions.list(project="abc")).items] == ["Old"]


@pytest.mark.behaviour("V1-27")
async def test_a_first_generation_session_gets_a_log_when_it_is_continued(sessions: SessionStore):
    old = first_generation("ses_old")
    await write(sessions, old)
    await sessions.switch_agent("ses_old", "plan")
    rows: dict[Any, Any] = await sessions.log.storage.view(
        lambda rows: {(table, key): rows.get(table, key) for table, key in old}
    )
    changed = {place for place in old if rows[place] != old[place]}
    assert changed == {(SESSIONS, ("abc", "ses_old"))}, "only the session says something new"
    assert rows[SESSIONS, ("abc", "ses_old")]["fromTheFuture"] == {"kept": True}
    page = await sessions.log.history("ses_old", private=True)
    assert [each.event.kind.type for each in page.events] == [
        "session.imported",
        "message.imported",
        "message.imported",
        "message.imported",
        "agent.switched",
    ]
    assert [entry.message.id async for entry in sessions.stream("ses_old", oldest_first=True)][:3] == [
        "msg_0",
        "msg_1",
        "msg_2",
    ]
    await sessions.switch_agent("ses_old", "build")
    assert await sessions.log.head("ses_old") == 5, "it is adopted once"


@pytest.mark.behaviour("V1-02", "V1-27")
async def test_a_first_generation_export_can_be_imported(sessions: SessionStore):
    await write(sessions, first_generation("ses_old"))
    document = await sessions.export("ses_old")
    assert set(document) == {"info", "messages"}
    await sessions.remove("ses_old")
    assert (await sessions.import_(document)).title == "Old"
    assert await shown(sessions, "ses_old") == ["msg_0", "msg_1", "msg_2"]


@pytest.mark.behaviour("V1-24")
async def test_a_completed_first_generation_summary_cuts_what_was_before(sessions: SessionStore):
    rows = first_generation("ses_old")
    rows[PARTS, ("msg_2", "prt_c")] = {
        "id": "prt_c",
        "sessionID": "ses_old",
        "messageID": "msg_2",
        "type": "compaction",
        "auto": True,
    }
    answer = {**rows[MESSAGES, ("ses_old", "msg_1")], "id": "msg_3", "parentID": "msg_2", "summary": True}
    unfinished = {name: value for name, value in answer.items() if name != "finish"}
    rows[MESSAGES, ("ses_old", "msg_3")] = unfinished
    await write(sessions, rows)
    assert await shown(sessions, "ses_old") == ["msg_0", "msg_1", "msg_2", "msg_3"], "an unfinished one cuts nothing"
    await write(sessions, {(MESSAGES, ("ses_old", "msg_3")): answer})
    assert await shown(sessions, "ses_old") == ["msg_2", "msg_3"]
    (entry, *_) = await sessions.context("ses_old")
    assert isinstance(entry.message, UserMessage)
