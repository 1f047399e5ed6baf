"""A tool call goes from pending to running to completed or error, and no other way."""

from collections.abc import Callable
from typing import Any

import pytest

from opencode_core.errors import IllegalTransitionError, MessageNotFoundError
from opencode_core.model.event import conversation as c
from opencode_core.model.event import session as s
from opencode_core.model.part import CompletedTool, FailedTool, FilePart, PendingTool, RunningTool
from opencode_core.model.rows import FRAGMENTS, VISITED
from tests.model.projection.making import Conversation, called, conversation, part, step

INPUT = {"command": "ls"}
START = part(c.ToolInputStarted, "msg_a", "prt_1", at=21, call="call_prt_1", tool="bash")
CALL = called("msg_a", "prt_1", at=22)

EVENTS: dict[str, Any] = {
    "input started": START,
    "input grew": part(c.ToolInputGrew, "msg_a", "prt_1", offset=0, text="{"),
    "input ended": part(c.ToolInputEnded, "msg_a", "prt_1", raw="{}"),
    "called": CALL,
    "progressed": part(c.ToolProgressed, "msg_a", "prt_1", title="t"),
    "succeeded": part(c.ToolSucceeded, "msg_a", "prt_1", output="o"),
    "failed": part(c.ToolFailed, "msg_a", "prt_1", error="e"),
    "output cleared": part(c.ToolOutputCleared, "msg_a", "prt_1"),
    "text grew": part(c.TextGrew, "msg_a", "prt_1", offset=0, text="a"),
    "text ended": part(c.TextEnded, "msg_a", "prt_1", text="a"),
    "reasoning ended": part(c.ReasoningEnded, "msg_a", "prt_1", text="a"),
    "snapshot": part(c.SnapshotRecorded, "msg_a", "prt_1", snapshot="s"),
}
STATES: dict[str, tuple[list[Any], set[str]]] = {
    "pending": ([START], {"input grew", "input ended", "called", "failed"}),
    "running": ([START, CALL], {"progressed", "succeeded", "failed"}),
    "completed": ([START, CALL, EVENTS["succeeded"]], {"output cleared"}),
    "error": ([START, CALL, EVENTS["failed"]], set()),
    "text": ([part(c.TextStarted, "msg_a", "prt_1")], {"text grew", "text ended"}),
    "ended text": ([part(c.TextStarted, "msg_a", "prt_1"), EVENTS["text ended"]], set()),
    "reasoning": ([part(c.ReasoningStarted, "msg_a", "prt_1")], {"reasoning ended"}),
}


@pytest.mark.behaviour("V1-06")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("event", EVENTS)
def test_a_part_goes_the_ways_of_its_state_and_no_other_changes_anything(state: str, event: str) -> None:
    before, allowed = STATES[state]
    told = conversation()
    told.tell(step("msg_a"), *before)
    rows = dict(told.rows.rows)
    if event in allowed:
        told.tell(EVENTS[event])
        assert told.rows.rows != rows
    else:
        with pytest.raises(IllegalTransitionError, match="'prt_1'"):
            told.tell(EVENTS[event])
        assert told.rows.rows == rows


@pytest.mark.parametrize("event", [each for each in EVENTS if each not in ("input started", "called", "snapshot")])
def test_what_happens_to_a_part_that_is_not_there_is_refused(event: str) -> None:
    told = conversation()
    told.tell(step("msg_a"))
    rows = dict(told.rows.rows)
    with pytest.raises(MessageNotFoundError, match="no part 'prt_1'"):
        told.tell(EVENTS[event])
    assert told.rows.rows == rows


@pytest.mark.parametrize("event", EVENTS)
def test_a_part_of_a_message_that_is_not_there_is_refused(event: str) -> None:
    told = conversation()
    rows = dict(told.rows.rows)
    with pytest.raises(MessageNotFoundError, match="no message 'msg_a'"):
        told.tell(EVENTS[event])
    assert told.rows.rows == rows


@pytest.mark.behaviour("V1-06")
def test_a_call_is_pending_with_its_raw_input_until_it_is_parsed() -> None:
    told = running(EVENTS["input ended"], until=START)
    assert state(told) == PendingTool(raw="{}")
    assert told.part("msg_a", "prt_1").call == "call_prt_1"
    told.tell(CALL)
    assert state(told) == RunningTool(input=INPUT, time=state(told).time)
    assert state(told).time.start == 22


def test_a_call_may_come_without_its_input_having_streamed() -> None:
    told = running()
    assert (state(told).input, told.part("msg_a", "prt_1").tool) == (INPUT, "bash")


