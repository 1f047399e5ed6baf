from __future__ import annotations

from typing import Any

import anyio
import attrs
import pytest

from opencode_core.errors import (
    InvalidKeyError,
    MessageNotFoundError,
    OperationUnavailableError,
    SessionError,
    SessionNotFoundError,
)
from opencode_core.ids import Ids
from opencode_core.model.event.base import Recorded
from opencode_core.model.event.conversation import StepStarted, SyntheticAdded, TextEnded, TextStarted, ToolCalled
from opencode_core.model.event.live import SessionDeleted
from opencode_core.model.event.session import (
    AgentSwitched,
    EpochStarted,
    ModelSwitched,
    PromptAdmitted,
    PromptPromoted,
    SessionCreated,
)
from opencode_core.model.message import AssistantMessage, SyntheticMessage, UserMessage
from opencode_core.model.part import TextPart
from opencode_core.model.permission import PermissionRule
from opencode_core.model.prompt import Prompt
from opencode_core.model.session import ModelChoice, Share
from opencode_core.session.store import SessionStore
from opencode_core.storage.log import EventLog

HERE: Any = {"project": "abc", "directory": "/work"}
MODEL = ModelChoice(provider="demo", model="small")


async def say(sessions: SessionStore, session: str, text: str) -> str:
    message = sessions.ids.ascending("message")
    await sessions.log.append(SyntheticAdded(session=session, at=sessions.now(), message=message, text=text))
    return message


async def answer(sessions: SessionStore, session: str, parent: str, text: str) -> str:
    message, part = sessions.ids.ascending("message"), sessions.ids.ascending("part")
    at = sessions.now()
    start = sessions.ids.ascending("part")
    await sessions.log.append(
        StepStarted(session=session, at=at, message=message, part=start, model=MODEL, parent=parent),
        TextStarted(session=session, at=at, message=message, part=part),
        TextEnded(session=session, at=at, message=message, part=part, text=text),
    )
    return message


async def every_row(sessions: SessionStore) -> dict[object, object]:
    return await sessions.log.storage.view(
        lambda rows: {(table, key): row for table in rows.tables() for key, row in rows.scan(table)}
    )


@pytest.mark.behaviour("SE-01")
async def test_two_sessions_without_an_id_are_two(sessions: SessionStore):
    first, second = await sessions.create(**HERE), await sessions.create(**HERE)
    assert first.id != second.id
    assert second.id < first.id, "newer ones sort first"


@pytest.mark.behaviour("SE-02", "SE-04", "SE-06")
async def test_an_id_that_exists_gives_the_session_as_it_is_now(sessions: SessionStore):
    first = await sessions.create(id="ses_mine", **HERE, agent="build")
    await sessions.switch_agent("ses_mine", "plan")
    again = await sessions.create(id="ses_mine", project="other", directory="/elsewhere", agent="review", model=MODEL)
    assert (again.directory, again.agent, again.model) == (first.directory, "plan", None)
    assert len((await sessions.list()).items) == 1


@pytest.mark.behaviour("SE-03", "V1-01")
async def test_what_was_chosen_is_stored(sessions: SessionStore):
    rule = PermissionRule(permission="edit", pattern="*", action="deny")
    chosen = ModelChoice(provider="demo", model="small", variant="high")
    made = await sessions.create(
        **HERE, agent="build", model=chosen, workspace="wrk_1", parent="ses_p", permission=(rule,), title="Ours"
    )
    found = await sessions.get(made.id)
    assert found == made
    assert (found.agent, found.model, found.workspace, found.parent) == ("build", chosen, "wrk_1", "ses_p")
    assert (found.title, found.permission, found.version, found.project) == ("Ours", (rule,), "0.1.0", "abc")
    assert found.slug.count("-") == 1
    assert found.time.created == found.time.updated


