"""What children do that goes wrong: fill a disk, write where they may not, hold a lock. Each says what came of it."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio

from opencode_core.errors import StorageError
from tests.faults.jails import heed_permissions, mount_small_disk
from tests.faults.ledger import say
from tests.faults.stores import opened
from tests.faults.witness import Witness

LARGE = "x" * 60_000
ROOM = 500_000


def fill_a_disk(url: str, folder: str) -> None:
    """Appends until nothing fits any more, makes room, and appends again."""
    if mount_small_disk(folder, "4m"):
        filler = Path(folder) / "filler"
        filler.write_bytes(b"x" * ROOM)
        anyio.run(_fill, url, filler.unlink)
    else:
        say("unable")


async def _fill(url: str, make_room: Callable[[], None]) -> None:
    async with opened(url) as sessions:
        witness = await Witness.of(sessions)
        refused = 0
        while refused < 3:  # it is refused again and again, and does no harm
            try:
                await witness.append(LARGE)
            except StorageError as error:
                say("refused", type(error).__name__)
                refused += 1
        make_room()
        await witness.append("there is room again")
        say("objections", list(await witness.objections()))
    async with opened(url) as sessions:
        again = await Witness.of(sessions)
        say("kept", again.acknowledged == witness.acknowledged)


def write_where_one_may_not(url: str, folder: str) -> None:
    """Appends where everything may only be read, makes it writable, and appends again."""
    heed_permissions()
    anyio.run(_write, url, Path(folder))


async def _write(url: str, folder: Path) -> None:
    modes = {path: path.stat().st_mode for path in _everything_in(folder)}
    for path, mode in modes.items():
        path.chmod(stat.S_IMODE(mode) & ~0o222)
    try:
        async with opened(url) as sessions:
            await Witness(sessions, "ses_witness").append("not here")
    except StorageError as error:
        say("refused", type(error).__name__)
    for path, mode in modes.items():
        path.chmod(stat.S_IMODE(mode))
    async with opened(url) as sessions:
        witness = await Witness.of(sessions)
        await witness.append("now it may be written")
        say("objections", list(await witness.objections()))
        say("kept", len(witness.acknowledged))


def _everything_in(folder: Path) -> Iterator[Path]:
    yield folder
    yield from folder.rglob("*")


def lock_a_database(path: str) -> None:
    """Holds the write lock of an SQLite file until it is killed."""
    connection = sqlite3.connect(path)
    connection.execute("BEGIN EXCLUSIVE")
    say("held")
    signal.pause()


def lock_a_file(path: str) -> None:
    """Holds a file lock until it is killed."""
    fcntl.flock(os.open(path, os.O_RDWR), fcntl.LOCK_EX)
    say("held")
    signal.pause()
