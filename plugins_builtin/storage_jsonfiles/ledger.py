"""Makes changes to many files atomic and durable, by writing them to the journal first. Runs nobody's work.

A commit is durable when its record is in the journal and the disk says so; only then are the files changed. What fails
after that moment, because there is no space left for a file or the process is killed, undoes nothing: whoever takes a
lock next applies the record first. Until that succeeds, readers see the record laid over the files, and writers get the
error that keeps it from being applied.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

import attrs

from plugin_sdk.storage import StorageError, StorageFullError, StorageReadOnlyError
from plugins_builtin.storage_jsonfiles.changes import Change, Overlay, flattened, lay_over
from plugins_builtin.storage_jsonfiles.durable import UNKNOWN_BOOT, boot
from plugins_builtin.storage_jsonfiles.failures import translated
from plugins_builtin.storage_jsonfiles.files import BOOKS, Files
from plugins_builtin.storage_jsonfiles.journal import START, Journal
from plugins_builtin.storage_jsonfiles.locks import Locks
from plugins_builtin.storage_jsonfiles.mark import Mark, Note
from plugins_builtin.storage_jsonfiles.text import from_bytes

LARGEST_JOURNAL = 4 << 20


@attrs.define(eq=False, repr=False, kw_only=True)
class Ledger:
    """The files of a store together with its journal, used by many threads.

    Attributes:
        is_writable: Whether changes can be written at all.
        is_bare: Whether the journal, the mark and the locks are in a private place, because the store has none.
    """

    files: Files
    journal: Journal
    mark: Mark
    locks: Locks
    is_writable: bool
    is_bare: bool
    _cleanup: ExitStack = attrs.field(factory=ExitStack)
    _boot: bytes = attrs.field(init=False, factory=boot)

    @contextmanager
    def reading(self) -> Iterator[Overlay]:
        """Keeps writers out, and yields what is committed but not in the files, which is nearly always nothing.

        Raises:
            StorageBusyError: A writer held the store for too long.
            StorageError: The store cannot be read.
        """
        can_recover = self.is_writable
        while True:
            with self.locks.shared():
                if self._is_settled() and (self.is_writable or self._is_of_this_start()):
                    yield {}
                    return
                if not can_recover:
                    yield self._unapplied()
                    return
            try:
                with self.writing():
                    pass
            except (StorageFullError, StorageReadOnlyError):
                can_recover = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keeps everybody else out, with everything that was committed in the files.

        Raises:
            StorageBusyError: Others held the store for too long.
            StorageReadOnlyError: The store cannot be written.
            StorageError: What was committed before cannot be applied.
        """
        if not self.is_writable:
            raise StorageReadOnlyError(
                f"The store '{self.files.root}' can only be read.", "Change the permissions, or use another folder."
            )
        with self.locks.exclusive():
            self.settle()
            yield

    def commit(self, changes: Sequence[Change]) -> int:
        """Returns when the changes are durable, with the number of the commit; only inside `writing`.

        Raises:
            StorageError: Nothing was written, unless the error says that this is unknown.
        """
        with translated(self.journal.place):
            generation = self.generation() + 1
            end = self.journal.append(changes)
        with suppress(Exception):  # it is durable: whoever comes next finishes what failed here
            self._apply(changes)
            self._note(end, generation)
            if end > LARGEST_JOURNAL:
                self.checkpoint()
        return generation

    def settle(self) -> None:
        """Sees to it that everything committed is in the files; only inside `writing`.

        Raises:
            StorageError: The files cannot be written; what was committed stays in the journal.
        """
        if not self._is_settled():
            self._recover()

    def checkpoint(self) -> None:
        """Makes sure that all files are on the disk, and empties the journal; only inside `writing`.

        Raises:
            StorageError: The files cannot be made safe; the journal keeps what is in it.
        """
        changes, _ = self.journal.read(START)
        self.files.sync({change.path for change in changes})
        with translated(self.journal.place):
            self.journal.begin()
            self._note(START, self.generation())

    def generation(self) -> int:
        """Returns the number of the last commit.

        Raises:
            StorageError: It cannot be read.
        """
        with translated(self.journal.place):
            note = self.mark.read()
        return note.generation if note is not None else time.time_ns()

    def trace(self) -> tuple[int, int]:
        """Returns two numbers of which one changes with each commit, also of one whose process died.

        Raises:
            StorageError: They cannot be read.
        """
        return self.generation(), self.journal.size()

    def recover(self) -> None:
        """Sees to it that what was committed is in the files, also what a stopped machine may have lost there.

        Raises:
            StorageError: The store cannot be read or written.
        """
        if not (self.is_writable or self.is_bare) or (self._is_settled() and self._is_of_this_start()):
            return
        with self.locks.exclusive():
            if not (self._is_settled() and self._is_of_this_start()):
                self._recover()

    def tidy(self) -> None:
        """Empties a journal that a killed process left, if nobody else uses the store; never fails.

        What is not in the journal cannot be applied once more over what another program wrote since.
        """
        with suppress(StorageError, OSError):
            if self.is_writable and self.journal.size() > START and self.locks.is_alone():
                with self.writing():
                    self.checkpoint()

    def close(self) -> None:
        """Lets every file go; the last one to use the store empties the journal."""
        with self._cleanup:
            for opened in (self.files, self.locks, self.mark, self.journal):
                self._cleanup.callback(opened.close)
            with suppress(StorageError, OSError):
                if self.is_writable and self.locks.is_last() and self.journal.size() > START:
                    with self.writing():
                        self.checkpoint()

    def _is_settled(self) -> bool:
        with translated(self.journal.place):
            note = self.mark.read()
            return note is not None and note.applied == self.journal.size()

    def _is_of_this_start(self) -> bool:
        note = self.mark.read()
        return note is not None and note.boot == self._boot != UNKNOWN_BOOT

    def _recover(self) -> None:
        with translated(self.journal.place):
            if not self.journal.run():
                self.journal.begin()
                self.files.sync([(BOOKS, "journal")])
            pending, end = self._pending()
            if end < self.journal.size():
                self.journal.cut(end)
            is_of_this_start = self._is_of_this_start()
            self._apply(list(flattened(pending)))
            self._note(end, self.generation() + 1)
            if not is_of_this_start:
                self.checkpoint()

    def _unapplied(self) -> Overlay:
        with translated(self.journal.place):
            return self._pending()[0] if self.journal.run() else {}

    def _pending(self) -> tuple[Overlay, int]:
        """Returns what the files may lack, and where the last whole record ends."""
        later, end = self.journal.read(self._applied())
        pending = lay_over({}, later)
        if self._is_of_this_start():
            return pending, end
        # What was applied may have been lost when the machine stopped, or replaced by another program since.
        written = self.journal.written_at()
        applied = lay_over({}, self.journal.read(START)[0])
        lost = [change for change in flattened(applied) if not self._is_replaced(change, written)]
        return lay_over(lay_over({}, lost), flattened(pending)), end

    def _applied(self) -> int:
        note = self.mark.read()
        is_known = note is not None and note.run == self.journal.run() and note.applied <= self.journal.size()
        return note.applied if note is not None and is_known else START

    def _is_replaced(self, change: Change, journal_written_at: int) -> bool:
        written_at = self.files.written_at(change.path)
        if written_at is None or written_at <= journal_written_at:
            return False
        try:
            from_bytes(self.files.read(change.path) or b"")
        except ValueError:  # half written when the machine stopped
            return False
        return True

    def _apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.content is None:
                self.files.remove(change.path)
            else:
                self.files.write(change.path, change.content)

    def _note(self, applied: int, generation: int) -> None:
        self.mark.write(Note(generation=generation, applied=applied, run=self.journal.run(), boot=self._boot))