@pytest.mark.behaviour("SE-05")
async def test_two_creators_of_one_id_get_one_session(sessions: SessionStore):
    made = []

    async def create() -> None:
        made.append(await sessions.create(id="ses_race", **HERE))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(create)
    assert len({session.time.created for session in made}) == 1
    assert await sessions.log.head("ses_race") == 0


@pytest.mark.behaviour("SE-07", "EV-17")
async def test_one_created_event_is_stored_with_the_callers_id(sessions: SessionStore):
    await sessions.create(id="ses_mine", **HERE)
    page = await sessions.log.history("ses_mine", private=True)
    assert [type(each.event) for each in page.events] == [SessionCreated]
    assert page.events[0].aggregate == "ses_mine"
    event = page.events[0].event
    assert isinstance(event, SessionCreated)
    assert event.session == "ses_mine"


@pytest.mark.behaviour("SE-08")
async def test_followers_do_not_see_the_creation_and_start_at_one(sessions: SessionStore):
    made = await sessions.create(**HERE)
    await sessions.log.append(
        PromptAdmitted(session=made.id, at=1, message="msg_1", prompt=Prompt(text="hello"), parts=("prt_1",)),
        PromptPromoted(session=made.id, at=2, message="msg_1", admitted=1, admitted_at=1),
    )
    async with sessions.events(made.id) as events:
        seen = [await anext(events), await anext(events)]
    assert [(each.sequence, type(each.event)) for each in seen] == [(1, PromptAdmitted), (2, PromptPromoted)]


@pytest.mark.behaviour("SE-10")
async def test_a_defect_in_a_projector_surfaces_when_a_session_is_created(sessions: SessionStore):
    def broken(_rows: object, recorded: Recorded) -> None:
        raise ZeroDivisionError(recorded.id)

    log = EventLog(storage=sessions.log.storage, ids=sessions.ids, projectors=(*sessions.log.projectors, broken))
    with pytest.raises(ZeroDivisionError):
        await attrs.evolve(sessions, log=log).create(id="ses_x", **HERE)
    with pytest.raises(SessionNotFoundError):
        await sessions.get("ses_x")


@pytest.mark.behaviour("SE-11")
async def test_operations_that_do_not_exist_yet_say_so(sessions: SessionStore):
    for operation, call in (("shell", sessions.shell("ses_x", "ls")), ("skill", sessions.skill("ses_x", "s"))):
        with pytest.raises(OperationUnavailableError) as raised:
            await call
        assert raised.value.operation == operation
    with pytest.raises(SessionNotFoundError):
        await sessions.compact("ses_x")
    made = await sessions.create(**HERE)
    for operation, call in (("compact", sessions.compact(made.id)), ("wait", sessions.wait(made.id))):
        with pytest.raises(OperationUnavailableError, match=operation):
            await call


@pytest.mark.behaviour("SE-12")
async def test_an_agent_switch_is_one_event_each_time(sessions: SessionStore):
    made = await sessions.create(**HERE)
    assert (await sessions.switch_agent(made.id, "plan")).agent == "plan"
    await sessions.switch_agent(made.id, "plan")
    page = await sessions.history(made.id)
    assert [type(each.event) for each in page.events] == [AgentSwitched, AgentSwitched]


@pytest.mark.behaviour("SE-13", "SE-14")
async def test_a_model_switch_to_the_same_selection_is_no_event(sessions: SessionStore):
    made = await sessions.create(**HERE)
    assert (await sessions.switch_model(made.id, MODEL)).model == MODEL
    await sessions.switch_model(made.id, MODEL)
    await sessions.switch_model(made.id, attrs.evolve(MODEL, variant="default"))
    page = await sessions.history(made.id)
    assert [type(each.event) for each in page.events] == [ModelSwitched]
    await sessions.switch_model(made.id, attrs.evolve(MODEL, variant="high"))
    assert len((await sessions.history(made.id)).events) == 2


