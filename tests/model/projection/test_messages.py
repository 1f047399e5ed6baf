"""Messages stand in the order of the log, and each fact changes what it is about and nothing else."""

from decimal import Decimal
from typing import Any

import pytest

from opencode_core.errors import (
    IllegalTransitionError,
    MessageDecodeError,
    MessageNotFoundError,
    MessageReusedError,
    SessionError,
    SessionNotFoundError,
)
from opencode_core.model.event import conversation as c
from opencode_core.model.event import session as s
from opencode_core.model.fault import ApiFault
from opencode_core.model.message import (
    AgentSwitchMessage,
    CompactionMessage,
    ModelSwitchMessage,
    ShellMessage,
    SyntheticMessage,
    SystemMessage,
)
from opencode_core.model.part import CacheTokens, StepFinishPart, StepStartPart, TextPart, Tokens
from opencode_core.model.rows import MESSAGES, PARTS, SYSTEM_ORDER
from opencode_core.model.session import FileDiff
from tests.model.projection.making import (
    ASSISTANT,
    MODEL,
    Conversation,
    admitted,
    conversation,
    ended,
    imported,
    part,
    promoted,
    said,
    step,
)


@pytest.mark.behaviour("PR-03")
def test_messages_follow_the_sequence_although_ids_and_times_go_the_other_way() -> None:
    told = conversation()
    told.tell(admitted("msg_9", at=90), admitted("msg_5", at=90), admitted("msg_1", at=10))
    told.tell(promoted("msg_9", 1, at=99, admitted_at=90), promoted("msg_5", 2, at=50, admitted_at=90))
    told.tell(promoted("msg_1", 3, at=1), step("msg_0", at=0))
    assert told.order == ["msg_9", "msg_5", "msg_1", "msg_0"]


@pytest.mark.behaviour("PR-03")
def test_parts_follow_the_sequence_although_ids_and_times_go_the_other_way() -> None:
    told = conversation()
    told.tell(step("msg_1", part="prt_9"))
    for id, at in (("prt_5", 50), ("prt_7", 40), ("prt_1", 30)):
        told.tell(part(c.TextStarted, "msg_1", id, at=at))
    told.tell(ended("msg_1", part="prt_0", at=1))
    assert told.part_order("msg_1") == ["prt_9", "prt_5", "prt_7", "prt_1", "prt_0"]


@pytest.mark.behaviour("PR-04")
def test_switches_synthetic_shell_and_compaction_are_five_messages_in_order() -> None:
    told = conversation()
    told.tell(
        s.AgentSwitched(session="ses_1", at=2, message="msg_a", agent="plan"),
        s.ModelSwitched(session="ses_1", at=3, message="msg_b", model=MODEL),
        c.SyntheticAdded(session="ses_1", at=4, message="msg_c", text="go on"),
        c.ShellStarted(session="ses_1", at=5, message="msg_d", call="call_1", command="ls"),
        c.ShellEnded(session="ses_1", at=6, message="msg_d", output="a"),
        s.CompactionStarted(session="ses_1", at=7, message="msg_e"),
    )
    assert told.order == ["msg_a", "msg_b", "msg_c", "msg_d"]
    assert told.session.time.compacting == 7
    told.tell(s.CompactionEnded(session="ses_1", at=8, message="msg_e", text="so far", recent="tail", auto=False))
    kinds = [type(message) for message in told.messages]
    assert kinds == [AgentSwitchMessage, ModelSwitchMessage, SyntheticMessage, ShellMessage, CompactionMessage]
    shell, compaction = told.message("msg_d"), told.message("msg_e")
    assert (shell.output, shell.time.created, shell.time.completed) == ("a", 5, 6)
    assert (compaction.text, compaction.recent, compaction.auto) == ("so far", "tail", False)
    session = told.session
    assert (session.agent, session.model, session.time.updated, session.time.compacting) == ("plan", MODEL, 8, None)
    assert told.cursor()["compaction"] == 7