@pytest.mark.behaviour("PR-09")
def test_progress_is_shown_and_a_result_takes_its_place() -> None:
    told = running(part(c.ToolProgressed, "msg_a", "prt_1", title="half", shown={"n": 1}))
    assert (state(told).title, state(told).metadata) == ("half", {"n": 1})
    told.tell(part(c.ToolProgressed, "msg_a", "prt_1", shown={"n": 2}))
    assert (state(told).title, state(told).metadata) == ("half", {"n": 2})
    attached = FilePart(id="prt_2", session="ses_1", message="msg_a", mime="image/png", url="data:")
    told.tell(
        part(
            c.ToolSucceeded,
            "msg_a",
            "prt_1",
            at=40,
            output="out",
            title="done",
            shown={"exit": 0},
            structured=[1],
            attachments=(attached,),
        )
    )
    done = state(told)
    assert isinstance(done, CompletedTool)
    assert (done.input, done.output, done.title, done.metadata) == (INPUT, "out", "done", {"exit": 0})
    assert (done.structured, done.attachments) == ([1], (attached,))
    assert (done.time.start, done.time.end, done.time.compacted) == (22, 40, None)


@pytest.mark.behaviour("PR-09")
def test_a_failure_keeps_the_last_progress_with_its_error() -> None:
    told = running(part(c.ToolProgressed, "msg_a", "prt_1", shown={"n": 2}))
    told.tell(part(c.ToolFailed, "msg_a", "prt_1", at=40, error="stopped", interrupted=True, output="half"))
    failed = state(told)
    assert isinstance(failed, FailedTool)
    assert (failed.input, failed.metadata, failed.error) == (INPUT, {"n": 2}, "stopped")
    assert (failed.interrupted, failed.output, failed.time.start, failed.time.end) == (True, "half", 22, 40)


@pytest.mark.behaviour("PR-11")
def test_a_pending_call_that_fails_has_no_input_and_cannot_have_succeeded() -> None:
    told = running(part(c.ToolInputGrew, "msg_a", "prt_1", offset=0, text='{"com'), until=START)
    with pytest.raises(IllegalTransitionError, match=r"is pending. It must be running"):
        told.tell(EVENTS["succeeded"])
    told.tell(part(c.ToolFailed, "msg_a", "prt_1", at=40, error="no"))
    assert state(told).input == {}
    assert (state(told).time.start, state(told).time.end) == (40, 40)
    assert told.below(FRAGMENTS, "msg_a") == []


@pytest.mark.behaviour("PR-12")
@pytest.mark.parametrize(
    "settle",
    [
        lambda **more: part(c.ToolSucceeded, "msg_a", "prt_1", output="o", **more),
        lambda **more: part(c.ToolFailed, "msg_a", "prt_1", error="e", **more),
    ],
    ids=["success", "failure"],
)
def test_what_the_provider_sent_with_the_call_stays_beside_what_it_sent_with_the_result(
    settle: Callable[..., Any],
) -> None:
    told = conversation()
    told.tell(step("msg_a"), called("msg_a", "prt_1", provider_metadata={"of": "call"}, executed=True))
    told.tell(settle(provider_metadata={"of": "result"}, executed=False))
    found = told.part("msg_a", "prt_1")
    assert (found.metadata, found.result_metadata, found.executed) == ({"of": "call"}, {"of": "result"}, True)


@pytest.mark.behaviour("PR-12")
def test_what_was_said_once_stays_when_the_next_fact_says_nothing() -> None:
    told = conversation()
    told.tell(step("msg_a"), START, called("msg_a", "prt_1", provider_metadata={"of": "call"}, executed=True))
    told.tell(EVENTS["succeeded"])
    found = told.part("msg_a", "prt_1")
    assert (found.metadata, found.result_metadata, found.executed) == ({"of": "call"}, None, True)


@pytest.mark.behaviour("V1-06")
def test_a_cleared_output_says_when_and_stays() -> None:
    told = running(EVENTS["succeeded"], part(c.ToolOutputCleared, "msg_a", "prt_1", at=99))
    assert (state(told).output, state(told).time.compacted) == ("o", 99)


def running(*events: Any, until: Any = CALL) -> Conversation:
    told = conversation()
    told.tell(step("msg_a"), until, *events)
    return told


def state(told: Conversation) -> Any:
    return told.part("msg_a", "prt_1").state


def test_the_folders_that_were_read_are_remembered_once_until_the_session_moves() -> None:
    told = conversation()
    told.tell(step("msg_a"))
    for number, folders in enumerate((("/p/a", "/p/b"), ("/p/b",), ())):
        told.tell(
            called("msg_a", f"prt_{number}"),
            part(c.ToolSucceeded, "msg_a", f"prt_{number}", output="o", visited=folders),
        )
    assert sorted(map(str, told.below(VISITED, "ses_1"))) == ["/p/a", "/p/b"]
    told.tell(s.SessionMoved(session="ses_1", at=99, directory="/q", project="p"))
    assert told.below(VISITED, "ses_1") == []
