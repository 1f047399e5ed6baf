"""What is not a store, or not one that can be opened, is left exactly as it was."""

import stat
from pathlib import Path

import pytest

from plugin_sdk.storage import (
    StorageDamagedError,
    StorageError,
    StorageForeignError,
    StorageMissingError,
    StorageUrlError,
    StorageVersionError,
)
from plugins_builtin.storage_jsonfiles import open_store
from tests.storage_jsonfiles import v1_store
from tests.storage_jsonfiles.v1_store import contents, url


async def refused(root: Path, error: type[StorageError], *, create: bool = True) -> StorageError:
    before = v1_store.paths(root.parent), contents(root.parent)
    with pytest.raises(error) as raised:
        await open_store(url(root), create=create)
    assert (v1_store.paths(root.parent), contents(root.parent)) == before
    return raised.value


async def test_where_nothing_is_none_is_made_unless_asked(tmp_path: Path) -> None:
    await refused(tmp_path / "none", StorageMissingError, create=False)
    (tmp_path / "empty").mkdir()
    await refused(tmp_path / "empty", StorageMissingError, create=False)


@pytest.mark.parametrize("name", ["README.md", ".git/config", "session/index.ts", "src/session/x.json", "project"])
async def test_a_folder_with_other_things_in_it_is_foreign(tmp_path: Path, name: str) -> None:
    v1_store.write(tmp_path / "folder" / name, b"{}")
    await refused(tmp_path / "folder", StorageForeignError)


async def test_a_file_and_a_folder_of_migrations_are_foreign(tmp_path: Path) -> None:
    v1_store.write(tmp_path / "file", b"2")
    await refused(tmp_path / "file", StorageForeignError)
    v1_store.write(tmp_path / "django/migration/0001.py", b"")
    await refused(tmp_path / "django", StorageForeignError)


async def test_a_newer_store_is_refused_with_both_versions(tmp_path: Path) -> None:
    error = await refused(v1_store.build(tmp_path / "storage", b"3"), StorageVersionError)
    assert isinstance(error, StorageVersionError)
    assert (error.found, error.known) == (3, 2)


@pytest.mark.parametrize("version", [b"", b"two", b"-1", b"2.5", b"\xff"])
async def test_a_store_whose_version_is_not_a_number_is_damaged(tmp_path: Path, version: bytes) -> None:
    await refused(v1_store.build(tmp_path / "storage", version), StorageDamagedError)


@pytest.mark.parametrize("switches", ["?timeout=soon", "?timeout=-1", "?timeout=inf", "?speed=9"])
async def test_a_wrong_switch_is_refused(tmp_path: Path, switches: str) -> None:
    with pytest.raises(StorageUrlError):
        await open_store(url(tmp_path / "storage", switches))
    assert v1_store.paths(tmp_path) == []


async def test_nobody_else_can_read_what_is_made(tmp_path: Path) -> None:
    storage = await open_store(url(tmp_path / "deep/storage"))
    await storage.transact(lambda tx: tx.put("session", ("p", "s"), {"secret": 1}))
    await storage.aclose()

    root = tmp_path / "deep/storage"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [root, *root.rglob("*")] if path.is_dir()}
    assert modes == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*") if path.is_file()} == {0o600}


async def test_a_store_may_be_reached_through_a_link_to_its_folder(tmp_path: Path) -> None:
    v1_store.build(tmp_path / "storage")
    (tmp_path / "link").symlink_to(tmp_path / "storage")

    storage = await open_store(url(tmp_path / "link"), create=False)
    facts = await storage.facts()
    await storage.aclose()

    assert facts.place == str(tmp_path / "storage")