def test_a_compaction_that_failed_leaves_the_conversation_as_it_was() -> None:
    told = conversation()
    told.tell(said("msg_a"), s.CompactionStarted(session="ses_1", at=7, message="msg_e"))
    told.tell(s.CompactionFailed(session="ses_1", at=8, message="msg_e", reason="no"))
    assert (told.order, told.session.time.compacting, told.cursor()) == (["msg_a"], None, {})


CREATORS: dict[str, Any] = {
    "a step": step("msg_a"),
    "a synthetic": said("msg_a", text="other"),
    "a shell": c.ShellStarted(session="ses_1", at=5, message="msg_a", call="call_1", command="ls"),
    "an agent": s.AgentSwitched(session="ses_1", at=2, message="msg_a", agent="plan"),
    "a model": s.ModelSwitched(session="ses_1", at=3, message="msg_a", model=MODEL),
    "a compaction": s.CompactionEnded(session="ses_1", at=8, message="msg_a", text="so far"),
    "context": s.ContextAdmitted(session="ses_1", at=8, message="msg_a", text="now"),
    "an import": imported("msg_a", "synthetic", text="other"),
}


@pytest.mark.behaviour("PR-05")
@pytest.mark.parametrize("event", CREATORS.values(), ids=CREATORS)
def test_a_second_message_of_one_id_is_refused_and_the_first_stays(event: Any) -> None:
    told = conversation()
    told.tell(said("msg_a", text="first"))
    refused(told, MessageReusedError, event)


@pytest.mark.behaviour("PR-05")
@pytest.mark.parametrize("event", CREATORS.values(), ids=CREATORS)
def test_the_id_of_an_admitted_prompt_is_taken(event: Any) -> None:
    told = conversation()
    told.tell(admitted("msg_a"))
    refused(told, MessageReusedError, event)


@pytest.mark.parametrize("event", CREATORS.values(), ids=CREATORS)
def test_a_message_of_a_session_that_is_not_there_is_refused(event: Any) -> None:
    refused(Conversation(), SessionNotFoundError, event)


@pytest.mark.behaviour("PR-06")
def test_no_assistant_is_current_when_the_newest_is_complete() -> None:
    told = conversation()
    told.tell(imported("msg_a", "assistant", **ASSISTANT))
    assert told.cursor() == {"assistant": "msg_a"}
    told.tell(imported("msg_b", "assistant", **{**ASSISTANT, "time": {"created": 1, "completed": 2}}))
    assert told.cursor() == {}


@pytest.mark.behaviour("PR-07")
def test_only_the_assistant_that_a_step_names_is_completed() -> None:
    told = conversation()
    told.tell(imported("msg_a", "assistant", **ASSISTANT), imported("msg_b", "assistant", **ASSISTANT))
    told.tell(ended("msg_b", at=30))
    assert (told.message("msg_a").time.completed, told.message("msg_b").time.completed) == (None, 30)
    assert told.cursor() == {}


@pytest.mark.behaviour("PR-08")
def test_a_text_goes_to_the_message_that_it_names_also_when_that_is_complete() -> None:
    told = conversation()
    told.tell(step("msg_a"), step("msg_b"))
    assert told.message("msg_a").time.completed is not None
    told.tell(part(c.TextStarted, "msg_a", "prt_1"))
    assert told.part_order("msg_a") == ["prt_start_msg_a", "prt_1"]
    assert told.part_order("msg_b") == ["prt_start_msg_b"]


@pytest.mark.behaviour("PR-10")
def test_a_new_step_completes_one_that_was_left_open() -> None:
    told = conversation()
    told.tell(step("msg_a", at=20), step("msg_b", at=40))
    assert told.message("msg_a").time.completed == 40
    assert told.cursor() == {"assistant": "msg_b"}


