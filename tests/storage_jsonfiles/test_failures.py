"""A failure is an error of the kind that fits, loses nothing, and leaves a store that can be used again."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plugin_sdk.storage import (
    JSON,
    ReadTransaction,
    Storage,
    StorageDamagedError,
    StorageFullError,
    StorageReadOnlyError,
    StorageUnavailableError,
    Transaction,
)
from plugins_builtin.storage_jsonfiles import journal as journal_module
from plugins_builtin.storage_jsonfiles import open_store
from tests.storage_jsonfiles import v1_store
from tests.storage_jsonfiles.children import child, heard
from tests.storage_jsonfiles.v1_store import contents, url

LARGE = "x" * 300_000

# The largest file that this process may write is not large enough for the second transaction.
LIMITED = """
import resource
from plugin_sdk.storage import StorageFullError

async def main():
    storage = await open_store(URL)
    await storage.transact(lambda tx: tx.put("t", ("a",), 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
    try:
        await storage.transact(lambda tx: tx.put("t", ("b",), "x" * 100_000))
    except StorageFullError:
        say("full")
    await storage.transact(lambda tx: tx.put("t", ("c",), 3))
    say(await storage.view(lambda tx: [key for key, _ in tx.scan("t")]))
    say(await storage.check())
    await storage.aclose()

anyio.run(main)
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Make, or change, a small disk with options of ``mount``."""
    folder = tmp_path / "disk"
    folder.mkdir()
    is_mounted = False

    def mount(options: str) -> Path:
        nonlocal is_mounted
        kind = f"remount,{options}" if is_mounted else options
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", kind, "tmpfs", folder], capture_output=True, check=False)
        if done.returncode != 0 and not is_mounted:
            pytest.skip("only root may mount a small disk")
        assert done.returncode == 0, done.stderr
        is_mounted = True
        return folder

    yield mount
    if is_mounted:
        subprocess.run(["umount", "-l", folder], check=True)


def putting(name: str, document: JSON) -> Callable[[Transaction], None]:
    return lambda tx: tx.put("t", (name,), document)


async def names(storage: Storage) -> list[object]:
    def read(tx: ReadTransaction) -> list[object]:
        return [key[0] for key, _ in tx.scan("t")]

    return await storage.view(read)


async def test_a_full_disk_refuses_a_transaction_whole_and_takes_the_next(
    tmp_path: Path, disk: Callable[[str], Path]
) -> None:
    root = disk("size=1m") / "storage"
    storage = await open_store(url(root))
    await storage.transact(putting("a", LARGE))

    def work(tx: Transaction) -> None:
        for name in "bcd":
            tx.put("t", (name,), LARGE)

    with pytest.raises(StorageFullError):
        await storage.transact(work)
    refused = await names(storage)
    await storage.transact(putting("small", 1))
    kept = await names(storage)
    right = await storage.check()
    await storage.aclose()

    assert refused == ["a"]
    assert kept == ["a", "small"]
    assert right == []


async def test_what_was_committed_is_read_although_there_is_no_room_for_its_files(
    disk: Callable[[str], Path],
) -> None:
    root = disk("size=4m,nr_inodes=14") / "storage"
    storage = await open_store(url(root))
    await storage.transact(putting("a", 1))
    fill = [root.parent / f"filler-{number}" for number in range(20)]
    made = [path for path in fill if touched(path)]

    await storage.transact(putting("b", 2))
    read = await names(storage)
    with pytest.raises(StorageFullError):
        await storage.transact(putting("c", 3))
    still = await names(storage)
    files = set(contents(root))
    for path in made:
        path.unlink()
    await storage.transact(putting("d", 4))
    at_last = await names(storage)
    right = await storage.check()
    await storage.aclose()

    assert made
    assert (read, still, at_last) == (["a", "b"], ["a", "b"], ["a", "b", "d"])
    assert "t/b.json" not in files
    assert set(contents(root)) == {"migration", "t/a.json", "t/b.json", "t/d.json"}
    assert right == []


def touched(path: Path) -> bool:
    try:
        path.touch()
    except OSError:
        return False
    return True


async def test_a_file_that_may_not_grow_is_a_full_disk(tmp_path: Path) -> None:
    with child(LIMITED, url(tmp_path / "storage")) as process:
        said = [heard(process) for _ in range(3)]

    assert said == ["full", "[('a',), ('c',)]", "[]"]


@pytest.mark.parametrize("known", [True, False])
async def test_a_read_only_store_is_read_and_not_written(disk: Callable[[str], Path], known: bool) -> None:
    root = v1_store.build(disk("size=4m") / "storage")
    if known:  # by its journal and locks
        await (await open_store(url(root))).aclose()
    disk("ro")

    storage = await open_store(url(root))
    title = await storage.view(lambda tx: tx.get("share", (v1_store.SESSION,)))
    with pytest.raises(StorageReadOnlyError):
        await storage.transact(putting("a", 1))
    right = await storage.check()
    await storage.aclose()

    assert title == v1_store.documents()[f"share/{v1_store.SESSION}.json"]
    assert right == []
    with pytest.raises(StorageReadOnlyError):
        await open_store(url(root.parent / "new"))


async def test_a_disk_that_does_not_confirm_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = await open_store(url(tmp_path / "storage"))
    await storage.transact(putting("a", 1))
    failures = [OSError(5, "Input/output error")]

    def fails_once(descriptor: int) -> None:
        if failures:
            raise failures.pop()
        os.fsync(descriptor)

    monkeypatch.setattr(journal_module, "sync_content", fails_once)
    with pytest.raises(StorageUnavailableError) as failed:
        await storage.transact(putting("b", 2))
    refused = await names(storage)
    failures += [OSError(5, "Input/output error"), OSError(5, "Input/output error")]
    with pytest.raises(StorageUnavailableError) as unknown:
        await storage.transact(putting("c", 3))
    await storage.transact(putting("d", 4))
    kept = await names(storage)
    await storage.aclose()

    assert not failed.value.outcome_unknown
    assert unknown.value.outcome_unknown
    assert refused == ["a"]
    assert kept == ["a", "d"]


@pytest.mark.parametrize("link", ["t/a.json", "t/deep", "t"])
async def test_a_link_inside_the_store_is_not_followed(tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    v1_store.write(outside / "a.json", b'"outside"')
    v1_store.write(outside / "deep/b.json", b'"outside"')
    root = tmp_path / "storage"
    storage = await open_store(url(root))
    await storage.transact(putting("ok", 1))
    if link == "t":
        (root / "t/ok.json").unlink()
        (root / "t").rmdir()
    (root / link).symlink_to(outside / link.removeprefix("t/") if link != "t" else outside)
    key = ("deep", "b") if link == "t/deep" else ("a",)
    before = contents(outside)

    with pytest.raises(StorageDamagedError, match="symbolic link"):
        await storage.view(lambda tx: tx.get("t", key))
    with pytest.raises(StorageDamagedError, match="symbolic link"):
        await storage.view(lambda tx: list(tx.scan("t")))
    with pytest.raises(StorageDamagedError, match="symbolic link"):
        await storage.transact(lambda tx: tx.put("t", key, 2))
    with pytest.raises(StorageDamagedError, match="symbolic link"):
        await storage.transact(lambda tx: tx.delete("t", key))
    wrong = await storage.check()
    await storage.transact(lambda tx: tx.put("other", ("x",), 3))
    await storage.aclose()

    assert contents(outside) == before
    assert len(wrong) == 1
    assert str(root / link) in wrong[0]


async def test_the_folder_of_the_journal_may_not_be_a_link(tmp_path: Path) -> None:
    root = v1_store.build(tmp_path / "storage")
    (tmp_path / "outside").mkdir()
    (root / ".opencode-core").symlink_to(tmp_path / "outside")

    with pytest.raises(StorageDamagedError, match="symbolic link"):
        await open_store(url(root))

    assert v1_store.paths(tmp_path / "outside") == []


async def test_a_file_that_is_not_json_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    storage = await open_store(url(tmp_path / "storage"))
    await storage.transact(putting("good", 1))
    v1_store.write(tmp_path / "storage/t/bad.json", b'{"password": "hunter2"')

    with pytest.raises(StorageDamagedError, match=r"t/bad\.json") as damaged:
        await storage.view(lambda tx: tx.get("t", ("bad",)))
    with pytest.raises(StorageDamagedError, match=r"t/bad\.json"):
        await storage.view(lambda tx: list(tx.scan("t")))
    good = await storage.view(lambda tx: tx.get("t", ("good",)))
    page = await storage.view(lambda tx: list(tx.scan("t", after=("bad",))))
    await storage.transact(putting("bad", "mended"))
    right = await storage.check()
    await storage.aclose()

    assert "hunter2" not in str(damaged.value)
    assert good == 1
    assert page == [(("good",), 1)]
    assert right == []


async def test_a_check_names_everything_that_does_not_belong(tmp_path: Path) -> None:
    root = tmp_path / "storage"
    storage = await open_store(url(root))
    await storage.transact(putting("good", 1))
    strays = [".DS_Store", "notes.txt", "t/.hidden.json", "t/a%2f.json", "t/readme", "t/x.json/y.json", "Table/a.json"]
    for name in [*strays, "t/null.json", "t/half.json"]:
        v1_store.write(root / name, b"null" if "null" in name else b"{")
    (root / "migration").write_bytes(b"two")

    wrong = await storage.check()
    await storage.aclose()

    named = [*strays[:-2], "t/x.json", "Table", "t/null.json", "t/half.json", "migration"]
    assert {name for name in named if not any(f"'{root / name}'" in sentence for sentence in wrong)} == set()
    assert len(wrong) == len(named)


async def test_a_scan_passes_over_what_does_not_belong(tmp_path: Path) -> None:
    root = tmp_path / "storage"
    storage = await open_store(url(root))
    await storage.transact(putting("good", 1))
    for name in ("t/.DS_Store", "t/.x.json", "t/a%2f.json", "t/@01.json", "t/readme", "t/x.json/y.json", "t/n.json"):
        v1_store.write(root / name, b"null" if name == "t/n.json" else b"{")
    v1_store.write(root / "Upper/a.json", b"1")
    v1_store.write(root / "only_strays/readme.txt", b"1")

    found = await names(storage)
    tables = await storage.view(lambda tx: list(tx.tables()))
    await storage.aclose()

    assert found == ["good"]
    assert tables == ["t"]
