"""A check finds what is wrong inside, and facts tell the size."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from plugin_sdk.storage import encode_key
from plugins_builtin.storage_sqlite import checking
from tests.storage_sqlite.conftest import Open
from tests.storage_sqlite.works import putting


async def filled(opened: Open) -> None:
    storage = await opened()
    await storage.transact(putting("t", {(number,): {"text": "x" * 300} for number in range(700)}))
    await storage.aclose()


def spoil(path: Path, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql, values)


async def test_a_whole_store_has_no_problems(opened: Open) -> None:
    await filled(opened)
    assert await (await opened()).check() == []


@pytest.mark.parametrize("size", [checking.SLICE, 7, 1])
async def test_every_wrong_document_is_named_whatever_the_slices(
    opened: Open, path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(checking, "SLICE", size)
    await filled(opened)
    spoil(path, "UPDATE documents SET body = '{\"secret' WHERE key IN (?, ?)", encode_key((3,)), encode_key((699,)))
    spoil(path, "UPDATE documents SET body = 'null' WHERE key = ?", encode_key((4,)))
    spoil(path, "UPDATE documents SET body = x'7b7d' WHERE key = ?", encode_key((5,)))
    spoil(path, "INSERT INTO documents VALUES ('t', x'ff', '1'), ('Bad Name', ?, '1')", encode_key((1,)))
    problems = await (await opened()).check()
    assert len(problems) == 6
    assert "secret" not in "".join(problems)
    for name in ("(3,)", "(699,)", "(4,)", "(5,)", "xff", "Bad Name"):
        assert sum(name in problem for problem in problems) == 1, name


async def test_a_broken_page_is_a_problem_and_not_an_exception(opened: Open, path: Path) -> None:
    await filled(opened)
    with path.open("r+b") as file:
        file.seek(4_096 * 5)
        file.write(b"\xee" * 4_096)
    problems = await (await opened()).check()
    assert problems
    assert all(problem.endswith(".") for problem in problems)


async def test_facts_count_the_journals_too(opened: Open, path: Path) -> None:
    storage = await opened()
    await storage.transact(lambda tx: tx.put("t", (1,), "x" * 50_000))
    facts = await storage.facts()
    assert (facts.kind, facts.place, facts.schema) == ("sqlite", str(path), 1)
    files = list(path.parent.iterdir())
    assert len(files) == 3
    assert facts.bytes == sum(file.stat().st_size for file in files)
