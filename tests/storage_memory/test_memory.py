"""What is particular to the store in memory; that it keeps the laws is shown in tests/storage_contract."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from opencode_core.plugins.slots import STORAGE_BACKENDS
from plugin_sdk.storage import Key, StorageMissingError, StorageUrlError, Transaction
from plugin_sdk.testing import load_plugin
from plugins_builtin import storage_memory
from plugins_builtin.storage_memory import open_store


async def test_each_store_is_a_new_one() -> None:
    first, second = await open_store("memory:"), await open_store("memory:")
    await first.transact(lambda tx: tx.put("t", ("a",), 1))
    assert await second.view(lambda view: view.tables()) == []
    await first.aclose()
    await second.aclose()


@pytest.mark.parametrize("url", ["memory:name", "memory://", "memory:///tmp/x", "memory:?x=1", "memory", "sqlite:"])
async def test_a_url_that_names_something_is_refused(url: str) -> None:
    with pytest.raises(StorageUrlError, match="Write 'memory:' alone"):
        await open_store(url)


async def test_a_password_in_a_refused_url_is_not_told() -> None:
    with pytest.raises(StorageUrlError) as caught:
        await open_store("memory://me:hunter2@host")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("migrate", [True, False])
async def test_a_store_in_memory_is_never_there_already(migrate: bool) -> None:
    with pytest.raises(StorageMissingError):
        await open_store("memory:", create=False, migrate=migrate)
    await (await open_store("memory:", migrate=migrate)).aclose()


async def test_thousands_of_keys_stay_in_order_while_they_come_and_go() -> None:
    """More than the keys of one run, so that runs are split, emptied and passed over."""
    random, store = Random(11), await open_store("memory:")
    wanted: set[int] = set()
    for _ in range(6):
        added = random.sample(range(-10_000, 10_000), 3_000)
        start = random.randrange(-10_000, 8_000)
        removed = [*random.sample(sorted(wanted | set(added)), 800), *range(start, start + 2_000)]
        await store.transact(_changing(added, removed))
        wanted = (wanted | set(added)) - set(removed)
        found = await store.view(lambda view: [key for key, _ in view.scan("t")])
        assert found == [(number,) for number in sorted(wanted)]
        low, high = sorted(random.sample(range(-10_000, 10_000), 2))
        forward = await store.view(_keys_after(low, reverse=False))
        assert forward == [number for number in sorted(wanted) if number > low]
        backward = await store.view(_keys_after(high, reverse=True))
        assert backward == [number for number in sorted(wanted, reverse=True) if number < high]
    await store.aclose()


async def test_the_size_follows_what_is_kept() -> None:
    store = await open_store("memory:")
    empty = (await store.facts()).bytes
    await store.transact(lambda tx: tx.put("t", ("a",), "x" * 10_000))
    full = (await store.facts()).bytes
    await store.transact(lambda tx: tx.delete("t", ("a",)))
    assert empty == (await store.facts()).bytes == 0
    assert full is not None
    assert full > 10_000
    await store.aclose()


async def test_the_plugin_offers_the_scheme(tmp_path: Path) -> None:
    async with load_plugin(storage_memory, directory=tmp_path) as plugin:
        offered = {each.key: each.value for each in plugin.host.location.read().all(STORAGE_BACKENDS)}
    assert offered == {"memory": open_store}


def _changing(added: list[int], removed: list[int]) -> Callable[[Transaction], None]:
    def work(tx: Transaction) -> None:
        for number in added:
            tx.put("t", (number,), number)
        for number in removed:
            tx.delete("t", (number,))

    return work


def _keys_after(number: int, *, reverse: bool) -> Callable[..., list[int]]:
    after: Key = (number,)
    return lambda view: [key[0] for key, _ in view.scan("t", after=after, reverse=reverse)]
