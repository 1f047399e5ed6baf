"""Keeps the commits that may not be safe in the files yet. Applies none, takes no lock.

The journal begins with a header that names its run, a random number that is new each time the journal is emptied, so
that a record left over from an earlier run is never taken for one of this.
"""

from __future__ import annotations

import os
import secrets
import struct
from collections.abc import Sequence
from contextlib import suppress

import attrs

from plugin_sdk.storage import StorageDamagedError, StorageUnavailableError, StorageVersionError
from plugins_builtin.storage_jsonfiles.changes import Change
from plugins_builtin.storage_jsonfiles.durable import sync_content
from plugins_builtin.storage_jsonfiles.failures import storage_error
from plugins_builtin.storage_jsonfiles.files import write_all
from plugins_builtin.storage_jsonfiles.records import changes_in, has_record_behind, record_of

_HEADER = struct.Struct(">22sH16s")
_MAGIC = b"opencode-core journal\n"
_VERSION = 1

START = _HEADER.size


@attrs.define(eq=False, repr=False)
class Journal:
    """An open journal."""

    place: str
    _descriptor: int

    def close(self) -> None:
        """Lets the file go; once."""
        os.close(self._descriptor)

    def size(self) -> int:
        """Returns how long it is."""
        return os.fstat(self._descriptor).st_size

    def written_at(self) -> int:
        """Returns when it was written last, in nanoseconds."""
        return os.fstat(self._descriptor).st_mtime_ns

    def run(self) -> bytes:
        """Returns the number of this run; empty when the journal was never begun.

        Raises:
            StorageDamagedError: This is not a journal.
            StorageVersionError: It is of a newer version.
        """
        header = os.pread(self._descriptor, _HEADER.size, 0)
        if len(header) < _HEADER.size:
            return b""
        magic, version, run = _HEADER.unpack(header)
        if magic != _MAGIC:
            raise StorageDamagedError(f"The journal '{self.place}' is damaged.", "Restore the store from a backup.")
        if version > _VERSION:
            raise StorageVersionError(
                f"The journal '{self.place}' is of version {version}.",
                "Use a newer program.",
                found=version,
                known=_VERSION,
            )
        return bytes(run)

    def read(self, start: int) -> tuple[list[Change], int]:
        """Returns the changes from an offset on, and where the last whole record ends.

        Raises:
            StorageDamagedError: A record before the last one is damaged.
        """
        run, content = self.run(), self._content()
        changes, end = changes_in(content, run=run, start=start)
        if has_record_behind(content, run=run, at=end):
            raise StorageDamagedError(
                f"A record in the middle of the journal '{self.place}' is damaged.",
                "Restore the store from a backup, or move the journal away to lose what is in it.",
            )
        return changes, end

    def append(self, changes: Sequence[Change]) -> int:
        """Returns when the changes are on the disk, with the offset behind them.

        Raises:
            StorageFullError: There is no space; nothing was written.
            StorageError: The disk failed; nothing was written, unless the error says that this is unknown.
        """
        at = self.size()
        record = record_of(changes, run=self.run(), at=at)
        try:
            write_all(self._descriptor, record, at=at)
            sync_content(self._descriptor)
        except OSError as error:
            self._take_back(at, error)
            raise storage_error(error, self.place) from error
        return at + len(record)

    def cut(self, end: int) -> None:
        """Drops a torn record.

        Raises:
            OSError: It cannot be dropped.
        """
        os.ftruncate(self._descriptor, end)

    def begin(self) -> None:
        """Empties the journal and begins a new run; everything in it must be safe in the files.

        Raises:
            OSError: It cannot be written.
        """
        # Shortened first: a note about the old length then shows that this was interrupted.
        os.ftruncate(self._descriptor, min(START, self.size()))
        write_all(self._descriptor, _HEADER.pack(_MAGIC, _VERSION, secrets.token_bytes(16)), at=0)
        os.fsync(self._descriptor)

    def _content(self) -> bytes:
        size, pieces, at = self.size(), [], 0
        while at < size and (piece := os.pread(self._descriptor, size - at, at)):
            pieces.append(piece)
            at += len(piece)
        return b"".join(pieces)

    def _take_back(self, at: int, error: OSError) -> None:
        try:
            os.ftruncate(self._descriptor, at)
            sync_content(self._descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, at)
            raise StorageUnavailableError(
                f"The journal '{self.place}' could not be written ({error.strerror}), nor what was written taken back.",
                "Check the disk, then look whether the change is there.",
                outcome_unknown=True,
            ) from error
