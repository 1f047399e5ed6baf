"""Opens a store, or says exactly why not. Changes nothing before it is clear that the store can be opened."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

import anyio.lowlevel
import attrs

from plugin_sdk.storage import (
    Errand,
    EventLoop,
    Storage,
    StorageFacts,
    StorageMissingError,
    StorageUrlError,
    StorageVersionError,
    path_of,
    shown,
    switches_of,
)
from plugins_builtin.storage_jsonfiles.access import Access
from plugins_builtin.storage_jsonfiles.backup import back_up, forget_backup
from plugins_builtin.storage_jsonfiles.books import open_ledger
from plugins_builtin.storage_jsonfiles.changes import new_version
from plugins_builtin.storage_jsonfiles.durable import sync_folder
from plugins_builtin.storage_jsonfiles.failures import translated
from plugins_builtin.storage_jsonfiles.inspection import CURRENT, Found, inspect
from plugins_builtin.storage_jsonfiles.ledger import Ledger
from plugins_builtin.storage_jsonfiles.migrations import migrated
from plugins_builtin.storage_jsonfiles.store import JsonFiles


async def open_store(url: str, *, create: bool = True, migrate: bool = True) -> Storage:
    """Opens the store in a folder, such as ``jsonfiles:///home/me/opencode/storage``.

    The switch ``timeout`` says how many seconds to wait for others who use the store.

    Raises:
        StorageUrlError: The URL names no folder, or a switch is wrong.
        StorageMissingError: There is no store, and none should be made.
        StorageVersionError: It is newer than what is known here, or older and not to be migrated.
        StorageForeignError: There is something else in the folder.
        StorageDamagedError: The store is broken.
        StorageError: It cannot be reached, read or written.
    """
    root = path_of(url)
    timeout = _timeout(url)

    loop = EventLoop()

    def opened() -> tuple[Ledger, StorageFacts]:
        return _opened(root, timeout, create=create, migrate=migrate)

    await anyio.lowlevel.checkpoint_if_cancelled()
    ledger, facts = await Errand(opened, loop).wait()
    try:
        await anyio.lowlevel.checkpoint()  # where a cancellation comes that was held back until the thread was done
    except BaseException:
        await Errand(ledger.close, loop).wait()
        raise
    return JsonFiles(Access(ledger), facts)


def _timeout(url: str) -> float:
    text = switches_of(url, known={"timeout": "30"})["timeout"]
    try:
        timeout = float(text)
    except ValueError:
        timeout = math.nan
    if not 0 <= timeout < math.inf:
        raise StorageUrlError(
            f"The switch 'timeout' of the storage URL '{shown(url)}' is not a number of seconds.",
            "Write it like 'timeout=30'.",
        )
    return timeout


def _opened(root: Path, timeout: float, *, create: bool, migrate: bool) -> tuple[Ledger, StorageFacts]:
    with translated(str(root)):
        root = Path(os.path.realpath(root))
    _refuse(root, inspect(root), create=create, migrate=migrate)
    is_to_change = create or migrate  # whoever only looks leaves no trace
    if is_to_change:
        _make_folder(root)
    ledger = open_ledger(root, timeout=timeout, make=is_to_change)
    try:
        facts = _made_current(ledger, create=create, migrate=migrate)
        if is_to_change:
            ledger.tidy()
    except BaseException:
        ledger.close()
        raise
    return ledger, facts


def _make_folder(root: Path) -> None:
    with translated(str(root)):
        os.makedirs(root, 0o700, exist_ok=True)
        with suppress(PermissionError):  # a folder above that may not be read was not made here
            sync_folder(root.parent)


def _refuse(root: Path, found: Found, *, create: bool, migrate: bool) -> None:
    if found.version is None and not create:
        raise StorageMissingError(f"There is no store in '{root}'.", "Check the path, or let one be made.")
    if found.version is not None and found.version < CURRENT and not migrate:
        raise StorageVersionError(
            f"The store '{root}' has the older layout {found.version}; today's is {CURRENT}.",
            "Migrate it with 'opencode-core storage migrate'.",
            found=found.version,
            known=CURRENT,
        )


def _made_current(ledger: Ledger, *, create: bool, migrate: bool) -> StorageFacts:
    root = ledger.files.root
    facts = StorageFacts(kind="jsonfiles", place=str(root), schema=CURRENT)
    found = inspect(root)
    if found.version == CURRENT:
        return facts
    _refuse(root, found, create=create, migrate=migrate)
    with ledger.writing():
        found = inspect(root)  # again, because another process may have been first
        _refuse(root, found, create=create, migrate=migrate)
        if found.version is None:
            ledger.commit([new_version(CURRENT)])
            ledger.settle()
        elif found.version < CURRENT:
            facts = _migrated(ledger, found.version, facts, has_documents=found.has_documents)
        ledger.checkpoint()
    return facts


def _migrated(ledger: Ledger, version: int, facts: StorageFacts, *, has_documents: bool) -> StorageFacts:
    root, backup = ledger.files.root, None
    for changes in migrated(ledger.files, version):
        if has_documents and backup is None:  # not before the first step is known to succeed
            backup = back_up(root, version)
        ledger.commit(changes)
        ledger.settle()  # the next changes are made from the files
    forget_backup(root)
    return attrs.evolve(facts, backup=None if backup is None else str(backup), migrated_from=version)
