"""What was committed survives the death of the process and of the machine, whole; what was not is not there at all."""

import os
from pathlib import Path

import pytest

from plugin_sdk.storage import JSON, ReadTransaction, Storage, StorageDamagedError
from plugins_builtin.storage_jsonfiles import open_store
from plugins_builtin.storage_jsonfiles.mark import Mark, Note
from tests.storage_jsonfiles.children import child, heard, kill
from tests.storage_jsonfiles.v1_store import contents, url

BEFORE = {("a",): "before", ("b",): "before", ("c",): "before"}
AFTER = {("a",): "after", ("b",): "after", ("d",): "after"}

# Commits one transaction over four files, and stops when so many of them are changed.
DIES = """
changed = 0

def stopping(original):
    def instead(*arguments):
        global changed
        if changed == LAST:
            say("dying")
            signal.pause()
        changed += 1
        original(*arguments)
    return instead

def work(tx):
    for name in "abd":
        tx.put("t", (name,), "after")
    tx.delete("t", ("c",))

async def main():
    storage = await open_store(URL)
    await storage.transact(lambda tx: [tx.put("t", (name,), "before") for name in "abc"])
    Files.write, Files.remove = stopping(Files.write), stopping(Files.remove)
    await storage.transact(work)

anyio.run(main)
"""

# Commits, says so, and waits to be killed.
COMMITS = """
async def main():
    storage = await open_store(URL)
    await storage.transact(lambda tx: [tx.put("t", (name,), "before") for name in "abc"])
    def work(tx):
        for name in "abd":
            tx.put("t", (name,), "after")
        tx.delete("t", ("c",))
    await storage.transact(work)
    say("committed")
    signal.pause()

anyio.run(main)
"""


async def found(storage: Storage) -> dict[object, JSON]:
    def read(tx: ReadTransaction) -> dict[object, JSON]:
        return dict(tx.scan("t"))

    return await storage.view(read)


def killed_while_applying(root: Path, changed: int) -> None:
    with child(f"LAST = {changed}\n" + DIES, url(root)) as process:
        assert heard(process) == "dying"
        kill(process)


def committed_and_killed(root: Path) -> None:
    with child(COMMITS, url(root)) as process:
        assert heard(process) == "committed"
        kill(process)


def long_ago(path: Path) -> None:
    """Make a file look as if it was written before everything in the journal."""
    os.utime(path, (1, 1))


def note(root: Path, **changed: object) -> None:
    """Change what is noted about how far the journal is applied."""
    descriptor = os.open(root / ".opencode-core/applied", os.O_RDWR)
    mark = Mark(descriptor)
    noted = mark.read()
    assert noted is not None
    values = {"generation": noted.generation, "applied": noted.applied, "run": noted.run, "boot": noted.boot}
    mark.write(Note(**{**values, **changed}))  # type: ignore[arg-type]
    mark.close()


@pytest.mark.parametrize("changed", [0, 1, 3])
async def test_a_reader_finishes_what_a_killed_writer_had_committed(tmp_path: Path, changed: int) -> None:
    root = tmp_path / "storage"
    other = await open_store(url(root))
    killed_while_applying(root, changed)

    wrong = await other.check()
    read = await found(other)
    right = await other.check()
    await other.aclose()

    assert any("not in the files yet" in sentence for sentence in wrong)
    assert read == AFTER
    assert right == []
    assert set(contents(root)) == {"migration", "t/a.json", "t/b.json", "t/d.json"}


@pytest.mark.parametrize("changed", [0, 2])
async def test_a_writer_finishes_it_before_its_own_work(tmp_path: Path, changed: int) -> None:
    root = tmp_path / "storage"
    other = await open_store(url(root))
    killed_while_applying(root, changed)

    def work(tx: ReadTransaction) -> dict[object, JSON]:
        return dict(tx.scan("t"))

    assert await other.transact(work) == AFTER
    await other.aclose()


async def test_the_next_opening_finishes_it_too(tmp_path: Path) -> None:
    root = tmp_path / "storage"
    killed_while_applying(root, 1)

    storage = await open_store(url(root))
    await storage.aclose()

    assert set(contents(root)) == {"migration", "t/a.json", "t/b.json", "t/d.json"}


@pytest.mark.parametrize("cut", [1, 20, -30])
async def test_a_record_that_was_torn_when_the_machine_stopped_never_happened(tmp_path: Path, cut: int) -> None:
    root = tmp_path / "storage"
    killed_while_applying(root, 0)
    journal = root / ".opencode-core/journal"
    first_end = end_of_first_record(root)
    content = journal.read_bytes()
    journal.write_bytes(content[: first_end + cut] if cut > 0 else content[:cut])

    storage = await open_store(url(root))
    read = await found(storage)
    await storage.transact(lambda tx: tx.put("t", ("e",), 1))
    again = await found(storage)
    right = await storage.check()
    await storage.aclose()

    assert read == BEFORE
    assert again == {**BEFORE, ("e",): 1}
    assert right == []


def end_of_first_record(root: Path) -> int:
    with open(root / ".opencode-core/applied", "rb") as file:
        noted = Mark(os.dup(file.fileno()))
        value = noted.read()
        noted.close()
    assert value is not None
    return value.applied


