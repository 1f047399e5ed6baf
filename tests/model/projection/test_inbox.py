"""An admitted prompt waits in the inbox under an id of its own, and is promoted once, as it was admitted."""

from typing import Any

import pytest

from opencode_core.errors import LifecycleConflictError, PromptConflictError, SessionNotFoundError
from opencode_core.model.event import session as s
from opencode_core.model.message import TextFormat, UserMessage
from opencode_core.model.part import AgentPart, Excerpt, FilePart, FileSource, SubtaskPart, TextPart
from opencode_core.model.projection import Memory, fold
from opencode_core.model.prompt import Prompt, PromptAgent, PromptFile, PromptSubtask
from opencode_core.model.rows import INBOX, MESSAGES, PARTS, PENDING, PROMOTED
from opencode_core.model.session import ModelChoice
from tests.model.projection.making import MODEL, Conversation, admitted, conversation, promoted, said


@pytest.mark.behaviour("IN-13")
def test_an_admitted_prompt_is_pending_and_no_message() -> None:
    told = conversation()
    told.tell(admitted("msg_a", "hi", delivery="queue"))
    (row,) = told.below(INBOX, "ses_1", PENDING)
    assert (row["message"], row["admitted"], row["delivery"], row["prompt"]) == ("msg_a", 1, "queue", {"text": "hi"})
    assert told.order == []
    again = Memory()
    again.apply(fold(told.events))
    assert again.get(INBOX, ("ses_1", PENDING, 1)) == row


@pytest.mark.behaviour("IN-19")
def test_a_promotion_says_its_sequence_and_nothing_is_pending() -> None:
    told = conversation()
    told.tell(admitted("msg_a"), said("msg_b"), promoted("msg_a", 1))
    assert told.below(INBOX, "ses_1", PENDING) == []
    (row,) = told.below(INBOX, "ses_1", PROMOTED)
    assert (row["message"], row["admitted"], row["promoted"]) == ("msg_a", 1, 3)
    assert told.order == ["msg_b", "msg_a"]


def test_a_promoted_message_has_the_time_of_its_admission() -> None:
    told = conversation()
    told.tell(admitted("msg_a", at=10), promoted("msg_a", 1, at=77, admitted_at=10))
    assert told.message("msg_a").time.created == 10
    assert told.session.time.updated == 77


@pytest.mark.behaviour("IN-08")
def test_a_prompt_id_of_another_session_is_taken() -> None:
    told = conversation()
    told.tell(s.SessionCreated(session="ses_2", at=1, project="prj", directory="/w"), admitted("msg_a"))
    before = dict(told.rows.rows)
    with pytest.raises(PromptConflictError, match="'msg_a'") as caught:
        told.tell(admitted("msg_a", session="ses_2"))
    assert caught.value.session == "ses_2"
    assert told.rows.rows == before


@pytest.mark.behaviour("IN-09")
def test_the_id_of_a_visible_message_is_no_prompt_id() -> None:
    told = conversation()
    told.tell(said("msg_a"))
    with pytest.raises(PromptConflictError):
        told.tell(admitted("msg_a"))
    assert told.below(INBOX, "ses_1") == []


def test_a_prompt_id_is_taken_before_and_after_its_promotion() -> None:
    told = conversation()
    told.tell(admitted("msg_a"))
    with pytest.raises(PromptConflictError):
        told.tell(admitted("msg_a"))
    told.tell(promoted("msg_a", 1))
    with pytest.raises(PromptConflictError):
        told.tell(admitted("msg_a"))


@pytest.mark.parametrize("parts", [(), ("prt_1", "prt_2")])
def test_a_prompt_names_as_many_parts_as_it_becomes(parts: tuple[str, ...]) -> None:
    told = conversation()
    with pytest.raises(LifecycleConflictError, match=f"becomes 1 parts, but has ids for {len(parts)}"):
        told.tell(admitted("msg_a", parts=parts))


def test_a_prompt_for_a_session_that_is_not_there_is_refused() -> None:
    with pytest.raises(SessionNotFoundError):
        Conversation().tell(admitted("msg_a"))


@pytest.mark.behaviour("IN-20")
@pytest.mark.parametrize(
    "event",
    [
        promoted("msg_b", 1),
        promoted("msg_a", 0),
        promoted("msg_a", 2),
        promoted("msg_a", 1, delivery="queue"),
        promoted("msg_a", 1, admitted_at=11),
        promoted("msg_a", 1, session="ses_2"),
    ],
)
def test_a_promotion_that_does_not_fit_what_was_admitted_changes_nothing(event: Any) -> None:
    told = conversation()
    told.tell(admitted("msg_a"), s.SessionCreated(session="ses_2", at=1, project="prj", directory="/w"))
    before = dict(told.rows.rows)
    with pytest.raises(LifecycleConflictError):
        told.tell(event)
    assert told.rows.rows == before


def test_a_prompt_is_promoted_once() -> None:
    told = conversation()
    told.tell(admitted("msg_a"), promoted("msg_a", 1))
    before = dict(told.rows.rows)
    with pytest.raises(LifecycleConflictError):
        told.tell(promoted("msg_a", 1))
    assert told.rows.rows == before


def test_everything_that_was_asked_is_in_the_message_and_its_parts() -> None:
    source = FileSource(path="a.py", text=Excerpt(value="@a.py", start=0, end=5))
    prompt = Prompt(
        text="look",
        files=(PromptFile(mime="text/plain", url="file:///a.py", filename="a.py", source=source),),
        agents=(PromptAgent(name="plan", source=Excerpt(value="@plan", start=6, end=11)),),
        subtasks=(PromptSubtask(prompt="do", description="it", agent="general", model=MODEL, command="c"),),
        agent="build",
        model=ModelChoice(provider="acme", model="large", variant="high"),
        system="Be brief.",
        tools={"bash": False},
        format=TextFormat(),
    )
    told = conversation()
    ids = ("prt_9", "prt_8", "prt_7", "prt_6")
    told.tell(admitted("msg_a", prompt=prompt, parts=ids, metadata={"by": "me"}), promoted("msg_a", 1))
    message = told.message("msg_a")
    assert isinstance(message, UserMessage)
    assert (message.agent, message.model, message.variant) == ("build", MODEL, "high")
    assert (message.system, message.tools, message.format) == ("Be brief.", {"bash": False}, TextFormat())
    assert message.metadata == {"by": "me"}
    who: dict[str, Any] = {"session": "ses_1", "message": "msg_a"}
    assert told.parts("msg_a") == [
        TextPart(id="prt_9", text="look", **who),
        FilePart(id="prt_8", mime="text/plain", url="file:///a.py", filename="a.py", source=source, **who),
        AgentPart(id="prt_7", name="plan", source=Excerpt(value="@plan", start=6, end=11), **who),
        SubtaskPart(id="prt_6", prompt="do", description="it", agent="general", model=MODEL, command="c", **who),
    ]
    kept = told.below(INBOX, "ses_1", PROMOTED)[0]
    assert "prompt" not in kept


def test_a_prompt_is_not_written_again_when_it_is_promoted() -> None:
    told = conversation()
    told.tell(admitted("msg_a", "x" * 1_000), admitted("msg_b"))
    changes = told.tell(promoted("msg_b", 2))
    assert [change.key for change in changes if change.table in (MESSAGES, PARTS)] == [
        ("ses_1", "msg_b"),
        ("msg_b", "prt_msg_b"),
    ]
    assert "x" * 1_000 not in repr(changes)