@pytest.mark.behaviour("SE-15", "HI-06")
async def test_a_missing_session_is_a_typed_error_everywhere(sessions: SessionStore):
    for call in (
        sessions.get("ses_x"),
        sessions.switch_agent("ses_x", "plan"),
        sessions.switch_model("ses_x", MODEL),
        sessions.touch("ses_x"),
        sessions.archive("ses_x"),
        sessions.update("ses_x", lambda found: found),
        sessions.remove("ses_x"),
        sessions.fork("ses_x"),
        sessions.export("ses_x"),
        sessions.messages("ses_x"),
        sessions.context("ses_x"),
        sessions.pending("ses_x"),
        sessions.history("ses_x"),
        sessions.move("ses_x", directory="/", project="p"),
    ):
        with pytest.raises(SessionNotFoundError, match="ses_x"):
            await call
    assert await every_row(sessions) == {}


async def test_an_id_of_another_kind_is_refused(sessions: SessionStore):
    with pytest.raises(InvalidKeyError):
        await sessions.create(id="msg_1", **HERE)


@pytest.mark.behaviour("V1-02")
async def test_an_update_is_one_step_and_only_of_what_can_be_edited(sessions: SessionStore):
    made = await sessions.create(**HERE)
    changed = await sessions.update(
        made.id, lambda found: attrs.evolve(found, title="A", share=Share(url="https://s/1"))
    )
    assert (changed.title, changed.share) == ("A", Share(url="https://s/1"))
    assert changed.time.updated > made.time.updated
    assert (await sessions.update(made.id, lambda found: attrs.evolve(found, share=None))).share is None
    with pytest.raises(SessionError, match="directory"):
        await sessions.update(made.id, lambda found: attrs.evolve(found, title="B", directory="/else"))
    assert (await sessions.get(made.id)).title == "A"


@pytest.mark.behaviour("V1-02")
async def test_concurrent_updates_do_not_lose_each_other(sessions: SessionStore):
    made = await sessions.create(**HERE, title="")

    async def add(letter: str) -> None:
        await sessions.update(made.id, lambda found: attrs.evolve(found, title=found.title + letter))

    async with anyio.create_task_group() as group:
        for letter in "abcdefgh":
            group.start_soon(add, letter)
    assert sorted((await sessions.get(made.id)).title) == list("abcdefgh")


@pytest.mark.behaviour("V1-02")
async def test_touch_and_archive_change_the_times(sessions: SessionStore):
    made = await sessions.create(**HERE)
    touched = await sessions.touch(made.id)
    assert touched.time.updated > made.time.updated
    assert (await sessions.archive(made.id)).time.archived is not None
    assert (await sessions.list()).items == ()
    assert len((await sessions.list(archived=True)).items) == 1
    assert (await sessions.unarchive(made.id)).time.archived is None
    assert len((await sessions.list()).items) == 1


@pytest.mark.behaviour("V1-02")
async def test_lists_are_newest_first_in_pages_that_go_both_ways(sessions: SessionStore):
    made = [await sessions.create(**HERE) for _ in range(7)]
    other = await sessions.create(project="other", directory="/other")
    newest_first = [each.id for each in reversed(made)]
    first = await sessions.list(project="abc", limit=3)
    second = await sessions.list(project="abc", limit=3, cursor=first.next)
    third = await sessions.list(project="abc", limit=3, cursor=second.next)
    assert [each.id for page in (first, second, third) for each in page.items] == newest_first
    assert (first.previous, third.next) == (None, None)
    back = await sessions.list(project="abc", limit=3, cursor=third.previous)
    assert back.items == second.items
    assert (await sessions.list(project="abc", limit=3, cursor=back.previous)).items == first.items
    assert [each.id for each in (await sessions.list()).items] == [other.id, *newest_first]
    assert [each.id for each in (await sessions.list(directory="/other")).items] == [other.id]
    oldest = await sessions.list(project="abc", limit=2, oldest_first=True)
    assert [each.id for each in oldest.items] == [each.id for each in made[:2]]
    assert (await sessions.list(cursor="nonsense")).items == ()
    with pytest.raises(ValueError, match="positive"):
        await sessions.list(limit=0)


