"""Whoever looks at a store notices what is missing, half there, changed or too much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs
import pytest

from opencode_core.model.rows import MESSAGES, SESSIONS
from opencode_core.storage.tables import EVENT_IDS, EVENTS, HEADS
from tests.faults.ledger import Ledger, check_of
from tests.faults.looking import Found, Rows, every_row, problems, rows_of
from tests.faults.stores import opened
from tests.faults.work import HERE, a_word

Lie = Callable[[Rows], object]


@pytest.fixture
async def rows() -> Rows:
    """A store in which nothing is wrong: a session with two messages that came in one transaction."""
    async with opened("memory:") as sessions:
        await sessions.create(id="ses_a", **HERE)
        together: dict[str, Any] = {"group": "g", "of": {"ses_a": 2}}
        await sessions.log.append(a_word(sessions, "ses_a", "alone"))
        await sessions.log.append(
            *(attrs.evolve(a_word(sessions, "ses_a", text), metadata=together) for text in ("one", "two"))
        )
        return await sessions.log.storage.view(every_row)


def _ledger(rows: Rows) -> Ledger:
    events = {
        int(key[1]): (str(cast("dict[str, Any]", row)["id"]), check_of(row))
        for (table, key), row in rows.items()
        if table == EVENTS
    }
    return Ledger(events={"ses_a": events})


async def test_a_store_with_nothing_wrong_is_left_in_peace(rows: Rows) -> None:
    assert problems(Found(rows), _ledger(rows)) == []


def _without(*places: tuple[str, Any]) -> Lie:
    return lambda rows: [rows.pop(place) for place in places]


def _last_event(rows: Rows) -> None:
    """The second half of a transaction never was: all that it led to is missing too."""
    _keep_events(rows, 3)


def _last_two_events(rows: Rows) -> None:
    """A whole transaction that was acknowledged never was."""
    _keep_events(rows, 2)


def _keep_events(rows: Rows, count: int) -> None:
    kept = Found({place: row for place, row in rows.items() if place[0] != EVENTS or int(place[1][1]) < count})
    honest = rows_of(kept.logs())
    for place in [place for place in rows if place not in honest and place[0] != "store"]:
        del rows[place]
    rows.update(honest)


def _changed_event(rows: Rows) -> None:
    row = dict(cast("dict[str, Any]", rows[EVENTS, ("ses_a", 1)]))
    rows[EVENTS, ("ses_a", 1)] = {**row, "data": {**row["data"], "text": "another"}}


def _changed_projection(rows: Rows) -> None:
    place = SESSIONS, ("faults", "ses_a")
    rows[place] = {**cast("dict[str, Any]", rows[place]), "title": "another"}


def _left_over(rows: Rows) -> None:
    rows[MESSAGES, ("ses_removed", "msg_1")] = {"id": "msg_1"}


def _old_head(rows: Rows) -> None:
    rows[HEADS, ("ses_a",)] = {"sequence": 1}


def _needless_id(rows: Rows) -> None:
    rows[EVENT_IDS, ("evt_x",)] = ["ses_a", 1]


@pytest.mark.parametrize(
    ("lie", "noticed"),
    [
        (_without((EVENTS, ("ses_a", 1))), "has the sequences [0, 2, 3]"),
        (_last_event, "Of the transaction 'g'"),
        (_last_two_events, "was acknowledged and is missing"),
        (_changed_event, "is another one than was acknowledged"),
        (_changed_projection, "is other than the log says"),
        (_left_over, "follows from no log"),
        (_old_head, "('head', ('ses_a',)) is other than the log says"),
        (_needless_id, "event_id"),
    ],
)
async def test_a_lie_is_noticed(lie: Lie, noticed: str, rows: Rows) -> None:
    ledger = _ledger(rows)
    lie(rows)
    assert any(noticed in each for each in problems(Found(rows), ledger))


async def test_what_a_backend_complains_about_is_passed_on(rows: Rows) -> None:
    assert problems(Found(rows, ("A page is torn.",))) == ["The check says: A page is torn."]


async def test_a_removed_session_that_is_there_again_is_noticed(rows: Rows) -> None:
    ledger = _ledger(rows)
    ledger.note(b'["removed", "ses_a"]\n')
    assert problems(Found(rows), ledger) == ["The log 'ses_a' was removed and is there."]


async def test_a_removal_that_nobody_acknowledged_may_have_happened_or_not(rows: Rows) -> None:
    ledger = _ledger(rows)
    ledger.note(b'["removing", "ses_a"]\n')
    assert problems(Found(rows), ledger) == []
    assert problems(Found({}), ledger) == []
    ledger.settle(["ses_a"])
    assert problems(Found({}), ledger) != [], "it is known that it did not happen"