@pytest.mark.parametrize("lost", ["removed", "emptied", "older", "note too"])
async def test_files_that_were_not_on_the_disk_when_the_machine_stopped_come_back(tmp_path: Path, lost: str) -> None:
    root = tmp_path / "storage"
    committed_and_killed(root)
    (root / "t/a.json").unlink()
    (root / "t/b.json").write_bytes(b"" if lost == "emptied" else b'"before"')
    (root / "t/c.json").write_bytes(b'"before"')
    for name in ("b", "c"):
        long_ago(root / f"t/{name}.json")
    if lost == "note too":
        (root / ".opencode-core/applied").write_bytes(b"\0" * 10)
    else:
        note(root, boot=b"an earlier start")

    storage = await open_store(url(root))
    read = await found(storage)
    right = await storage.check()
    await storage.aclose()

    assert read == AFTER
    assert right == []


async def test_what_the_first_generation_wrote_after_a_killed_process_is_kept(tmp_path: Path) -> None:
    root = tmp_path / "storage"
    committed_and_killed(root)
    (root / "t/a.json").write_bytes(b'"by another program"')

    storage = await open_store(url(root))
    read = await found(storage)
    await storage.aclose()

    assert read == {**AFTER, ("a",): "by another program"}


@pytest.mark.parametrize("name", ["a", "c"])
async def test_what_the_first_generation_wrote_before_the_machine_stopped_is_kept(tmp_path: Path, name: str) -> None:
    root = tmp_path / "storage"
    committed_and_killed(root)
    written = (root / ".opencode-core/journal").stat().st_mtime
    (root / f"t/{name}.json").write_bytes(b'"by another program"')
    (root / "t/b.json").write_bytes(b'"by another prog')
    for path in (root / f"t/{name}.json", root / "t/b.json"):
        os.utime(path, (written + 1, written + 1))
    note(root, boot=b"an earlier start")

    storage = await open_store(url(root))
    read = await found(storage)
    await storage.aclose()

    assert read == {**AFTER, (name,): "by another program"}


async def test_what_was_never_noted_as_applied_is_applied_whatever_is_there(tmp_path: Path) -> None:
    root = tmp_path / "storage"
    killed_while_applying(root, 0)
    written = (root / ".opencode-core/journal").stat().st_mtime
    for name in "abc":
        os.utime(root / f"t/{name}.json", (written + 1, written + 1))
    note(root, boot=b"an earlier start")

    storage = await open_store(url(root))
    read = await found(storage)
    await storage.aclose()

    assert read == AFTER


async def test_an_opening_empties_the_journal_that_a_killed_process_left(tmp_path: Path) -> None:
    root = tmp_path / "storage"
    await (await open_store(url(root))).aclose()
    empty = (root / ".opencode-core/journal").stat().st_size
    committed_and_killed(root)
    left = (root / ".opencode-core/journal").stat().st_size

    storage = await open_store(url(root))
    size = (root / ".opencode-core/journal").stat().st_size
    read = await found(storage)
    right = await storage.check()
    await storage.aclose()

    assert left > empty
    assert size == empty
    assert read == AFTER
    assert right == []


async def test_a_damaged_record_before_a_whole_one_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "storage"
    committed_and_killed(root)
    note(root, boot=b"an earlier start")
    journal = root / ".opencode-core/journal"
    content = journal.read_bytes()
    journal.write_bytes(content.replace(b'"before"', b'"BEFORE"', 1))
    before = contents(root), journal.read_bytes()

    with pytest.raises(StorageDamagedError, match="middle of the journal"):
        await open_store(url(root))

    assert (contents(root), journal.read_bytes()) == before


async def test_a_file_that_is_no_journal_is_an_error(tmp_path: Path) -> None:
    root = tmp_path / "storage"
    committed_and_killed(root)
    (root / ".opencode-core/journal").write_bytes(b"something else entirely, and long enough for a header")

    with pytest.raises(StorageDamagedError, match="journal"):
        await open_store(url(root))


async def test_the_last_one_to_close_empties_the_journal(tmp_path: Path) -> None:
    journal = tmp_path / "storage/.opencode-core/journal"
    first, second = await open_store(url(tmp_path / "storage")), await open_store(url(tmp_path / "storage"))
    empty = journal.stat().st_size

    await first.transact(lambda tx: tx.put("t", ("a",), 1))
    await first.aclose()
    assert journal.stat().st_size > empty
    await second.aclose()
    assert journal.stat().st_size == empty


async def test_a_journal_that_grew_large_is_emptied_on_the_way(tmp_path: Path) -> None:
    journal = tmp_path / "storage/.opencode-core/journal"
    storage = await open_store(url(tmp_path / "storage"))
    empty = journal.stat().st_size

    await storage.transact(lambda tx: tx.put("t", ("a",), "x" * 5_000_000))
    size = journal.stat().st_size
    kept = await storage.view(lambda tx: tx.get("t", ("a",)))
    await storage.aclose()

    assert size == empty
    assert kept == "x" * 5_000_000