def test_a_step_says_who_answers_and_ends_with_what_it_cost() -> None:
    told = conversation()
    tokens = Tokens(input=1, output=2, reasoning=3, cache=CacheTokens(read=4, write=5))
    told.tell(step("msg_a", parent="msg_u", agent="build", cwd="/w/x", root="/w", snapshot="s1", summary=True))
    told.tell(ended("msg_a", cost=Decimal("0.1"), tokens=tokens, snapshot="s2", structured={"a": 1}))
    message = told.message("msg_a")
    assert (message.parent, message.agent, message.model, message.provider) == ("msg_u", "build", "large", "acme")
    assert (message.path.cwd, message.path.root, message.summary, message.structured) == ("/w/x", "/w", True, {"a": 1})
    assert (message.cost, message.tokens, message.finish, message.time.completed) == (
        Decimal("0.1"),
        tokens,
        "stop",
        30,
    )
    start, finish = told.parts("msg_a")
    assert isinstance(start, StepStartPart)
    assert isinstance(finish, StepFinishPart)
    assert (start.snapshot, finish.snapshot, finish.cost, finish.tokens) == ("s1", "s2", Decimal("0.1"), tokens)


def test_a_step_that_failed_says_why_and_is_complete() -> None:
    told = conversation()
    error = ApiFault(message="busy", status=529, retryable=True)
    told.tell(step("msg_a"), c.StepFailed(session="ses_1", at=30, message="msg_a", error=error))
    message = told.message("msg_a")
    assert (message.error, message.finish, message.time.completed) == (error, "error", 30)
    assert told.cursor() == {}


def test_a_step_does_not_end_twice_with_one_part() -> None:
    told = conversation()
    told.tell(step("msg_a"), ended("msg_a", cost=Decimal(1)))
    refused(told, IllegalTransitionError, ended("msg_a", cost=Decimal(1)))


@pytest.mark.parametrize(
    "event", [ended("msg_a"), c.StepFailed(session="ses_1", at=1, message="msg_a", error=ApiFault(message=""))]
)
def test_only_an_assistant_message_can_end(event: Any) -> None:
    told = conversation()
    refused(told, MessageNotFoundError, event)
    told.tell(said("msg_a"))
    refused(told, MessageNotFoundError, event)


@pytest.mark.behaviour("PR-14")
def test_only_user_switch_shell_and_compaction_messages_keep_what_the_host_said() -> None:
    told, mine = conversation(), {"by": "host"}
    with_metadata: list[Any] = [
        s.AgentSwitched(session="ses_1", at=2, message="msg_b", agent="plan", metadata=mine),
        s.ModelSwitched(session="ses_1", at=2, message="msg_c", model=MODEL, metadata=mine),
        c.ShellStarted(session="ses_1", at=2, message="msg_d", call="c", command="ls", metadata=mine),
        s.CompactionEnded(session="ses_1", at=2, message="msg_e", text="t", metadata=mine),
        c.SyntheticAdded(session="ses_1", at=2, message="msg_f", text="t", metadata=mine),
        s.ContextAdmitted(session="ses_1", at=2, message="msg_g", text="t", metadata=mine),
        step("msg_h", metadata=mine),
    ]
    told.tell(admitted("msg_a", metadata=mine), promoted("msg_a", 1), *with_metadata)
    told.tell(c.ShellEnded(session="ses_1", at=3, message="msg_d", output="", metadata={"other": 1}))
    kept = {id for id in told.order if getattr(told.message(id), "metadata", None) == mine}
    assert kept == {"msg_a", "msg_b", "msg_c", "msg_d", "msg_e"}
    assert not [row for row in told.below(MESSAGES, "ses_1") if row["id"] not in kept and "metadata" in row]


def test_a_command_ends_once() -> None:
    told = conversation()
    told.tell(c.ShellStarted(session="ses_1", at=2, message="msg_a", call="c", command="ls"))
    end = c.ShellEnded(session="ses_1", at=3, message="msg_a", output="a")
    told.tell(end)
    refused(told, IllegalTransitionError, end)


