"""Sessions, messages, parts and faults have the names of the first generation, and come back the same."""

import json
from decimal import Decimal
from typing import Any, cast, get_args

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_core.errors import MessageDecodeError
from opencode_core.model import fault, message, part
from opencode_core.model.codec import decode, decode_message, decode_part, decode_session, encode
from opencode_core.model.fault import ApiFault, Fault, OutputLengthFault, ProviderAuthFault, UnknownFault
from opencode_core.model.message import AssistantMessage, Message, OutputFormat, UserMessage
from opencode_core.model.part import CompletedTool, FailedTool, FilePart, Part, Source, ToolPart, ToolState
from opencode_core.model.session import ModelChoice, Session
from tests.model.events.samples import all_of, any_of

WHO: dict[str, Any] = {"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1"}
EXCERPT = {"value": "@a.py", "start": 3, "end": 8}
CALL: dict[str, Any] = {**WHO, "type": "tool", "callID": "call_1", "tool": "bash"}
ATTACHED = {**WHO, "id": "prt_2", "type": "file", "mime": "image/png", "url": "data:image/png;base64,AA=="}

# Documents of the first generation, written by hand from its specification, by what they are.
PARTS: dict[str, dict[str, Any]] = {
    "text": {**WHO, "type": "text", "text": "hé", "synthetic": True, "ignored": False, "time": {"start": 1, "end": 2}},
    "text alone": {**WHO, "type": "text", "text": ""},
    "reasoning": {**WHO, "type": "reasoning", "text": "hm", "time": {"start": 1}, "metadata": {"vendor": {"sig": "x"}}},
    "file": {**WHO, "type": "file", "mime": "text/plain", "filename": "a.py", "url": "file:///a.py"},
    "file of a file": {
        **WHO,
        "type": "file",
        "mime": "text/plain",
        "url": "file:///a.py",
        "source": {"type": "file", "path": "a.py", "text": EXCERPT},
    },
    "file of a symbol": {
        **WHO,
        "type": "file",
        "mime": "text/plain",
        "url": "file:///a.py",
        "source": {
            "type": "symbol",
            "path": "a.py",
            "range": {"start": {"line": 1, "character": 2}, "end": {"line": 3, "character": 4}},
            "name": "main",
            "kind": 12,
            "text": EXCERPT,
        },
    },
    "file of a resource": {
        **WHO,
        "type": "file",
        "mime": "text/plain",
        "url": "x://y",
        "source": {"type": "resource", "clientName": "docs", "uri": "x://y", "text": EXCERPT},
    },
    "pending tool": {**CALL, "state": {"status": "pending", "input": {}, "raw": '{"comm'}},
    "running tool": {
        **CALL,
        "state": {
            "status": "running",
            "input": {"command": "ls"},
            "title": "List",
            "metadata": {"output": "a"},
            "time": {"start": 1},
        },
    },
    "completed tool": {
        **CALL,
        "metadata": {"vendor": 1},
        "state": {
            "status": "completed",
            "input": {"command": "ls"},
            "output": "a\n",
            "title": "List",
            "metadata": {"exit": 0},
            "time": {"start": 1, "end": 2, "compacted": 3},
            "attachments": [ATTACHED],
        },
    },
    "failed tool": {
        **CALL,
        "state": {
            "status": "error",
            "input": {"command": "ls"},
            "error": "no such file",
            "metadata": {"exit": 2},
            "time": {"start": 1, "end": 2},
        },
    },
    "snapshot": {**WHO, "type": "snapshot", "snapshot": "4b825dc6"},
    "patch": {**WHO, "type": "patch", "hash": "4b825dc6", "files": ["a.py", "b.py"]},
    "agent": {**WHO, "type": "agent", "name": "plan", "source": EXCERPT},
    "compaction": {**WHO, "type": "compaction", "auto": True, "overflow": False, "tail_start_id": "msg_0"},
    "subtask": {
        **WHO,
        "type": "subtask",
        "prompt": "look",
        "description": "Look around",
        "agent": "general",
        "model": {"providerID": "p", "modelID": "m"},
        "command": "review",
    },
    "retry": {
        **WHO,
        "type": "retry",
        "attempt": 2,
        "error": {"name": "APIError", "data": {"message": "busy", "isRetryable": True}},
        "time": {"created": 1},
    },
    "step-start": {**WHO, "type": "step-start", "snapshot": "4b825dc6"},
    "step-finish": {
        **WHO,
        "type": "step-finish",
        "reason": "stop",
        "snapshot": "4b825dc6",
        "cost": 0.0123,
        "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}},
    },
}

