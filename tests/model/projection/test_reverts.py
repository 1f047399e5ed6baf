"""A revert is staged, cleared or committed; what is behind its boundary goes, and the log stays whole."""

from typing import Any

import pytest

from opencode_core.errors import MessageNotFoundError
from opencode_core.model.context import SnapshotEntry
from opencode_core.model.event import conversation as c
from opencode_core.model.event import session as s
from opencode_core.model.rows import (
    EPOCHS,
    FRAGMENTS,
    INBOX,
    MESSAGE_PLACES,
    MESSAGES,
    PART_ORDER,
    PARTS,
    PENDING,
    PROMOTED,
    SNAPSHOTS,
)
from opencode_core.model.session import Revert
from tests.model.projection.making import Conversation, admitted, conversation, ended, part, promoted, said, step

REVERT = Revert(message="msg_a", snapshot="s", diff="d")


def staged(revert: Revert = REVERT) -> s.RevertStaged:
    return s.RevertStaged(session="ses_1", at=50, revert=revert)


def committed(message: str, part: str | None = None) -> s.RevertCommitted:
    return s.RevertCommitted(session="ses_1", at=60, message=message, part=part)


@pytest.fixture
def told() -> Conversation:
    """A prompt, an answer, and a second prompt with its answer."""
    told = conversation()
    told.tell(admitted("msg_a"), promoted("msg_a", 1), step("msg_b"), part(c.TextStarted, "msg_b", "prt_1"))
    told.tell(part(c.TextEnded, "msg_b", "prt_1", text="x"), part(c.TextStarted, "msg_b", "prt_2"))
    told.tell(part(c.TextGrew, "msg_b", "prt_2", offset=0, text="y"), ended("msg_b"))
    told.tell(admitted("msg_c"), promoted("msg_c", 9), step("msg_d"))
    return told


@pytest.mark.behaviour("PR-02")
def test_a_staged_revert_is_in_the_session_until_it_is_cleared(told: Conversation) -> None:
    told.tell(staged())
    assert told.session.revert == REVERT
    assert told.order == ["msg_a", "msg_b", "msg_c", "msg_d"]
    told.tell(s.RevertCleared(session="ses_1", at=51))
    assert told.session.revert is None


@pytest.mark.behaviour("PR-02")
def test_a_committed_revert_takes_out_what_is_behind_it(told: Conversation) -> None:
    told.tell(staged(), committed("msg_b"))
    assert told.order == ["msg_a", "msg_b"]
    assert told.session.revert is None
    assert {row["id"] for row in told.below(MESSAGES, "ses_1")} == {"msg_a", "msg_b"}
    assert told.below(PARTS, "msg_d") == told.below(PART_ORDER, "msg_d") == []
    assert len(told.parts("msg_b")) == 4


def test_a_revert_to_a_part_keeps_the_parts_up_to_it(told: Conversation) -> None:
    told.tell(committed("msg_b", "prt_1"))
    assert told.part_order("msg_b") == ["prt_start_msg_b", "prt_1"]
    assert len(told.below(PARTS, "msg_b")) == 2
    assert told.below(FRAGMENTS, "msg_b") == []


@pytest.mark.behaviour("PR-13")
def test_prompts_admitted_or_promoted_behind_the_boundary_go_and_earlier_ones_stay(told: Conversation) -> None:
    early = conversation()
    early.tell(admitted("msg_a"), admitted("msg_wait"), admitted("msg_late"), promoted("msg_a", 1), said("msg_end"))
    early.tell(promoted("msg_late", 3), admitted("msg_after"), committed("msg_end"))
    assert [row["message"] for row in early.below(INBOX, "ses_1", PENDING)] == ["msg_wait"]
    assert [row["message"] for row in early.below(INBOX, "ses_1", PROMOTED)] == ["msg_a"]
    assert early.order == ["msg_a", "msg_end"]
    assert early.rows.get(MESSAGE_PLACES, ("msg_after",)) is None
    assert early.rows.get(MESSAGE_PLACES, ("msg_late",)) is None
    early.tell(promoted("msg_wait", 2))
    assert early.order == ["msg_a", "msg_end", "msg_wait"]


@pytest.mark.behaviour("PR-13")
@pytest.mark.parametrize(
    "event",
    [committed("msg_gone"), committed("msg_b", "prt_gone"), staged(Revert(message="msg_gone"))],
)
def test_a_boundary_that_is_not_there_is_refused_and_nothing_changes(told: Conversation, event: Any) -> None:
    before = dict(told.rows.rows)
    with pytest.raises(MessageNotFoundError):
        told.tell(event)
    assert told.rows.rows == before


@pytest.mark.behaviour("PR-13")
def test_the_log_is_not_cut_and_goes_on_behind_the_revert(told: Conversation) -> None:
    before = len(told.events)
    told.tell(committed("msg_a"), said("msg_e"))
    assert len(told.events) == before + 2
    assert told.order == ["msg_a", "msg_e"]


def test_an_open_answer_that_goes_is_no_longer_current(told: Conversation) -> None:
    assert told.cursor()["assistant"] == "msg_d"
    told.tell(committed("msg_b"))
    assert "assistant" not in told.cursor()
    told.tell(step("msg_e"))
    assert told.cursor()["assistant"] == "msg_e"


def test_the_compaction_before_the_boundary_counts_again() -> None:
    told = conversation()
    told.tell(s.CompactionEnded(session="ses_1", at=8, message="msg_a", text="t"), said("msg_b"))
    told.tell(s.CompactionEnded(session="ses_1", at=9, message="msg_c", text="t"), said("msg_d"))
    told.tell(committed("msg_b"))
    assert told.cursor()["compaction"] == 1
    told.tell(committed("msg_a"))
    assert told.cursor()["compaction"] == 1


def test_the_ids_of_what_went_can_be_used_again(told: Conversation) -> None:
    told.tell(committed("msg_a"), said("msg_b"), admitted("msg_c"))
    assert told.order == ["msg_a", "msg_b"]


def epoch(since: int) -> s.EpochStarted:
    entry = SnapshotEntry(value="old")
    return s.EpochStarted(session="ses_1", at=40, baseline="b", snapshot={"core/date": entry}, since=since)


def admission() -> s.ContextAdmitted:
    return s.ContextAdmitted(
        session="ses_1", at=41, message="msg_s", text="new", changed={"core/date": SnapshotEntry(value="new")}
    )


@pytest.mark.parametrize(
    "goes", [committed("msg_d"), c.MessageRemoved(session="ses_1", at=60, message="msg_s")], ids=["revert", "removal"]
)
def test_the_epoch_ends_when_a_system_message_goes_that_the_baseline_does_not_have(
    told: Conversation, goes: Any
) -> None:
    told.tell(epoch(since=11), admission(), goes)
    assert told.below(EPOCHS, "ses_1") == [], "the snapshot says that the model was told, and it no longer was"
    assert told.below(SNAPSHOTS, "ses_1") == []


def test_the_epoch_goes_on_when_the_baseline_has_what_the_system_message_said(told: Conversation) -> None:
    told.tell(admission(), epoch(since=20), committed("msg_d"))
    assert len(told.below(EPOCHS, "ses_1")) == 1
    assert told.order == ["msg_a", "msg_b", "msg_c", "msg_d"]
