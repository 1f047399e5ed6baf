"""A first-generation store is read, carried on and migrated, byte for byte."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from plugin_sdk.storage import (
    JSON,
    Key,
    ReadTransaction,
    Storage,
    StorageDamagedError,
    StorageFullError,
    StorageVersionError,
    Transaction,
)
from plugins_builtin.storage_jsonfiles import open_store
from plugins_builtin.storage_jsonfiles.files import Files
from tests.storage_jsonfiles import v1_store
from tests.storage_jsonfiles.v1_store import ASSISTANT, DIFFS, PROJECT, SESSION, USER, compact, contents, indented, url

pytestmark = pytest.mark.behaviour("V1-27")


async def everything(storage: Storage) -> dict[str, JSON]:
    def read(tx: ReadTransaction) -> dict[str, JSON]:
        return {path_of(table, key): document for table in tx.tables() for key, document in tx.scan(table)}

    return await storage.view(read)


def path_of(table: str, key: Key) -> str:
    return "/".join((table, *map(str, key))) + ".json"


async def test_every_document_of_a_store_is_read_and_no_file_is_changed(tmp_path: Path) -> None:
    root = v1_store.build(tmp_path / "storage")
    before = contents(root)

    storage = await open_store(url(root), create=False)
    found = await everything(storage)
    wrong = await storage.check()
    await storage.aclose()

    assert found == v1_store.documents()
    assert contents(root) == before
    assert wrong == []


async def test_documents_that_are_written_again_have_the_same_bytes(tmp_path: Path) -> None:
    root = v1_store.build(tmp_path / "storage")
    before = contents(root)
    storage = await open_store(url(root))

    def rewrite(tx: Transaction) -> None:
        for table in tx.tables():
            for key, document in tx.scan(table):
                tx.put(table, key, document)

    changed = (root / "migration").stat().st_ino, (root / f"share/{SESSION}.json").stat().st_ino
    await storage.transact(rewrite)
    await storage.aclose()

    assert contents(root) == before
    assert (root / "migration").stat().st_ino == changed[0]
    assert (root / f"share/{SESSION}.json").stat().st_ino != changed[1]


async def test_a_session_that_is_carried_on_lies_where_the_first_generation_looks(tmp_path: Path) -> None:
    root = v1_store.build(tmp_path / "storage")
    storage = await open_store(url(root))
    message: dict[str, Any] = {"id": "msg_new", "role": "user", "sessionID": SESSION, "time": {"created": 1.0}}

    def carry_on(tx: Transaction) -> None:
        tx.put("message", (SESSION, "msg_new"), message)
        tx.put("part", ("msg_new", "prt_new"), {"id": "prt_new", "type": "text", "text": "weiter →"})
        tx.delete("share", (SESSION,))

    await storage.transact(carry_on)
    await storage.aclose()

    assert (root / f"message/{SESSION}/msg_new.json").read_bytes() == (
        b'{\n  "id": "msg_new",\n  "role": "user",\n  "sessionID": "%s",\n  "time": {\n    "created": 1\n  }\n}'
        % SESSION.encode()
    )
    assert (root / "part/msg_new/prt_new.json").read_bytes() == (
        '{\n  "id": "prt_new",\n  "type": "text",\n  "text": "weiter →"\n}'.encode()
    )
    assert not (root / f"share/{SESSION}.json").exists()
    visible = {path.name for path in root.iterdir() if not path.name.startswith(".")}
    assert visible == {"migration", "message", "part", "project", "session", "session_diff", "share"}


async def test_a_new_store_is_of_the_version_that_the_first_generation_knows(tmp_path: Path) -> None:
    storage = await open_store(url(tmp_path / "storage"))
    facts = await storage.facts()
    await storage.aclose()

    assert (tmp_path / "storage/migration").read_bytes() == b"2"
    assert (facts.kind, facts.place, facts.schema) == ("jsonfiles", str(tmp_path / "storage"), 2)
    assert (facts.backup, facts.migrated_from) == (None, None)


@pytest.mark.parametrize("version", [None, b"0", b"1"])
async def test_diffs_move_out_of_the_sessions_of_an_older_store(tmp_path: Path, version: bytes | None) -> None:
    root = older_store(tmp_path / "storage", version)
    before = contents(root)

    storage = await open_store(url(root))
    facts = await storage.facts()
    await storage.aclose()

    after = contents(root)
    assert json.loads(after[f"session/{PROJECT}/{SESSION}.json"]) == v1_store.session({"additions": 3, "deletions": 1})
    assert after[f"session/{PROJECT}/{SESSION}.json"] == compact(v1_store.session({"additions": 3, "deletions": 1}))
    assert after[f"session_diff/{SESSION}.json"] == compact(DIFFS)
    assert after["migration"] == b"2"
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {f"session/{PROJECT}/{SESSION}.json", f"session_diff/{SESSION}.json", "migration"}
    assert facts.migrated_from == int(version or 0)
    assert facts.backup == str(tmp_path / f"storage.backup-v{int(version or 0)}")
    assert contents(Path(facts.backup)) == before


async def test_sessions_of_the_oldest_layout_are_taken_over_from_their_projects(tmp_path: Path) -> None:
    root, commit = v1_store.build_oldest(tmp_path / "data")
    unknown = tmp_path / "data/project/gone/storage/session"
    v1_store.write(unknown / "info/ses_x.json", indented({"id": "ses_x"}))
    v1_store.write(unknown / "message/ses_x/msg_x.json", indented({"path": {"root": str(tmp_path / "gone")}}))
    v1_store.write(tmp_path / "data/project/global/storage/session/info/ses_y.json", indented({"id": "ses_y"}))
    before = contents(tmp_path / "data/project")

    storage = await open_store(url(root), create=False)
    found = await everything(storage)
    facts = await storage.facts()
    await storage.aclose()

    project: Any = found.pop(f"project/{commit}.json")
    assert (project["id"], project["vcs"], project["worktree"]) == (commit, "git", str(tmp_path / "worktree"))
    assert set(project["time"]) == {"created", "initialized"}
    assert {name: found[name] for name in sorted(found)} == {
        f"message/{SESSION}/{USER}.json": v1_store.documents()[f"message/{SESSION}/{USER}.json"],
        f"message/{SESSION}/{ASSISTANT}.json": v1_store.assistant(str(tmp_path / "worktree")),
        f"part/{USER}/prt_0.json": {"id": "prt_0"},
        f"part/{ASSISTANT}/prt_1.json": {"id": "prt_1"},
        # The second step goes by what the session says of its project.
        f"session/{commit}/{SESSION}.json": v1_store.session({"additions": 0, "deletions": 0, "diffs": DIFFS}),
        f"session/{PROJECT}/{SESSION}.json": v1_store.session({"additions": 3, "deletions": 1}),
        f"session_diff/{SESSION}.json": DIFFS,
    }
    assert contents(tmp_path / "data/project") == before
    assert (facts.migrated_from, facts.backup) == (0, None)


@pytest.mark.parametrize("version", [None, b"0", b"1"])
async def test_an_older_store_that_is_not_to_be_migrated_is_left_as_it_is(
    tmp_path: Path, version: bytes | None
) -> None:
    root = older_store(tmp_path / "storage", version)
    before = v1_store.paths(tmp_path), contents(root)

    with pytest.raises(StorageVersionError) as refused:
        await open_store(url(root), migrate=False)

    assert (refused.value.found, refused.value.known) == (int(version or 0), 2)
    assert (v1_store.paths(tmp_path), contents(root)) == before


async def test_a_migration_that_was_interrupted_anywhere_is_completed_by_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = older_store(tmp_path / "whole/storage", b"1")
    await (await open_store(url(whole))).aclose()
    original, written = Files.write, 0

    for number in range(1, 4):
        root, written = older_store(tmp_path / f"{number}/storage", b"1"), 0

        def stop(files: Files, names: tuple[str, ...], content: bytes, last: int = number) -> None:
            nonlocal written
            written += 1
            if written >= last:
                raise KeyboardInterrupt
            original(files, names, content)

        monkeypatch.setattr(Files, "write", stop)
        with pytest.raises(KeyboardInterrupt):
            await open_store(url(root))
        monkeypatch.undo()
        storage = await open_store(url(root))
        await storage.aclose()

        assert contents(root) == contents(whole)


async def test_two_that_open_an_older_store_at_once_migrate_it_once(tmp_path: Path) -> None:
    root = older_store(tmp_path / "storage", b"1")
    opened: list[Storage] = []

    async def open_it() -> None:
        opened.append(await open_store(url(root)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_it)
        tasks.start_soon(open_it)
    facts = [await storage.facts() for storage in opened]
    for storage in opened:
        await storage.aclose()

    assert sorted(str(fact.migrated_from) for fact in facts) == ["1", "None"]
    assert [path.name for path in sorted(tmp_path.glob("*"))] == ["storage", "storage.backup-v1"]  # noqa: ASYNC240


async def test_a_backup_never_replaces_an_earlier_one(tmp_path: Path) -> None:
    v1_store.write(tmp_path / "storage.backup-v1/migration", b"mine")
    v1_store.write(tmp_path / "storage.backup-unfinished/left", b"by a process that was killed")

    storage = await open_store(url(older_store(tmp_path / "storage", b"1")))
    facts = await storage.facts()
    await storage.aclose()

    assert facts.backup == str(tmp_path / "storage.backup-v1-2")
    assert contents(tmp_path / "storage.backup-v1") == {"migration": b"mine"}
    assert "left" not in contents(tmp_path / "storage.backup-v1-2")


async def test_a_session_that_cannot_be_migrated_is_named_and_the_version_stays(tmp_path: Path) -> None:
    root = older_store(tmp_path / "storage", b"1")
    v1_store.write(root / f"session/{PROJECT}/ses_broken.json", b'{"secret": ')

    with pytest.raises(StorageDamagedError, match=r"ses_broken\.json") as damaged:
        await open_store(url(root))

    assert "secret" not in str(damaged.value)
    assert (root / "migration").read_bytes() == b"1"


async def test_a_migration_that_must_fail_changes_no_document_and_leaves_no_backup(tmp_path: Path) -> None:
    root = older_store(tmp_path / "storage", b"1")
    v1_store.write(root / f"session/{PROJECT}/zzz_broken.json", b"{broken")
    before = contents(tmp_path)

    for _ in range(2):
        with pytest.raises(StorageDamagedError, match=r"zzz_broken\.json"):
            await open_store(url(root))

    assert contents(tmp_path) == before


async def test_a_migration_that_is_begun_again_has_the_backup_from_before_the_first_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = older_store(tmp_path / "storage", b"1")
    before, original, count = contents(root), Files.write, 0

    def fail(files: Files, names: tuple[str, ...], content: bytes) -> None:
        nonlocal count
        count += 1
        if count >= 2:
            raise StorageFullError("There is no space left.", "Make room.")
        original(files, names, content)

    monkeypatch.setattr(Files, "write", fail)
    for _ in range(2):
        with pytest.raises(StorageFullError):
            await open_store(url(root))
    monkeypatch.undo()
    half = contents(root)
    storage = await open_store(url(root))
    facts, right = await storage.facts(), await storage.check()
    await storage.aclose()
    v1_store.write(root / "migration", b"1")
    storage = await open_store(url(root))
    again = await storage.facts()
    await storage.aclose()

    assert half != before
    assert facts.backup == str(tmp_path / "storage.backup-v1")
    assert contents(tmp_path / "storage.backup-v1") == before
    assert right == []
    assert again.backup == str(tmp_path / "storage.backup-v1-2")


async def test_a_document_of_the_first_generation_that_is_nested_deeply_is_migrated(tmp_path: Path) -> None:
    root = older_store(tmp_path / "storage", b"1")
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    v1_store.write(
        root / f"session/{PROJECT}/{SESSION}.json", compact(v1_store.session({"diffs": [{"additions": 1, "x": deep}]}))
    )

    storage = await open_store(url(root))
    diffs = await storage.view(lambda tx: tx.get("session_diff", (SESSION,)))
    await storage.aclose()

    assert diffs == [{"additions": 1, "x": deep}]


def older_store(root: Path, version: bytes | None) -> Path:
    v1_store.build(root, version)
    session = v1_store.session({"additions": 0, "deletions": 0, "files": 2, "diffs": DIFFS})
    v1_store.write(root / f"session/{PROJECT}/{SESSION}.json", indented(session))
    (root / f"session_diff/{SESSION}.json").unlink()
    (root / "session_diff").rmdir()
    return root
