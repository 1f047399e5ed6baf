"""Opens a PostgreSQL store, or says exactly why not. Leaves what it refuses as it was."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial

from plugin_sdk.storage import Errand, EventLoop, Storage, Wakes
from plugins_builtin.storage_postgres.address import Address, read_address
from plugins_builtin.storage_postgres.checking import check_store, facts_of
from plugins_builtin.storage_postgres.connecting import dial, dial_and_join, join
from plugins_builtin.storage_postgres.connection import Connection
from plugins_builtin.storage_postgres.jobs import Jobs, started_views
from plugins_builtin.storage_postgres.layout import MIGRATIONS, Migration, prepare
from plugins_builtin.storage_postgres.listener import Listener
from plugins_builtin.storage_postgres.marker import Marker, sweep
from plugins_builtin.storage_postgres.pool import Pool
from plugins_builtin.storage_postgres.running import Runner
from plugins_builtin.storage_postgres.statements import Statements, statements_for
from plugins_builtin.storage_postgres.store import PostgresStorage
from plugins_builtin.storage_postgres.writes import Write


async def open_store(
    url: str, *, create: bool = True, migrate: bool = True, migrations: Sequence[Migration] = MIGRATIONS
) -> Storage:
    """Returns the open store.

    Args:
        url: ``postgresql://user:password@host:port/database``; ``schema``, ``pool`` and ``timeout`` are the store's
            own switches, and all others are libpq's.
        create: Whether a store is made where there is none.
        migrate: Whether a store of an older layout is brought up to date.
        migrations: What brings it from each layout to the next.

    Raises:
        StorageUrlError: The URL is wrong.
        StorageError: The store cannot be opened, and is as it was.
    """
    address = read_address(url)
    statements = statements_for(address.schema)
    layout = 1 + len(migrations)
    loop = EventLoop()

    def opened() -> tuple[Connection, int | None]:
        connection = dial(address)
        try:
            older = prepare(connection, address, statements, create=create, migrate=migrate, migrations=migrations)
            join(connection, address, statements, layout=layout)
            sweep(connection, statements)
        except BaseException:
            connection.close()
            raise
        return connection, older

    connection, older = await Errand(opened, loop).wait()
    return _assembled(address, statements, loop, connection, layout=layout, migrated_from=older)


def _assembled(
    address: Address,
    statements: Statements,
    loop: EventLoop,
    connection: Connection,
    *,
    layout: int,
    migrated_from: int | None,
) -> PostgresStorage:
    wakes, origin = Wakes(), secrets.token_hex(8)

    def announce(written: Sequence[Write] | None) -> None:
        loop.soon(wakes.wake_all if written is None else partial(wakes.wake, written))

    pool = Pool(partial(dial_and_join, address, statements, layout=layout))
    pool.give_back(connection)
    marker = Marker(address, statements, origin)
    runner = Runner(address, statements, pool, origin, marker)
    return PostgresStorage(
        loop=loop,
        wakes=wakes,
        jobs=Jobs(runner, loop, announce, started_views(address.pool - 1)),
        pool=pool,
        marker=marker,
        listener=Listener(address, statements.channel, origin, loop, announce),
        check=partial(check_store, pool, address, statements),
        facts=partial(facts_of, pool, address, statements, layout=layout, migrated_from=migrated_from),
    )