async def test_sessions_of_one_moment_are_newest_first_too(sessions: SessionStore):
    same = attrs.evolve(sessions, ids=Ids(milliseconds=lambda: 5), now=lambda: 5)
    made = [await same.create(**HERE) for _ in range(3)]
    assert [each.id for each in (await same.list()).items] == [each.id for each in reversed(made)]


@pytest.mark.behaviour("V1-02")
async def test_removing_takes_everything_with_it_and_nothing_else(sessions: SessionStore):
    kept = await sessions.create(**HERE)
    await say(sessions, kept.id, "stays")
    before = await every_row(sessions)
    heard = sessions.log.bus.subscribe(SessionDeleted)
    made = await sessions.create(**HERE)
    child = await sessions.create(**HERE, parent=made.id)
    grandchild = await sessions.create(**HERE, parent=child.id)
    for session in (made, child, grandchild):
        user = await say(sessions, session.id, "goes")
        message = await answer(sessions, session.id, user, "goes too")
        await sessions.log.append(
            PromptAdmitted(
                session=session.id,
                at=1,
                message=sessions.ids.ascending("message"),
                prompt=Prompt(text="pending"),
                parts=(sessions.ids.ascending("part"),),
            ),
            ToolCalled(session=session.id, at=1, message=message, part="prt_t", call="c", tool="t", input={}),
            EpochStarted(session=session.id, at=1, baseline="b", snapshot={}, since=0),
        )
    await sessions.remove(made.id)
    assert await every_row(sessions) == before
    assert {(await anext(heard)).session for _ in range(3)} == {made.id, child.id, grandchild.id}
    again = await sessions.create(id=made.id, **HERE)
    assert await sessions.log.head(again.id) == 0


@pytest.mark.behaviour("V1-02")
async def test_children_are_those_that_a_session_started(sessions: SessionStore):
    parent = await sessions.create(**HERE)
    children = [await sessions.create(**HERE, parent=parent.id) for _ in range(2)]
    assert [each.id for each in (await sessions.children(parent.id)).items] == [children[1].id, children[0].id]


@pytest.mark.behaviour("V1-02")
async def test_a_fork_copies_what_was_said_before_a_message_under_new_ids(sessions: SessionStore):
    made = await sessions.create(**HERE, agent="build", model=MODEL, title="Ours")
    question = await say(sessions, made.id, "question")
    reply = await answer(sessions, made.id, question, "reply")
    later = await say(sessions, made.id, "later")
    whole = await sessions.fork(made.id)
    part = await sessions.fork(made.id, until=later)
    copied = (await sessions.messages(part.id, oldest_first=True)).items
    assert [type(entry.message) for entry in copied] == [SyntheticMessage, AssistantMessage]
    assert isinstance(copied[1].message, AssistantMessage)
    assert copied[1].message.parent == copied[0].message.id
    assert {copied[0].message.id, copied[1].message.id}.isdisjoint({question, reply})
    texts = [each for each in copied[1].parts if isinstance(each, TextPart)]
    assert [(each.text, each.message, each.session) for each in texts] == [("reply", copied[1].message.id, part.id)]
    assert len((await sessions.messages(whole.id)).items) == 3
    assert (part.agent, part.model, part.parent) == ("build", MODEL, None)
    with pytest.raises(MessageNotFoundError):
        await sessions.fork(made.id, until="msg_x")
    await sessions.remove(made.id)
    assert len((await sessions.messages(part.id)).items) == 2