SAID: dict[str, Any] = {"id": "msg_1", "sessionID": "ses_1", "time": {"created": 1}}
DIFF = {"file": "a.py", "before": "", "after": "x", "additions": 1, "deletions": 0}
MESSAGES: dict[str, dict[str, Any]] = {
    "user": {
        **SAID,
        "role": "user",
        "agent": "build",
        "model": {"providerID": "p", "modelID": "m"},
        "variant": "high",
        "system": "Be brief.",
        "tools": {"bash": False},
        "format": {"type": "json_schema", "schema": {"type": "object"}, "retryCount": 1},
        "summary": {"title": "t", "body": "b", "diffs": [DIFF]},
    },
    "user who wants text": {**SAID, "role": "user", "format": {"type": "text"}},
    "assistant": {
        **SAID,
        "role": "assistant",
        "time": {"created": 1, "completed": 2},
        "error": {"name": "MessageAbortedError", "data": {"message": "stopped"}},
        "parentID": "msg_0",
        "modelID": "m",
        "providerID": "p",
        "variant": "high",
        "mode": "build",
        "agent": "build",
        "path": {"cwd": "/w/sub", "root": "/w"},
        "summary": True,
        "cost": 0.3,
        "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}},
        "structured": {"answer": 42},
        "finish": "stop",
    },
    "system": {**SAID, "role": "system", "text": "It is Tuesday.", "sources": ["core/date"]},
    "synthetic": {**SAID, "role": "synthetic", "text": "Continue."},
    "shell": {**SAID, "role": "shell", "callID": "c", "command": "ls", "output": "a", "metadata": {"by": "me"}},
    "agent-switch": {**SAID, "role": "agent-switch", "agent": "plan"},
    "model-switch": {**SAID, "role": "model-switch", "model": {"providerID": "p", "modelID": "m", "variant": "low"}},
    "compaction": {
        **SAID,
        "role": "compaction",
        "text": "We did this.",
        "recent": "And then",
        "auto": False,
        "overflow": True,
        "tail_start_id": "msg_0",
    },
}

FAULTS: dict[str, dict[str, Any]] = {
    "aborted": {"name": "MessageAbortedError", "data": {"message": "stopped"}},
    "auth": {"name": "ProviderAuthError", "data": {"providerID": "p", "message": "no key"}},
    "api": {
        "name": "APIError",
        "data": {
            "message": "busy",
            "statusCode": 529,
            "isRetryable": True,
            "responseHeaders": {"retry-after": "3"},
            "responseBody": "{}",
            "metadata": {"url": "x"},
        },
    },
    "overflow": {"name": "ContextOverflowError", "data": {"message": "too long", "responseBody": "{}"}},
    "length": {"name": "MessageOutputLengthError", "data": {}},
    "structured": {"name": "StructuredOutputError", "data": {"message": "not that", "retries": 2}},
    "unknown": {"name": "UnknownError", "data": {"message": "what"}},
}

SESSION: dict[str, Any] = {
    "id": "ses_1",
    "slug": "brave-fox",
    "version": "1.1.0",
    "projectID": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "directory": "/w",
    "parentID": "ses_0",
    "title": "Fix",
    "summary": {"additions": 1, "deletions": 2, "files": 3, "diffs": [DIFF]},
    "share": {"url": "https://example.org/s"},
    "permission": [{"permission": "bash", "pattern": "git *", "action": "allow"}],
    "revert": {"messageID": "msg_1", "partID": "prt_1", "snapshot": "4b825dc6", "diff": "--- a"},
    "time": {"created": 1, "updated": 2, "compacting": 3, "archived": 4},
}


# The names of the first generation


@pytest.mark.behaviour("V1-05")
@pytest.mark.parametrize("what", PARTS)
def test_a_part_of_the_first_generation_is_read_and_written_as_it_was(what: str) -> None:
    assert through_text(encode(read_part(PARTS[what]))) == PARTS[what]


@pytest.mark.behaviour("V1-05")
def test_there_are_twelve_parts_and_every_one_is_shown_here() -> None:
    shown = {type(read_part(document)) for document in PARTS.values()}
    assert shown == set(get_args(Part))
    assert len(shown) == 12
    assert {document["type"] for document in PARTS.values()} == set(get_args(part.PartType))


@pytest.mark.behaviour("V1-05")
def test_the_three_sources_of_a_file_are_shown_here() -> None:
    files = [each for each in map(read_part, PARTS.values()) if isinstance(each, FilePart)]
    assert {type(each.source) for each in files} == {*get_args(Source), type(None)}


@pytest.mark.behaviour("V1-06")
def test_the_four_states_of_a_tool_call_are_shown_here() -> None:
    calls = [each for each in map(read_part, PARTS.values()) if isinstance(each, ToolPart)]
    assert {type(each.state) for each in calls} == set(get_args(ToolState))


