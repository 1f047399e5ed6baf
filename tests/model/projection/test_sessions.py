"""A session is in its lists, says what happened to it, and has one epoch with a snapshot for each source."""

from typing import Any

import pytest

from opencode_core.errors import LifecycleConflictError, MessageDecodeError, SessionNotFoundError
from opencode_core.model.context import SnapshotEntry
from opencode_core.model.event import conversation as c
from opencode_core.model.event import session as s
from opencode_core.model.permission import PermissionRule
from opencode_core.model.rows import DIFFS, EPOCHS, SESSION_LISTS, SESSION_PLACES, SESSIONS, SNAPSHOTS, digest
from opencode_core.model.session import FileDiff, SessionSummary
from tests.model.projection.making import MODEL, Conversation, conversation, said

SNAPSHOT = {"core/date": SnapshotEntry(value="Monday"), "core/env": SnapshotEntry(value={"os": "x"}, removed="gone")}


def event(cls: type, at: int = 5, **fields: Any) -> Any:
    return cls(session="ses_1", at=at, **fields)


def lists(told: Conversation) -> set[Any]:
    return {key for key, _ in told.rows.scan(SESSION_LISTS)}


@pytest.mark.behaviour("V1-01")
def test_a_new_session_is_as_it_was_created_and_in_every_list() -> None:
    rules = (PermissionRule(permission="bash", pattern="*", action="deny"),)
    told = conversation(title="t", slug="s", version="2", parent="ses_0", agent="plan", model=MODEL, permission=rules)
    session = told.session
    assert (session.title, session.slug, session.version, session.parent) == ("t", "s", "2", "ses_0")
    assert (session.agent, session.model, session.permission) == ("plan", MODEL, rules)
    assert (session.time.created, session.time.updated) == (1, 1)
    assert lists(told) == {
        ("all", "", -1, "ses_1"),
        ("project", "prj", -1, "ses_1"),
        ("directory", digest("/w"), -1, "ses_1"),
        ("parent", "ses_0", -1, "ses_1"),
    }


def test_a_session_is_created_once() -> None:
    told = conversation()
    before = dict(told.rows.rows)
    for again in (
        s.SessionCreated(session="ses_1", at=1, project="other", directory="/v"),
        event(s.SessionImported, document={"id": "ses_1", "projectID": "p", "directory": "/", "time": {}}),
    ):
        with pytest.raises(LifecycleConflictError, match="'ses_1' exists already"):
            told.tell(again)
    assert told.rows.rows == before


IMPORTED: dict[str, Any] = {
    "zebra": [1],
    "id": "ses_1",
    "projectID": "prj",
    "directory": "/w",
    "title": "Old",
    "version": "0.1",
    "time": {"created": 7, "updated": 8, "initialized": 9},
}


def test_an_imported_session_keeps_its_bytes_and_what_is_not_known_survives_changes() -> None:
    told = Conversation()
    told.tell(event(s.SessionImported, document=IMPORTED))
    assert list(told.rows.get(SESSIONS, ("prj", "ses_1")).items()) == list(IMPORTED.items())  # type: ignore[union-attr]
    assert ("all", "", -7, "ses_1") in lists(told)
    told.tell(event(s.SessionTitled, at=20, title="New"), event(s.SessionMoved, at=30, directory="/v", project="p2"))
    row: Any = told.rows.get(SESSIONS, ("p2", "ses_1"))
    assert (row["zebra"], row["title"], row["time"]["initialized"], row["time"]["updated"]) == ([1], "New", 9, 30)


@pytest.mark.parametrize("changes", [{"id": "ses_2"}, {"time": None}, {"directory": 5}])
def test_a_document_that_does_not_fit_or_is_another_sessions_is_refused(changes: Any) -> None:
    told = Conversation()
    with pytest.raises(MessageDecodeError):
        told.tell(event(s.SessionImported, document={**IMPORTED, **changes}))
    assert told.rows.rows == {}


def test_what_happens_to_a_session_is_what_it_says() -> None:
    told = conversation()
    rules = (PermissionRule(permission="bash", pattern="*", action="ask"),)
    told.tell(
        event(s.SessionTitled, title="t"), event(s.SessionShared, url="u"), event(s.SessionPermitted, rules=rules)
    )
    session = told.session
    assert (session.title, session.share and session.share.url, session.permission) == ("t", "u", rules)
    told.tell(event(s.SessionUnshared), event(s.SessionPermitted, rules=()), event(s.SessionTouched, at=77))
    session = told.session
    assert (session.share, session.permission, session.time.updated) == (None, None, 77)


def test_an_archived_session_says_since_when_until_it_comes_back() -> None:
    told = conversation()
    told.tell(event(s.SessionArchived, at=9))
    assert (told.session.time.archived, told.session.time.updated) == (9, 1)
    told.tell(event(s.SessionUnarchived, at=10))
    assert (told.session.time.archived, told.session.time.updated) == (None, 10)
    row: Any = told.rows.get(SESSIONS, ("prj", "ses_1"))
    assert "archived" not in row["time"]


def test_diffs_stand_beside_the_session_with_their_totals_in_it() -> None:
    told = conversation()
    told.tell(
        event(s.SessionDiffed, diffs=(FileDiff(file="a", additions=1, deletions=2), FileDiff(file="b", additions=3)))
    )
    assert told.session.summary == SessionSummary(additions=4, deletions=2, files=2)
    row: Any = told.rows.get(DIFFS, ("ses_1",))
    assert [diff["file"] for diff in row] == ["a", "b"]


