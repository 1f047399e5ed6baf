"""What is wrong in a store is found, and told without any content."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from opencode_core.ids import Ids
from opencode_core.model.event.conversation import TextGrew
from opencode_core.ports.storage import Transaction
from opencode_core.storage.checking import check
from opencode_core.storage.comparing import MOST
from opencode_core.storage.schema import prepare
from tests.storage.filling import SECRET, Watched, a_log, a_store, everything, fill, first_generation, put


@pytest.mark.parametrize("kind", ["memory", "sqlite", "jsonfiles"])
async def test_a_store_that_is_right_is_right_and_nothing_is_written(kind: str, tmp_path: Path) -> None:
    async with a_store(kind, tmp_path) as storage:
        await fill(storage)
        watched = Watched(storage)
        checked = await check(watched)
        assert checked.findings == []
        assert (checked.logs, checked.events) == (2, 22)
        assert watched.transactions == 0


async def test_an_empty_store_is_right() -> None:
    async with a_store() as storage:
        assert (await check(storage)).findings == []


def _changed(table: str, *key: Any, **fields: Any) -> Callable[[Transaction], None]:
    def change(rows: Transaction) -> None:
        row = rows.get(table, key)
        assert isinstance(row, Mapping)
        rows.put(table, key, {**row, **fields})

    return change


def _gone(table: str, *key: Any) -> Callable[[Transaction], None]:
    def remove(rows: Transaction) -> None:
        assert rows.get(table, key) is not None
        rows.delete(table, key)

    return remove


def _added(table: str, *key: Any, document: Any = True) -> Callable[[Transaction], None]:
    def add(rows: Transaction) -> None:
        assert rows.get(table, key) is None
        rows.put(table, key, document)

    return add


def _first_list(rows: Transaction) -> None:
    key, _ = next(iter(rows.scan("session_list", ("all",))))
    rows.delete("session_list", key)


def _another_place(rows: Transaction) -> None:
    document: Any = rows.get("event", ("ses_1", 1))
    rows.put("event", ("ses_1", 0), {**cast("dict[str, Any]", rows.get("event", ("ses_1", 0))), "id": document["id"]})


ROW: dict[str, Any] = {
    "id": Ids(milliseconds=lambda: 1).placed("ses_old0000", 0),
    "type": "session.titled/1",
    "data": {"at": 5, "title": "x"},
}

WRONG: dict[str, tuple[Callable[[Transaction], None], str, str]] = {
    "a gap": (_gone("event", "ses_1", 3), "log", "ses_1: The log has a gap before 4."),
    "no first event": (_gone("event", "ses_1", 0), "log", "ses_1: The log has a gap before 1."),
    "no last event": (_gone("event", "ses_1", 10), "log", "ses_1: The log ends with 9, and its head says 10."),
    "no head": (_gone("head", "ses_1"), "log", "ses_1: The log ends with 10, and its head says None."),
    "a head alone": (_added("head", "ses_3", document={"sequence": 4}), "log", "ses_3: The log ends with -1,"),
    "events alone": (_added("event", "ses_0", 0, document={}), "log", "ses_0: The event 0 cannot be read."),
    "a later head": (
        _changed("head", "ses_1", sequence=11),
        "log",
        "ses_1: The log ends with 10, and its head says 11",
    ),
    "an unknown type": (_changed("event", "ses_1", 4, type="x/1"), "log", "ses_1: The event 4 cannot be read."),
    "a newer version": (_changed("event", "ses_1", 4, type="prompt.admitted/9"), "log", "The event 4 cannot be read."),
    "bad data": (_changed("event", "ses_1", 4, data={}), "log", "ses_1: The event 4 cannot be read."),
    "a bad location": (_changed("event", "ses_1", 4, location=[1]), "log", "ses_1: The event 4 cannot be read"),
    "no sequence": (_added("event", "ses_1", "x", document={}), "log", "has no sequence"),
    "an id of another place": (_another_place, "log", "The id of the event 0 is not known"),
    "a reused id": (_changed("event", "ses_1", 4, id="evt_other"), "log", "The id of the event 4 is not known"),
    "an id alone": (_added("event_id", "evt_x", document=["ses_1", 3]), "log", "The event id 'evt_x' is known, and no"),
    "an id nowhere": (_added("event_id", "evt_x", document=3), "log", "The event id 'evt_x' is known, and no event"),
    "what cannot follow": (
        _changed("event", "ses_1", 3, data={"at": 1, "message": "y", "admitted": 2, "admitted_at": 1}),
        "log",
        "The event 3 does not follow",
    ),
    "another title": (_changed("session", "abc", "ses_1", title=SECRET), "", ""),
    "another slug": (
        _changed("session", "abc", "ses_1", slug=SECRET),
        "rows",
        "In the table 'session' the row ('abc', 'ses_1') is not",
    ),
    "another message": (_changed("message", "ses_1", "msg_ses_1_a", agent=SECRET), "rows", "'message'"),
    "no message": (_gone("message", "ses_1", "msg_ses_1_c"), "rows", "the row ('ses_1', 'msg_ses_1_c') is missing"),
    "one message more": (
        _added("message", "ses_1", "msg_x", document={}),
        "rows",
        "('ses_1', 'msg_x') should not be there",
    ),
    "no part": (_gone("part", "msg_ses_1_b", "prt_ses_1_2"), "rows", "In the table 'part'"),
    "one part more": (
        _added("part", "msg_ses_1_b", "prt_x", document={"sessionID": "ses_1"}),
        "rows",
        "'prt_x') should not be there",
    ),
    "no part order": (_gone("part_order", "msg_ses_1_b", 6, 0), "rows", "In the table 'part_order'"),
    "no order": (_gone("message_order", "ses_1", 3), "rows", "In the table 'message_order'"),
    "one order more": (_added("system_order", "ses_1", 3, document={"id": "x"}), "rows", "In the table 'system_order'"),
    "no fragment": (_gone("fragment", "msg_ses_1_b", "prt_ses_1_3", 0), "rows", "In the table 'fragment'"),
    "no inbox": (_gone("inbox", "ses_1", "pending", 4), "rows", "In the table 'inbox'"),
    "another epoch": (_changed("epoch", "ses_1", since=3), "rows", "In the table 'epoch'"),
    "no snapshot": (_gone("snapshot", "ses_1", "core/date"), "rows", "In the table 'snapshot'"),
    "another cursor": (_changed("cursor", "ses_1", assistant="x"), "rows", "In the table 'cursor'"),
    "no message place": (_gone("message_place", "msg_ses_1_c"), "rows", "In the table 'message_place'"),
    "not in a list": (_first_list, "rows", "In the table 'session_list'"),
    "no place": (_gone("session_place", "ses_1"), "rows", "In the table 'session_place'"),
    "no session": (_gone("session", "abc", "ses_1"), "rows", "In the table 'session'"),
    "a session in no list": (
        lambda rows: rows.put(
            "session", ("abc", "ses_old0000"), first_generation(1)["session", ("abc", "ses_old0000")]
        ),
        "orphans",
        "is in no list; run 'opencode-core storage migrate'",
    ),
    "no session at all": (
        _added("session", "abc", "ses_x", document=3),
        "orphans",
        "is not a session that can be read",
    ),
    "a place alone": (
        _added("session_place", "ses_x", document={"project": "abc"}),
        "orphans",
        "is of a session that is",
    ),
    "a list alone": (_added("session_list", "all", "", 5, "ses_x"), "orphans", "In the table 'session_list'"),
    "a wrong list": (_added("session_list", "project", "zzz", 1, "ses_1"), "orphans", "does not belong there"),
    "a message alone": (
        _added("message", "ses_x", "msg_x", document={}),
        "orphans",
        "('ses_x', 'msg_x') is of a session",
    ),
    "a part alone": (
        _added("part", "msg_x", "prt_x", document={"sessionID": "ses_1"}),
        "orphans",
        "is of a message that",
    ),
    "a part order alone": (_added("part_order", "msg_x", 1, 0), "orphans", "In the table 'part_order'"),
    "a fragment alone": (_added("fragment", "msg_x", "prt_x", 0, document="x"), "orphans", "In the table 'fragment'"),
    "a message place alone": (
        _added("message_place", "msg_x", document={"session": "ses_1", "sequence": 1}),
        "orphans",
        "'message_place'",
    ),
    **{
        f"a row of '{table}' alone": (
            _added(table, "ses_x", *more),
            "orphans",
            f"In the table '{table}' the row ('ses_x'",
        )
        for table, more in {
            "message_order": (1,),
            "system_order": (1,),
            "inbox": ("pending", 1),
            "epoch": (),
            "snapshot": ("k",),
            "cursor": (),
            "session_diff": (),
        }.items()
    },
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_what_is_wrong_is_found(wrong: str) -> None:
    spoil, area, said = WRONG[wrong]
    async with a_store() as storage:
        await fill(storage)
        await storage.transact(spoil)
        before = await everything(storage)
        findings = (await check(storage)).findings
        assert await everything(storage) == before
    if not area:
        assert findings == []
        return
    assert any(each.area == area and said in str(each) for each in findings), [str(each) for each in findings]
    assert not any(SECRET in str(each) for each in findings)


async def test_what_the_backend_finds_is_among_it(tmp_path: Path) -> None:
    async with a_store("jsonfiles", tmp_path) as storage:
        await fill(storage)
    (tmp_path / "store-jsonfiles/message/ses_1/msg_ses_1_c.json").write_text("{")
    async with a_store("jsonfiles", tmp_path) as storage:
        findings = (await check(storage)).findings
        assert [each.problem for each in findings if each.area == "backend"][:1] == list(await storage.check())[:1]
        assert findings


async def test_a_text_that_streamed_in_several_pieces_is_right() -> None:
    async with a_store() as storage:
        await fill(storage)
        for number in range(1, 12):
            piece = {"session": "ses_1", "at": 1, "message": "msg_ses_1_b", "part": "prt_ses_1_3"}
            await a_log(storage).append(TextGrew(**piece, offset=len(SECRET) * number, text=SECRET))  # type: ignore[arg-type]
        assert (await check(storage)).findings == []


async def test_many_differences_of_a_session_are_summed_up() -> None:
    async with a_store() as storage:
        await fill(storage)
        await put(storage, {("message", ("ses_1", f"msg_x{number}")): {} for number in range(MOST + 3)})
        rows = [each for each in (await check(storage)).findings if each.area == "rows"]
        assert len(rows) == MOST + 1
        assert rows[-1].problem == "3 more rows are not what the log leads to."


async def test_many_orphans_of_a_table_are_summed_up() -> None:
    async with a_store() as storage:
        await put(storage, {("cursor", (f"ses_{number:03}",)): {} for number in range(700)})
        await put(storage, {("store", ("schema",)): {"version": 1}})
        findings = (await check(storage)).findings
        assert len(findings) == 11
        assert findings[-1].problem == "In the table 'cursor' 690 more rows belong to nothing."


async def test_a_session_that_is_older_than_its_log_is_no_fault() -> None:
    async with a_store() as storage:
        await put(storage, {**first_generation(2), ("session_diff", ("ses_old0000",)): []})
        await prepare(storage)
        assert (await check(storage)).findings == []
        await put(storage, {("event", ("ses_old0000", 0)): ROW, ("head", ("ses_old0000",)): {"sequence": 0}})
        assert (await check(storage)).findings == []
