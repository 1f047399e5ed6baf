"""However the events of a session are folded, together, one by one or in chunks, the rows are the same."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_core.model.event.base import Recorded
from opencode_core.model.event.catalogue import SESSION_EVENTS
from opencode_core.model.projection import Memory, fold, project
from opencode_core.model.rows import MESSAGE_ORDER, MESSAGES, PART_ORDER, PARTS, Change, Draft
from tests.model.projection.making import conversation, said, step, through_text
from tests.model.projection.stories import story
from tests.storage.making import weighed


@settings(max_examples=25)
@given(data=st.data())
def test_folding_all_at_once_or_in_chunks_is_folding_one_by_one(data: st.DataObject) -> None:
    told = story(lambda some: data.draw(st.sampled_from(some)), length=data.draw(st.integers(0, 25)))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(told.events)), max_size=4)))
    assert folded(told.events).rows == told.rows.rows
    assert folded(*chunks(told.events, cuts)).rows == told.rows.rows


@pytest.mark.parametrize("seed", range(4))
def test_folding_a_long_story_all_at_once_or_in_chunks_is_folding_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    told = story(chance.choice, length=250)
    assert len(told.events) > 60
    cuts = sorted(chance.sample(range(len(told.events)), 5))
    assert folded(told.events).rows == told.rows.rows
    assert folded(*chunks(told.events, cuts)).rows == told.rows.rows


def test_the_stories_tell_of_everything_that_can_happen() -> None:
    told = {type(each.event) for seed in range(6) for each in story(random.Random(seed).choice, length=250).events}
    missing = {cls.__name__ for cls in SESSION_EVENTS} - {cls.__name__ for cls in told}
    assert missing == {"SessionImported"}


@pytest.mark.parametrize("seed", range(4))
def test_every_message_and_part_has_one_place_and_every_place_its_message_or_part(seed: int) -> None:
    told = story(random.Random(seed).choice, length=250)
    assert sorted(told.order) == sorted(row["id"] for row in told.below(MESSAGES, "ses_1"))
    assert len(told.below(MESSAGE_ORDER)) == len(told.order)
    for message in told.order:
        assert sorted(told.part_order(message)) == sorted(row["id"] for row in told.below(PARTS, message))
    assert {key[0] for key, _ in told.rows.scan(PART_ORDER)} <= set(told.order)


def test_folding_changes_neither_the_events_nor_the_rows_that_it_started_from() -> None:
    told = conversation()
    told.tell(step("msg_a"))
    before, events = dict(told.rows.rows), list(told.events)
    recorded = Recorded(aggregate="ses_1", sequence=2, id="evt_x", event=said("msg_b"))
    assert fold([recorded], told.rows)
    assert (told.rows.rows, told.events) == (before, events)


def test_an_event_of_something_else_changes_nothing() -> None:
    assert fold([Recorded(aggregate="apple", sequence=0, id="evt_0", event=weighed(1))]) == []


def test_a_draft_sees_its_own_changes_and_says_what_was_there_before() -> None:
    rows = Memory({("t", ("a", 1)): "one", ("t", ("a", 2)): "two", ("t", ("b", 1)): "other"})
    draft = Draft(rows)
    draft.put("t", ("a", 3), "three")
    draft.delete("t", ("a", 1))
    assert draft.scan("t", ("a",)) == [(("a", 2), "two"), (("a", 3), "three")]
    assert draft.scan("t", ("a",), reverse=True, limit=1) == [(("a", 3), "three")]
    assert draft.scan("t", ("a",), after=("a", 2)) == [(("a", 3), "three")]
    assert draft.last("t", ("a",)) == (("a", 3), "three")
    assert draft.changes() == [
        Change("t", ("a", 3), "three"),
        Change("t", ("a", 1), None, was="one"),
    ]
    assert rows.get("t", ("a", 1)) == "one"


def test_what_came_and_went_in_one_draft_is_no_change_of_a_row_that_was_looked_for() -> None:
    draft = Draft(Memory())
    assert draft.get("t", ("a",)) is None
    draft.put("t", ("a",), 1)
    draft.delete("t", ("a",))
    assert draft.changes() == []


def test_projecting_needs_no_store() -> None:
    draft = Draft(Memory())
    project(draft, conversation().events[0])
    assert [change.table for change in draft.changes()] == ["session", "session_place", *["session_list"] * 3]


def folded(*parts: list[Recorded]) -> Memory:
    rows = Memory()
    for events in parts:
        rows.apply(through_text(fold(events, rows)))
    return rows


def chunks(events: list[Recorded], cuts: list[int]) -> list[list[Recorded]]:
    return [events[start:end] for start, end in zip([0, *cuts], [*cuts, len(events)], strict=True)]
