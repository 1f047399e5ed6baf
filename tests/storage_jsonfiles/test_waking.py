"""A failure swallows no wake: not one of a commit, and not one of a commit that comes later."""

import os
from pathlib import Path

import anyio
import pytest

from plugin_sdk.storage import StorageUnavailableError
from plugins_builtin.storage_jsonfiles import journal, open_store
from plugins_builtin.storage_jsonfiles.ledger import Ledger
from tests.storage_jsonfiles.v1_store import url


def fail_to_sync(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    failures = [OSError(5, "Input/output error")] * times

    def sync(descriptor: int) -> None:
        if failures:
            raise failures.pop()
        os.fsync(descriptor)

    monkeypatch.setattr(journal, "sync_content", sync)


async def test_a_commit_that_failed_does_not_hide_the_next_one_of_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = await open_store(url(tmp_path / "storage")), await open_store(url(tmp_path / "storage"))
    async with mine.changes("t") as wakes:
        fail_to_sync(monkeypatch, 1)
        with pytest.raises(StorageUnavailableError):
            await mine.transact(lambda tx: tx.put("t", ("a",), 1))
        await other.transact(lambda tx: tx.put("t", ("a",), 2))
        await anext(wakes)
    await mine.aclose()
    await other.aclose()


async def test_a_commit_of_which_nobody_knows_whether_it_happened_wakes_everybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = await open_store(url(tmp_path / "storage"))
    async with storage.changes("t") as mine, storage.changes("u") as others:
        fail_to_sync(monkeypatch, 2)
        with pytest.raises(StorageUnavailableError) as failed:
            await storage.transact(lambda tx: tx.put("t", ("a",), 1))
        await anext(mine)
        await anext(others)
    await storage.aclose()

    assert failed.value.outcome_unknown


async def test_who_could_not_begin_to_wait_does_not_keep_others_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = await open_store(url(tmp_path / "storage")), await open_store(url(tmp_path / "storage"))

    def fail(ledger: Ledger) -> tuple[int, int]:
        raise StorageUnavailableError("The store cannot be reached.", "Check the disk.")

    monkeypatch.setattr(Ledger, "trace", fail)
    with pytest.raises(StorageUnavailableError):
        async with mine.changes("t"):
            pass
    monkeypatch.undo()
    async with mine.changes("t") as wakes:
        await other.transact(lambda tx: tx.put("t", ("a",), 1))
        with anyio.fail_after(50):
            await anext(wakes)
    await mine.aclose()
    await other.aclose()