@pytest.mark.parametrize("cls", [s.SessionTouched, s.SessionArchived, s.RevertCleared, s.SessionUnshared])
def test_nothing_happens_to_a_session_that_is_not_there(cls: type) -> None:
    told = Conversation()
    with pytest.raises(SessionNotFoundError):
        told.tell(event(cls))
    assert told.rows.rows == {}


@pytest.mark.parametrize(
    "turn",
    [
        event(c.TurnPrepared, turn="t"),
        event(c.TurnDispatched, turn="t"),
        event(c.TurnSettled, turn="t"),
        event(s.EpochStarted, baseline="", snapshot={}, since=-1),
    ],
)
def test_no_turn_and_no_epoch_belongs_to_a_session_that_is_not_there(turn: Any) -> None:
    told = Conversation()
    with pytest.raises(SessionNotFoundError):
        told.tell(turn)
    assert told.rows.rows == {}


def test_the_last_turn_says_how_far_it_is() -> None:
    told = conversation()
    told.tell(event(c.TurnPrepared, turn="t1", attempt=2))
    assert told.cursor()["turn"] == {"id": "t1", "state": "prepared", "attempt": 2}
    told.tell(event(c.TurnDispatched, turn="t1"))
    assert told.cursor()["turn"] == {"id": "t1", "state": "dispatched", "attempt": 2}
    told.tell(event(c.TurnSettled, turn="t1", outcome="interrupted"))
    assert told.cursor()["turn"]["state"] == "interrupted"
    told.tell(event(c.TurnPrepared, turn="t2"))
    assert told.cursor()["turn"] == {"id": "t2", "state": "prepared", "attempt": 1}


# Epochs


def test_an_epoch_has_its_baseline_and_exactly_the_snapshot_that_it_was_made_of() -> None:
    told = conversation()
    sections = (s.TextSection(key="core/date", start=0, end=6),)
    told.tell(event(s.EpochStarted, baseline="Monday", sections=sections, snapshot=SNAPSHOT, since=0))
    assert told.rows.get(EPOCHS, ("ses_1",)) == {
        "baseline": "Monday",
        "sections": [{"key": "core/date", "start": 0, "end": 6}],
        "since": 0,
        "reason": "first",
        "sequence": 1,
    }
    assert told.below(SNAPSHOTS, "ses_1") == [{"value": "Monday"}, {"value": {"os": "x"}, "removed": "gone"}]
    fresh = {"core/date": SnapshotEntry(value="Tuesday")}
    told.tell(event(s.EpochStarted, baseline="Tuesday", snapshot=fresh, since=1, reason="compaction"))
    assert told.below(SNAPSHOTS, "ses_1") == [{"value": "Tuesday"}]


def test_admitted_context_is_a_system_message_and_writes_only_the_sources_that_changed() -> None:
    told = conversation()
    told.tell(event(s.EpochStarted, baseline="b", snapshot=SNAPSHOT, since=0))
    changed = {"core/date": SnapshotEntry(value="Tuesday"), "new/one": SnapshotEntry(value=None)}
    changes = told.tell(event(s.ContextAdmitted, message="msg_a", text="Now.", changed=changed, removed=("core/env",)))
    assert {change.key[1] for change in changes if change.table == SNAPSHOTS} == {"core/date", "new/one", "core/env"}
    assert not [change for change in changes if change.table in (EPOCHS, SESSIONS)]
    assert told.below(SNAPSHOTS, "ses_1") == [{"value": "Tuesday"}, {"value": None}]
    assert (told.message("msg_a").text, told.message("msg_a").sources) == ("Now.", ("core/date", "core/env", "new/one"))


# Moves


def test_a_moved_session_leaves_its_old_project_and_lists_and_its_epoch() -> None:
    told = conversation(parent="ses_0")
    told.tell(said("msg_a"), event(s.EpochStarted, baseline="b", snapshot=SNAPSHOT, since=0))
    told.tell(event(s.SessionMoved, at=40, directory="/v", project="other", workspace="w"))
    session = told.session
    assert (session.directory, session.project, session.workspace) == ("/v", "other", "w")
    assert (session.time.created, session.time.updated) == (1, 40)
    assert [key for key, _ in told.rows.scan(SESSIONS)] == [("other", "ses_1")]
    assert told.rows.get(SESSION_PLACES, ("ses_1",)) == {"project": "other", "created": 1}
    assert lists(told) == {
        ("all", "", -1, "ses_1"),
        ("project", "other", -1, "ses_1"),
        ("directory", digest("/v"), -1, "ses_1"),
        ("parent", "ses_0", -1, "ses_1"),
    }
    assert told.below(EPOCHS, "ses_1") == told.below(SNAPSHOTS, "ses_1") == []
    assert told.order == ["msg_a"]


def test_a_session_may_move_within_its_project() -> None:
    told = conversation()
    told.tell(event(s.SessionMoved, directory="/v", project="prj"))
    assert (told.session.directory, told.session.project) == ("/v", "prj")
    assert ("directory", digest("/w"), -1, "ses_1") not in lists(told)