@pytest.mark.behaviour("V1-02")
async def test_an_export_can_be_imported_elsewhere_and_twice(sessions: SessionStore):
    from plugins_builtin import storage_memory

    made = await sessions.create(**HERE)
    await answer(sessions, made.id, await say(sessions, made.id, "question"), "reply")
    document = await sessions.export(made.id)
    elsewhere = await storage_memory.open_store("memory:")
    target = attrs.evolve(sessions, log=EventLog(storage=elsewhere, ids=sessions.ids))
    assert await target.import_(document) == made
    assert await target.import_(document) == made
    assert await every_row(target) == await every_row(sessions)
    await elsewhere.aclose()


async def test_a_document_that_is_no_export_is_refused(sessions: SessionStore):
    from opencode_core.errors import LogError

    documents: tuple[Any, ...] = (
        {},
        [],
        "x",
        {"format": "other"},
        {"format": "opencode-core/session/1", "session": "s"},
    )
    for document in documents:
        with pytest.raises(LogError, match="not an exported session"):
            await sessions.import_(document)


@pytest.mark.behaviour("V1-24", "PR-03")
async def test_pages_of_messages_follow_the_sequence_in_both_directions(sessions: SessionStore):
    made = await sessions.create(**HERE)
    order = ["msg_9", "msg_5", "msg_7", "msg_1", "msg_3"]
    for message in order:
        await sessions.log.append(SyntheticAdded(session=made.id, at=1, message=message, text=message))
    first = await sessions.messages(made.id, limit=2, oldest_first=True)
    second = await sessions.messages(made.id, limit=2, cursor=first.next)
    third = await sessions.messages(made.id, limit=2, cursor=second.next)
    assert [entry.message.id for page in (first, second, third) for entry in page.items] == order
    assert third.next is None
    back = await sessions.messages(made.id, limit=2, cursor=third.previous)
    assert back.items == second.items
    newest = await sessions.messages(made.id, limit=2)
    assert [entry.message.id for entry in newest.items] == ["msg_3", "msg_1"]
    assert (await sessions.messages(made.id, cursor="bm9wZQ")).items == ()
    assert [entry.message.id async for entry in sessions.stream(made.id)] == order[::-1]
    assert [entry.message.id for entry in await sessions.context(made.id)] == order


@pytest.mark.behaviour("V1-24")
async def test_a_stream_goes_back_through_more_messages_than_a_page(sessions: SessionStore):
    made = await sessions.create(**HERE)
    texts = [f"msg_{number:03}" for number in range(120)]
    await sessions.log.append(*(SyntheticAdded(session=made.id, at=1, message=message, text="x") for message in texts))
    assert [entry.message.id async for entry in sessions.stream(made.id)] == texts[::-1]


@pytest.mark.behaviour("SE-09", "EV-31", "EV-32")
async def test_events_replayed_in_two_chunks_give_the_inbox_first_and_then_the_message(sessions: SessionStore):
    from opencode_core.storage.envelope import serialize
    from plugins_builtin import storage_memory

    made = await sessions.create(**HERE)
    await sessions.log.append(
        PromptAdmitted(session=made.id, at=1, message="msg_1", prompt=Prompt(text="hello"), parts=("prt_1",)),
        PromptPromoted(session=made.id, at=2, message="msg_1", admitted=1, admitted_at=1),
    )
    page = await sessions.log.history(made.id, private=True)
    sent = [serialize(each, sessions.log.codec) for each in page.events]
    elsewhere = await storage_memory.open_store("memory:")
    target = attrs.evolve(sessions, log=EventLog(storage=elsewhere, ids=sessions.ids))
    await target.log.replay(*sent[:2])
    assert [row.message for row in await target.pending(made.id)] == ["msg_1"]
    assert await target.context(made.id) == ()
    added = await target.log.replay(*sent[2:])
    assert [each.sequence for each in added] == [2]
    assert await target.pending(made.id) == ()
    (entry,) = await target.context(made.id)
    assert isinstance(entry.message, UserMessage)
    assert entry.sequence == 2
    assert await every_row(target) == await every_row(sessions)
    await elsewhere.aclose()
