"""What the file looks like inside, version by version. Opens no file, and decides nothing about when to migrate."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeAlias

import attrs

APPLICATION_ID = 0x4F43_4F52
"""Stands in the file's header and says that the file is ours: ``OCOR``."""

Step: TypeAlias = Callable[[sqlite3.Connection], None]
"""Brings a database from one version to the next, inside a transaction that it neither begins nor ends."""

DOCUMENTS = """
CREATE TABLE documents (
    collection TEXT NOT NULL,
    key BLOB NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (collection, key)
) WITHOUT ROWID
"""


@attrs.frozen(kw_only=True)
class Layout:
    """The steps from nothing to the newest version; the first makes version 1."""

    steps: tuple[Step, ...]

    @property
    def version(self) -> int:
        """The newest version."""
        return len(self.steps)

    def build(self, connection: sqlite3.Connection) -> None:
        """Fills an empty database; the caller commits."""
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self.advance(connection, found=0)

    def advance(self, connection: sqlite3.Connection, *, found: int) -> None:
        """Runs the steps that an older database lacks; the caller commits."""
        for step in self.steps[found:]:
            step(connection)
        connection.execute(f"PRAGMA user_version = {self.version}")


def create_documents(connection: sqlite3.Connection) -> None:
    """Makes version 1: one table, sorted by collection and key, whose rows are in the index itself."""
    connection.execute(DOCUMENTS)


LAYOUT = Layout(steps=(create_documents,))