@pytest.mark.behaviour("V1-06")
def test_a_state_says_what_happened_to_its_call() -> None:
    completed, failed = state("completed tool"), state("failed tool")
    assert isinstance(completed, CompletedTool)
    assert (completed.title, completed.metadata, completed.time.compacted) == ("List", {"exit": 0}, 3)
    assert completed.attachments == (read_part(ATTACHED),)
    assert isinstance(failed, FailedTool)
    assert (failed.error, failed.time.end) == ("no such file", 2)
    interrupted = attrs.evolve(failed, interrupted=True, output="half")
    stored = through_text(encode(interrupted))
    assert (stored["interrupted"], stored["output"]) == (True, "half")
    assert decode(stored, ToolState) == interrupted  # type: ignore[arg-type]


@pytest.mark.behaviour("V1-04")
@pytest.mark.parametrize("what", MESSAGES)
def test_a_message_is_read_and_written_as_it_was(what: str) -> None:
    assert through_text(encode(read_message(MESSAGES[what]))) == MESSAGES[what]


@pytest.mark.behaviour("V1-04")
def test_a_user_message_says_what_was_chosen_for_the_answer() -> None:
    user = read_message(MESSAGES["user"])
    assert isinstance(user, UserMessage)
    assert (user.agent, user.model, user.variant, user.system) == (
        "build",
        ModelChoice(provider="p", model="m"),
        "high",
        "Be brief.",
    )
    assert user.tools == {"bash": False}
    assert user.format == message.JsonSchemaFormat(schema={"type": "object"}, retries=1)
    assert user.summary is not None
    assert user.summary.diffs[0].file == "a.py"


@pytest.mark.behaviour("V1-04")
def test_an_assistant_message_says_who_answered_what_and_at_which_price() -> None:
    assistant = read_message(MESSAGES["assistant"])
    assert isinstance(assistant, AssistantMessage)
    assert (assistant.parent, assistant.provider, assistant.model, assistant.variant) == ("msg_0", "p", "m", "high")
    assert (assistant.path.cwd, assistant.path.root) == ("/w/sub", "/w")
    assert (assistant.summary, assistant.structured, assistant.finish) == (True, {"answer": 42}, "stop")
    assert assistant.error == fault.AbortedFault(message="stopped")
    assert assistant.cost == Decimal("0.3")
    assert assistant.tokens.cache == part.CacheTokens(read=4, write=5)


def test_there_are_eight_messages_and_every_one_is_shown_here() -> None:
    shown = {type(read_message(document)) for document in MESSAGES.values()}
    assert shown == set(get_args(Message))
    assert len(shown) == 8


@pytest.mark.behaviour("V1-08")
@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_is_read_and_written_as_it_was(what: str) -> None:
    read: Any = decode(FAULTS[what], Fault)  # type: ignore[arg-type]
    assert through_text(encode(read)) == FAULTS[what]


@pytest.mark.behaviour("V1-08")
def test_there_are_seven_faults_and_each_says_what_it_is() -> None:
    read: dict[str, Any] = {what: decode(FAULTS[what], cast("Any", Fault)) for what in FAULTS}
    assert {type(each) for each in read.values()} == set(get_args(Fault))
    assert len(read) == 7
    assert read["auth"] == ProviderAuthFault(provider="p", message="no key")
    assert read["api"] == ApiFault(
        message="busy",
        status=529,
        retryable=True,
        headers={"retry-after": "3"},
        body="{}",
        metadata={"url": "x"},
    )
    assert read["length"] == OutputLengthFault()


@pytest.mark.behaviour("V1-08")
@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_survives_in_a_message_and_in_a_retry(what: str) -> None:
    failed = {**MESSAGES["assistant"], "error": FAULTS[what]}
    assert through_text(encode(read_message(failed))) == failed
    retried = {**PARTS["retry"], "error": FAULTS[what]}
    assert through_text(encode(read_part(retried))) == retried


def test_a_fault_of_another_program_is_an_unknown_one() -> None:
    stored: Any = {"name": "FutureError", "data": {"message": "what is this"}}
    assert decode(stored, Fault) == UnknownFault(message="what is this")  # type: ignore[arg-type]


@pytest.mark.behaviour("V1-01")
def test_a_session_is_read_and_written_as_it_was() -> None:
    assert through_text(encode(decode_session(SESSION, session="ses_1"))) == SESSION


