"""What streams costs what arrives: a piece is written once, and nothing else is written again."""

import json
from typing import Any

import pytest

from opencode_core.errors import IllegalTransitionError
from opencode_core.model.event import conversation as c
from opencode_core.model.rows import FRAGMENTS, MESSAGES, PARTS, Change
from tests.model.projection.making import Conversation, called, conversation, ended, part, step

PIECE = "sixteen letters!"
KINDS: dict[str, tuple[Any, Any, Any]] = {
    "text": (
        part(c.TextStarted, "msg_a", "prt_1"),
        c.TextGrew,
        lambda text: part(c.TextEnded, "msg_a", "prt_1", text=text),
    ),
    "reasoning": (
        part(c.ReasoningStarted, "msg_a", "prt_1"),
        c.ReasoningGrew,
        lambda text: part(c.ReasoningEnded, "msg_a", "prt_1", text=text),
    ),
    "tool input": (
        part(c.ToolInputStarted, "msg_a", "prt_1", call="call", tool="bash"),
        c.ToolInputGrew,
        lambda text: part(c.ToolInputEnded, "msg_a", "prt_1", raw=text),
    ),
}
each_kind = pytest.mark.parametrize(("start", "grew", "end"), KINDS.values(), ids=KINDS)


@each_kind
def test_a_piece_is_one_row_and_neither_the_message_nor_a_part_is_written_again(
    start: Any, grew: type, end: Any
) -> None:
    told = streaming(start)
    for number in range(3):
        (change,) = told.tell(piece(grew, number))
        assert (change.table, change.key) == (FRAGMENTS, ("msg_a", "prt_1", number * len(PIECE)))
        assert change.document == PIECE
    assert told.part("msg_a", "prt_1") == streaming(start).part("msg_a", "prt_1")


@each_kind
def test_streaming_twice_as_much_writes_twice_as_much(start: Any, grew: type, end: Any) -> None:
    written = {}
    for pieces in (100, 200):
        told = streaming(start)
        written[pieces] = sum(size(told.tell(piece(grew, number))) for number in range(pieces))
        written[pieces] += size(told.tell(end(PIECE * pieces)))
    assert written[200] < 2.1 * written[100]
    assert written[200] < 3 * len(PIECE * 200)


@each_kind
def test_the_end_writes_the_part_once_and_takes_the_pieces_away(start: Any, grew: type, end: Any) -> None:
    told = streaming(start)
    told.tell(*(piece(grew, number) for number in range(3)))
    changes = told.tell(end(PIECE * 3))
    assert [(change.table, change.key) for change in changes if change.document is not None] == [
        (PARTS, ("msg_a", "prt_1"))
    ]
    assert {change.table for change in changes if change.document is None} == {FRAGMENTS}
    assert told.below(FRAGMENTS, "msg_a") == []
    assert PIECE * 3 in json.dumps(told.rows.get(PARTS, ("msg_a", "prt_1")))


@each_kind
@pytest.mark.parametrize("offset", [1, len(PIECE) - 1, len(PIECE) + 1, 0])
def test_a_piece_that_leaves_a_gap_or_comes_twice_is_refused(start: Any, grew: type, end: Any, offset: int) -> None:
    told = streaming(start)
    told.tell(piece(grew, 0))
    before = dict(told.rows.rows)
    with pytest.raises(IllegalTransitionError, match=f"begins at {offset}, but {len(PIECE)} characters are there"):
        told.tell(part(grew, "msg_a", "prt_1", offset=offset, text="x"))
    assert told.rows.rows == before


def test_pieces_are_counted_in_characters() -> None:
    told = streaming(KINDS["text"][0])
    told.tell(part(c.TextGrew, "msg_a", "prt_1", offset=0, text="é🙂"))
    told.tell(part(c.TextGrew, "msg_a", "prt_1", offset=2, text="世"))
    assert told.below(FRAGMENTS, "msg_a", "prt_1") == ["é🙂", "世"]


def test_pieces_stand_in_the_order_of_their_offsets_also_beyond_ten() -> None:
    told = streaming(KINDS["text"][0])
    told.tell(*(part(c.TextGrew, "msg_a", "prt_1", offset=number, text=str(number % 10)) for number in range(25)))
    assert "".join(told.below(FRAGMENTS, "msg_a", "prt_1")) == "0123456789012345678901234"


def test_two_parts_stream_beside_each_other() -> None:
    told = streaming(KINDS["text"][0])
    told.tell(part(c.ReasoningStarted, "msg_a", "prt_2"))
    told.tell(part(c.TextGrew, "msg_a", "prt_1", offset=0, text="a"))
    told.tell(part(c.ReasoningGrew, "msg_a", "prt_2", offset=0, text="b"))
    told.tell(part(c.TextEnded, "msg_a", "prt_1", text="a"))
    assert told.below(FRAGMENTS, "msg_a") == ["b"]


@pytest.mark.parametrize("settle", ["called", "failed", "removed"])
def test_nothing_is_left_when_a_part_goes_another_way(settle: str) -> None:
    told = streaming(KINDS["tool input"][0])
    told.tell(piece(c.ToolInputGrew, 0))
    ways: dict[str, Any] = {
        "called": called("msg_a", "prt_1"),
        "failed": part(c.ToolFailed, "msg_a", "prt_1", error="no"),
        "removed": part(c.PartRemoved, "msg_a", "prt_1"),
    }
    told.tell(ways[settle])
    assert told.below(FRAGMENTS, "msg_a") == []


def test_settling_one_part_rewrites_no_other_and_not_the_message() -> None:
    told = conversation()
    told.tell(step("msg_a"))
    for number in range(20):
        told.tell(called("msg_a", f"prt_{number}"))
    changes = told.tell(part(c.ToolSucceeded, "msg_a", "prt_7", output="o"))
    assert [(change.table, change.key) for change in changes] == [(PARTS, ("msg_a", "prt_7"))]
    changes = told.tell(ended("msg_a"))
    assert [change.key for change in changes if change.table in (MESSAGES, PARTS)] == [
        ("msg_a", "prt_end_msg_a"),
        ("ses_1", "msg_a"),
    ]


def streaming(start: Any) -> Conversation:
    told = conversation()
    told.tell(step("msg_a"), start)
    return told


def piece(cls: type, number: int) -> Any:
    return part(cls, "msg_a", "prt_1", offset=number * len(PIECE), text=PIECE)


def size(changes: list[Change]) -> int:
    return sum(len(json.dumps(change.document)) for change in changes if change.document is not None)
