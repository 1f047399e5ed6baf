"""Says which version of the kernel's own tables a store has, and brings it up to date. Knows no backend's layout.

Two processes may open an old store at once: every step is made of transactions that look at the version first and only
add what is missing, so doing it twice does no harm, and no lease is needed that a killed process would leave behind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

import attrs

from opencode_core.errors import StorageDamagedError, StorageForeignError, StorageVersionError
from opencode_core.model import rows as tables
from opencode_core.model.json import JSON
from opencode_core.model.storage import Key
from opencode_core.ports.storage import ReadTransaction, Storage, Transaction
from opencode_core.storage.adopting import Adopted, adopt
from opencode_core.storage.tables import EVENT_IDS, EVENTS, HEADS, STORE

VERSION: Final = 1
SCHEMA_KEY: Final[Key] = ("schema",)
COPY_KEY: Final[Key] = ("copy",)

FIRST_GENERATION: Final = frozenset(
    {"message", "part", "permission", "project", "session", "session_diff", "session_share", "share", "todo"}
)
"""The tables of a store that the first generation wrote."""

OWN: Final = frozenset(
    {
        *(EVENTS, EVENT_IDS, HEADS, STORE),
        *(tables.SESSIONS, tables.MESSAGES, tables.PARTS, tables.DIFFS, tables.SHARES),
        *(tables.SESSION_PLACES, tables.SESSION_LISTS, tables.MESSAGE_PLACES, tables.MESSAGE_ORDER),
        *(tables.SYSTEM_ORDER, tables.PART_ORDER, tables.FRAGMENTS, tables.INBOX, tables.EPOCHS),
        *(tables.SNAPSHOTS, tables.VISITED, tables.CURSORS),
    }
)
"""The tables of the kernel."""

Step: TypeAlias = Callable[[Storage], Awaitable[Adopted]]
"""Brings a store from one version to the next, but for the number itself."""


@attrs.frozen(kw_only=True)
class Prepared:
    """What was found, and what was done about it.

    Attributes:
        found: The version that the store had; None when it was empty.
        adopted: How many sessions of the first generation were put into the lists.
        unreadable: Which ones could not be, one sentence each.
    """

    found: int | None
    adopted: int = 0
    unreadable: tuple[str, ...] = ()


async def prepare(storage: Storage, *, create: bool = True, migrate: bool = True) -> Prepared:
    """Makes sure that what is in a store is understood here, and brings it up to date.

    Args:
        storage: A store that was just opened.
        create: Whether an empty store is made ours.
        migrate: Whether an older one is brought up to date.

    Raises:
        StorageVersionError: It is newer, or older and should not be migrated; nothing was changed.
        StorageForeignError: Somebody else's documents are in it; nothing was changed.
        StorageDamagedError: It is a copy that was never finished, or its version is no number.
        StorageError: The store failed.
    """
    found = await storage.view(version_in)
    if found is None:
        if create:
            await storage.transact(_sign)
        return Prepared(found=None)
    if found < VERSION and not migrate:
        place = (await storage.facts()).place
        raise StorageVersionError(
            f"The store '{place}' has version {found} of the session tables, and today's is {VERSION}.",
            "Run 'opencode-core storage migrate' with its URL.",
            found=found,
            known=VERSION,
        )
    return await _brought_up(storage, found)


def version_in(rows: ReadTransaction) -> int | None:
    """Returns the version of a store; 0 for one of the first generation, None for an empty one.

    Raises:
        StorageVersionError: It is newer than what is known here.
        StorageForeignError: Somebody else's documents are in it.
        StorageDamagedError: It is a copy that was never finished, or its version is no number.
    """
    if (marker := rows.get(STORE, COPY_KEY)) is not None:
        raise _unfinished(marker)
    document = rows.get(STORE, SCHEMA_KEY)
    if document is not None:
        return _number(document)
    found = set(rows.tables())
    if not found:
        return None
    if tables.SESSIONS not in found and not found <= FIRST_GENERATION | OWN:
        raise StorageForeignError(
            "There are documents in the store, but no sessions: it belongs to another program.",
            "Name an empty store, or the one you meant.",
        )
    return 0


async def _brought_up(storage: Storage, found: int) -> Prepared:
    adopted, unreadable = 0, list[str]()
    for version in range(found, VERSION):
        done = await _STEPS[version](storage)
        adopted += done.sessions
        unreadable += done.unreadable
        await storage.transact(_advance(version))
    return Prepared(found=found, adopted=adopted, unreadable=tuple(unreadable))


def _sign(rows: Transaction) -> None:
    if version_in(rows) is None:  # else somebody else was first
        rows.put(STORE, SCHEMA_KEY, {"version": VERSION})


def _advance(version: int) -> Callable[[Transaction], None]:
    def advance(rows: Transaction) -> None:
        if version_in(rows) == version:
            rows.put(STORE, SCHEMA_KEY, {"version": version + 1})

    return advance


async def _list_first_generation(storage: Storage) -> Adopted:
    return await adopt(storage, may_go_on=lambda rows: version_in(rows) == 0)


_STEPS: Final[tuple[Step, ...]] = (_list_first_generation,)


def _number(document: JSON) -> int:
    version = document.get("version") if isinstance(document, Mapping) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise StorageDamagedError(
            "The store does not say which version of the session tables it has.", "Restore it from a backup."
        )
    if version > VERSION:
        raise StorageVersionError(
            f"The store has version {version} of the session tables, and the newest one known here is {VERSION}.",
            "Use a newer program.",
            found=version,
            known=VERSION,
        )
    return version


def _unfinished(marker: JSON) -> StorageDamagedError:
    source = marker.get("from") if isinstance(marker, Mapping) else None
    named = f" of '{source}'" if isinstance(source, str) else ""
    return StorageDamagedError(
        f"The store is a copy{named} that was never finished.",
        "Run 'opencode-core storage copy' again, which begins it anew, or remove the store.",
    )