@pytest.mark.behaviour("V1-01")
def test_a_session_says_where_it_is_and_what_was_done_with_it() -> None:
    session = decode_session(SESSION, session="ses_1")
    assert (session.project, session.directory, session.parent) == (SESSION["projectID"], "/w", "ses_0")
    assert session.revert is not None
    assert (session.revert.message, session.revert.part) == ("msg_1", "prt_1")
    assert (session.time.created, session.time.updated, session.time.compacting, session.time.archived) == (1, 2, 3, 4)
    assert session.permission is not None
    assert session.permission[0].action == "allow"


# Round trips


@settings(max_examples=150)
@given(value=st.one_of([any_of(cls) for cls in (*get_args(Part), *get_args(Message), Session)]))
def test_any_part_message_or_session_comes_back_the_same_through_json(value: Any) -> None:
    assert read_again(value) == value


@pytest.mark.parametrize("cls", [*get_args(Part), *get_args(Message), Session])
def test_every_kind_of_field_comes_back_the_same_through_json(cls: type) -> None:
    for value in all_of(cls):
        assert read_again(value) == value


@pytest.mark.parametrize("union", [Fault, ToolState, Source, OutputFormat])
def test_every_kind_of_a_union_says_which_it_is_wherever_it_stands(union: Any) -> None:
    for cls in get_args(union):
        for value in all_of(cls):
            assert decode(through_text(encode(value)), union) == value


def test_costs_add_up_exactly() -> None:
    cost = Decimal(0)
    for _ in range(3):
        finish = through_text(encode(attrs.evolve(assistant_of(cost), cost=cost + Decimal("0.1"))))
        cost = getattr(read_message(finish), "cost")  # noqa: B009
    assert cost == Decimal("0.3")
    assert json.dumps(encode(assistant_of(cost))["cost"]) == "0.3"


def test_a_whole_cost_is_a_whole_number_in_json() -> None:
    assert json.dumps([encode(assistant_of(Decimal(cost)))["cost"] for cost in ("0", "2.0", "1E+2")]) == "[0, 2, 100]"


# What does not fit


@pytest.mark.behaviour("HI-09")
@pytest.mark.parametrize(
    "document",
    [
        None,
        "hunter2",
        {},
        {"role": "hunter2"},
        {**MESSAGES["user"], "time": "hunter2"},
        {**MESSAGES["assistant"], "cost": "hunter2"},
        {**MESSAGES["assistant"], "error": "hunter2"},
    ],
)
def test_a_message_that_cannot_be_read_is_named_and_not_repeated(document: Any) -> None:
    with pytest.raises(MessageDecodeError, match="message 'msg_1' in session 'ses_1'") as caught:
        read_message(document)
    assert (caught.value.session, caught.value.message) == ("ses_1", "msg_1")
    assert "hunter2" not in f"{caught.value} {caught.value.__cause__}"


@pytest.mark.parametrize(
    "document",
    [
        None,
        {"type": "hunter2"},
        {**PARTS["text"], "text": ["hunter2"]},
        {**PARTS["pending tool"], "state": {"status": "hunter2"}},
        {**PARTS["pending tool"], "state": None},
        {**PARTS["retry"], "error": None},
        {**PARTS["file of a file"], "source": {"type": "hunter2"}},
        {**PARTS["running tool"], "state": {"status": "running", "input": "hunter2", "time": {"start": 1}}},
    ],
)
def test_a_part_that_cannot_be_read_is_named_and_not_repeated(document: Any) -> None:
    with pytest.raises(MessageDecodeError, match="part of the message 'msg_1' in session 'ses_1'") as caught:
        read_part(document)
    assert "hunter2" not in f"{caught.value} {caught.value.__cause__}"


def test_a_session_that_cannot_be_read_is_named_and_not_repeated() -> None:
    with pytest.raises(MessageDecodeError, match=r"The stored session in session 'ses_1' does not fit: 'projectID'"):
        decode_session({"id": "ses_1", "title": "hunter2"}, session="ses_1")


def read_part(document: Any) -> Part:
    return decode_part(document, session="ses_1", message="msg_1")


def read_message(document: Any) -> Message:
    return decode_message(document, session="ses_1", message="msg_1")


def read_again(value: Any) -> Any:
    stored = through_text(encode(value))
    if isinstance(value, Session):
        return decode_session(stored, session="ses_1")
    return read_message(stored) if isinstance(value, get_args(Message)) else read_part(stored)


def state(what: str) -> ToolState:
    found = read_part(PARTS[what])
    assert isinstance(found, ToolPart)
    return found.state


def assistant_of(cost: Decimal) -> AssistantMessage:
    found = read_message(MESSAGES["assistant"])
    assert isinstance(found, AssistantMessage)
    return attrs.evolve(found, cost=cost)


def through_text(document: Any) -> Any:
    return json.loads(json.dumps(document))