def test_a_summary_stands_on_the_prompt_that_it_is_of() -> None:
    told = conversation()
    told.tell(admitted("msg_a"), promoted("msg_a", 1), said("msg_b"))
    summary = c.MessageSummarized(session="ses_1", at=9, message="msg_a", title="t", diffs=(FileDiff(file="a"),))
    told.tell(summary)
    assert (told.message("msg_a").summary.title, told.message("msg_a").summary.diffs[0].file) == ("t", "a")
    other = c.MessageSummarized(session="ses_1", at=9, message="msg_b", title="t")
    refused(told, MessageNotFoundError, other)


# Removal


def test_a_removed_message_leaves_nothing_and_its_id_is_free() -> None:
    told = conversation()
    before = dict(told.rows.rows)
    told.tell(step("msg_a"), part(c.TextStarted, "msg_a", "prt_1"))
    told.tell(part(c.TextGrew, "msg_a", "prt_1", offset=0, text="half"))
    told.tell(c.MessageRemoved(session="ses_1", at=9, message="msg_a"))
    rows = {place: row for place, row in told.rows.rows.items() if place[0] != "cursor"}
    assert rows == before
    assert told.cursor() == {}
    told.tell(step("msg_a"))
    assert told.order == ["msg_a"]


def test_when_the_newest_compaction_is_removed_the_one_before_counts() -> None:
    told = conversation()
    for id in ("msg_a", "msg_b"):
        told.tell(s.CompactionEnded(session="ses_1", at=8, message=id, text="t"), said(f"{id}_then"))
    assert told.cursor()["compaction"] == 3
    told.tell(c.MessageRemoved(session="ses_1", at=9, message="msg_b"))
    assert told.cursor()["compaction"] == 1
    told.tell(c.MessageRemoved(session="ses_1", at=9, message="msg_a"))
    assert told.cursor() == {}


def test_a_system_message_has_its_place_among_the_system_messages_until_it_is_removed() -> None:
    told = conversation()
    told.tell(s.ContextAdmitted(session="ses_1", at=8, message="msg_a", text="now"))
    assert told.below(SYSTEM_ORDER, "ses_1") == [{"id": "msg_a"}]
    assert told.message("msg_a") == SystemMessage(
        id="msg_a", session="ses_1", time=told.message("msg_a").time, text="now"
    )
    told.tell(c.MessageRemoved(session="ses_1", at=9, message="msg_a"))
    assert told.below(SYSTEM_ORDER, "ses_1") == []


@pytest.mark.parametrize(
    "event", [c.MessageRemoved(session="ses_1", at=9, message="msg_a"), part(c.PartRemoved, "msg_a", "prt_msg_a")]
)
def test_a_prompt_that_is_only_admitted_is_no_message_yet(event: Any) -> None:
    told = conversation()
    told.tell(admitted("msg_a"))
    refused(told, MessageNotFoundError, event)


# Imports


TEXT: dict[str, Any] = {"sessionID": "ses_1", "messageID": "msg_a", "type": "text", "text": "hé"}


def test_an_imported_message_keeps_its_bytes_its_unknown_fields_and_the_order_of_its_parts() -> None:
    told = conversation()
    parts = tuple({"zebra": 1, "id": id, **TEXT, "future": {"a": [1]}} for id in ("prt_3", "prt_1", "prt_2"))
    event = imported("msg_a", "user", parts, future={"b": None}, time={"created": 1, "own": 2})
    told.tell(event)
    assert list(told.rows.get(MESSAGES, ("ses_1", "msg_a")).items()) == list(event.document.items())  # type: ignore[union-attr]
    assert told.part_order("msg_a") == ["prt_3", "prt_1", "prt_2"]
    assert [list(told.rows.get(PARTS, ("msg_a", each["id"])).items()) for each in parts] == [  # type: ignore[union-attr]
        list(each.items()) for each in parts
    ]


