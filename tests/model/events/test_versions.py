"""Every version of every event that was ever written can still be read, and says what it said.

``versions/<type>/<version>.json`` holds rows as that version wrote them, and under ``today`` and ``says`` what they are
in the current version, as data and as the value that is read. To change the shape of an event's data:

1. Raise ``version`` in its `EventKind`, change the class, and give `opencode_core.model.codec.UPCASTERS` the step from
   the version before. Never touch a ``row`` that is there: somebody's store holds it.
2. Run ``python -m tests.model.events.writing --new``, which writes the new version's file and no other.
3. Correct ``today`` and ``says`` in the older files of the type by hand: it is what the upcaster has to bring about.

A new field is a change of the shape too, even one with a default: an older program would silently lose it.
"""

import json
from typing import Any

import attrs
import pytest

from opencode_core.model.codec import EVENTS, UPCASTERS
from opencode_core.model.converter import json_names
from opencode_core.model.event.base import SessionEvent
from opencode_core.model.event.catalogue import SESSION_EVENTS
from opencode_core.storage.envelope import from_row, row_of
from tests.model.events.writing import VERSIONS, path_of

EVER_WRITTEN = [(cls, version) for cls in SESSION_EVENTS for version in range(1, cls.kind.version + 1)]
each_version = pytest.mark.parametrize(
    ("cls", "version"), EVER_WRITTEN, ids=[f"{cls.kind.type}/{version}" for cls, version in EVER_WRITTEN]
)
each_event = pytest.mark.parametrize("cls", SESSION_EVENTS, ids=[cls.kind.type for cls in SESSION_EVENTS])


def test_every_version_ever_written_has_its_rows_and_there_are_no_others() -> None:
    there = {(path.parent.name, int(path.stem)) for path in VERSIONS.glob("*/*.json")}
    assert there == {(cls.kind.type, version) for cls, version in EVER_WRITTEN}


@each_version
def test_a_stored_row_says_what_it_said(cls: type[SessionEvent], version: int) -> None:
    for case in rows(cls, version):
        assert case["row"]["type"] == f"{cls.kind.type}/{version}"
        recorded = from_row(case["aggregate"], 0, case["row"], EVENTS)
        assert type(recorded.event) is cls
        assert text(EVENTS.encode(recorded.event)) == text(case["today"])
        assert repr(recorded.event) == case["says"]
        assert EVENTS.decode(cls.kind.type, cls.kind.version, case["today"], case["aggregate"]) == recorded.event


@each_event
def test_what_is_written_today_is_what_the_newest_version_wrote_to_the_byte(cls: type[SessionEvent]) -> None:
    for case in rows(cls, cls.kind.version):
        recorded = from_row(case["aggregate"], 0, case["row"], EVENTS)
        assert text(row_of(recorded, EVENTS)) == text(case["row"])


@each_event
def test_the_rows_of_the_newest_version_have_every_field(cls: type[SessionEvent]) -> None:
    shown = {name for case in rows(cls, cls.kind.version) for name in case["row"]["data"]}
    assert shown == set(json_names(cls).values()) - {cls.kind.aggregate}
    assert {*json_names(cls)} == {field.name for field in attrs.fields(cls)}


def test_every_version_but_the_last_has_an_upcaster() -> None:
    assert set(UPCASTERS) == {(cls.kind.type, version) for cls, version in EVER_WRITTEN if version != cls.kind.version}


def rows(cls: type[SessionEvent], version: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path_of(cls.kind.type, version).read_text(encoding="utf-8"))
    assert found
    return found


def text(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False)