def test_what_is_not_known_survives_changes_of_a_message_wherever_it_stands() -> None:
    told = conversation()
    time, tokens = {"created": 1, "own": {"a": 1}}, {**ASSISTANT["tokens"], "total": 7}
    told.tell(imported("msg_a", "assistant", **{**ASSISTANT, "time": time, "tokens": tokens, "future": [1]}))
    told.tell(ended("msg_a", at=30, tokens=Tokens(input=5)))
    row: Any = told.rows.get(MESSAGES, ("ses_1", "msg_a"))
    assert row["future"] == [1]
    assert row["time"] == {"created": 1, "completed": 30, "own": {"a": 1}}
    assert (row["tokens"]["input"], row["tokens"]["total"]) == (5, 7)
    assert (row["finish"], row["role"]) == ("stop", "assistant")


def test_what_is_not_known_survives_changes_of_a_part() -> None:
    told = conversation()
    call = {"sessionID": "ses_1", "messageID": "msg_a", "id": "prt_1", "type": "tool", "callID": "c", "tool": "t"}
    state = {"status": "completed", "input": {}, "output": "", "title": "", "metadata": {}, "own": 1}
    stored = {**call, "state": {**state, "time": {"start": 1, "end": 2, "own": 3}}, "future": 4}
    told.tell(imported("msg_a", "assistant", (stored,), **ASSISTANT), part(c.ToolOutputCleared, "msg_a", "prt_1", at=9))
    row: Any = told.rows.get(PARTS, ("msg_a", "prt_1"))
    assert row == {**stored, "state": {**state, "time": {"start": 1, "end": 2, "own": 3, "compacted": 9}}}


def test_a_state_that_is_over_leaves_nothing_in_the_next() -> None:
    told = conversation()
    call = {"sessionID": "ses_1", "messageID": "msg_a", "id": "prt_1", "type": "tool", "callID": "c", "tool": "t"}
    stored = {**call, "state": {"status": "running", "input": {}, "time": {"start": 1}, "own": 1}, "future": 4}
    told.tell(imported("msg_a", "assistant", (stored,), **ASSISTANT), part(c.ToolFailed, "msg_a", "prt_1", error="no"))
    row: Any = told.rows.get(PARTS, ("msg_a", "prt_1"))
    assert (row["future"], row["state"]["status"]) == (4, "error")
    assert "own" not in row["state"]


@pytest.mark.parametrize(
    "event",
    [
        imported("msg_a", "user", id="msg_b"),
        imported("msg_a", "user", sessionID="ses_2"),
        imported("msg_a", "user", ({"id": "prt_1", **TEXT, "messageID": "msg_b"},)),
        imported("msg_a", "user", ({"id": "prt_1", **TEXT, "sessionID": "ses_2"},)),
        imported("msg_a", "user", ({"id": "prt_1", **TEXT}, {"id": "prt_1", **TEXT})),
        imported("msg_a", "nobody"),
        imported("msg_a", "user", ({"id": "prt_1", "type": "nothing"},)),
    ],
)
def test_documents_that_do_not_fit_or_are_another_messages_are_refused(event: Any) -> None:
    refused(conversation(), MessageDecodeError, event)


def test_an_imported_compaction_begins_the_conversation_for_the_model() -> None:
    told = conversation()
    told.tell(imported("msg_a", "compaction", text="so far", auto=True))
    assert told.cursor() == {"compaction": 1}


def test_an_imported_text_that_never_streamed_is_not_open() -> None:
    told = conversation()
    told.tell(imported("msg_a", "user", ({"id": "prt_1", **TEXT},)))
    assert isinstance(told.part("msg_a", "prt_1"), TextPart)
    refused(told, IllegalTransitionError, part(c.TextEnded, "msg_a", "prt_1", text="changed"))


def refused(told: Conversation, error: type[SessionError], event: Any) -> None:
    """Shows that an event is refused, with its session, and changes nothing."""
    before = dict(told.rows.rows)
    with pytest.raises(error) as caught:
        told.tell(event)
    assert caught.value.session == "ses_1"
    assert told.rows.rows == before
