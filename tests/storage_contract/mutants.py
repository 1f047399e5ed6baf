"""Backends that are wrong, each in one way that a real one could be."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel

from plugin_sdk.storage import JSON, Key, ReadTransaction, Storage, StorageClosedError, Transaction
from plugins_builtin.storage_memory import open_store
from tests.storage_contract.wrapped import WrappedStorage, WrappedTransaction

Work = Callable[[Any], Any]


class KeepsWhatFailedWorkWrote(WrappedStorage):
    caught_by = "test_what_work_raises_comes_out_unchanged_and_nothing_is_written"

    async def transact(self, work: Work) -> Any:
        raised: list[Exception] = []

        def kept(tx: Transaction) -> Any:
            try:
                return work(tx)
            except Exception as error:
                raised.append(error)

        result = await self.inner.transact(kept)
        if raised:
            raise raised[0]
        return result


class ForgetsToUndoRemovals(WrappedStorage):
    caught_by = "test_what_work_raises_comes_out_unchanged_and_nothing_is_written"

    async def transact(self, work: Work) -> Any:
        removed: list[tuple[str, Key]] = []

        class Noting(WrappedTransaction):
            def delete(self, table: str, key: Key) -> None:
                removed.append((table, key))
                super().delete(table, key)

        try:
            return await self.inner.transact(lambda tx: work(Noting(tx)))
        except Exception:
            await self.inner.transact(lambda tx: [tx.delete(*each) for each in removed])  # type: ignore[func-returns-value]
            raise


class SwallowsErrors(WrappedStorage):
    caught_by = "test_failing_work_between_others_takes_nothing_of_them_along"

    async def transact(self, work: Work) -> Any:
        try:
            return await super().transact(work)
        except Exception:
            return None


class WrapsErrors(WrappedStorage):
    caught_by = "test_what_a_views_work_raises_comes_out_unchanged"

    async def view(self, work: Work) -> Any:
        try:
            return await super().view(work)
        except StorageClosedError:
            raise
        except Exception as error:
            raise type(error)("wrapped") from error


class Buffered(WrappedTransaction):
    """Notes what is read and written, and passes no write on."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.written: dict[tuple[str, Key], JSON] = {}

    def get(self, table: str, key: Key) -> JSON:
        return self.written[table, key] if (table, key) in self.written else super().get(table, key)

    def put(self, table: str, key: Key, document: JSON) -> None:
        self.written[table, key] = document

    def delete(self, table: str, key: Key) -> None:
        self.written[table, key] = None


def _write(tx: Transaction, table: str, key: Key, document: JSON) -> None:
    if document is None:
        tx.delete(table, key)
    else:
        tx.put(table, key, document)


class WritesOneByOne(WrappedStorage):
    caught_by = "test_a_view_never_sees_half_a_transaction"

    async def transact(self, work: Work) -> Any:
        buffered: list[Buffered] = []

        def noted(view: ReadTransaction) -> Any:
            buffered.append(Buffered(view))
            return work(buffered[0])

        result = await self.inner.view(noted)
        for (table, key), document in buffered[0].written.items():
            await self.inner.transact(lambda tx, t=table, k=key, d=document: _write(tx, t, k, d))  # type: ignore[misc]
        return result


class LosesUpdates(WrappedStorage):
    caught_by = "test_no_update_is_lost"

    async def transact(self, work: Work) -> Any:
        buffered: list[Buffered] = []

        def noted(view: ReadTransaction) -> Any:
            buffered.append(Buffered(view))
            return work(buffered[0])

        def write(tx: Transaction) -> None:
            for (table, key), document in buffered[0].written.items():
                _write(tx, table, key, document)

        result = await self.inner.view(noted)
        await self.inner.transact(write)
        return result


class SnapshotsOnly(WrappedStorage):
    """Notices when two write the same document, but not when one reads what the other writes."""

    caught_by = "test_two_transactions_that_read_each_others_documents_do_not_both_write"

    async def transact(self, work: Work) -> Any:
        while True:
            found: list[Any] = []

            def noted(view: ReadTransaction, found: list[Any] = found) -> None:
                buffered = Buffered(view)
                result = work(buffered)
                before = {place: view.get(*place) for place in buffered.written}
                found.extend((result, buffered.written, before))

            def write(tx: Transaction, found: list[Any] = found) -> bool:
                if any(tx.get(*place) != document for place, document in found[2].items()):
                    return False
                for (table, key), document in found[1].items():
                    _write(tx, table, key, document)
                return True

            await self.inner.view(noted)
            if await self.inner.transact(write):
                return found[0]


class SeesPhantoms(SnapshotsOnly):
    caught_by = "test_what_a_scan_did_not_find_is_not_there_at_the_commit"


class ReadsTheStateBefore(WrappedStorage):
    caught_by = "test_a_transaction_sees_its_own_writes"

    class transaction(WrappedTransaction):  # noqa: N801
        def __init__(self, inner: Any) -> None:
            super().__init__(inner)
            self.before = {table: dict(inner.scan(table)) for table in inner.tables()}

        def get(self, table: str, key: Key) -> JSON:
            super().get(table, key)
            return self.before.get(table, {}).get(key)


class _Sorting(WrappedTransaction):
    @staticmethod
    def by(key: Key) -> Any:
        raise NotImplementedError

    def scan(self, table: str, prefix: Key = (), **options: Any) -> Iterator[tuple[Key, JSON]]:
        found = list(super().scan(table, prefix, **options))
        return iter(sorted(found, key=lambda row: self.by(row[0]), reverse=bool(options.get("reverse"))))


class SortsNumbersAsTexts(WrappedStorage):
    caught_by = "test_a_scan_is_in_the_order_of_keys_however_they_were_written"

    class transaction(_Sorting):  # noqa: N801
        @staticmethod
        def by(key: Key) -> Any:
            return tuple(str(part) for part in key)


class SortsTextsBeforeNumbers(WrappedStorage):
    caught_by = "test_a_scan_is_in_the_order_of_keys_however_they_were_written"

    class transaction(_Sorting):  # noqa: N801
        @staticmethod
        def by(key: Key) -> Any:
            return tuple((isinstance(part, int), part) for part in key)


class SortsTextsAsUtf16(WrappedStorage):
    caught_by = "test_a_scan_is_in_the_order_of_keys_however_they_were_written"

    class transaction(_Sorting):  # noqa: N801
        @staticmethod
        def by(key: Key) -> Any:
            return tuple((0, part) if isinstance(part, int) else (1, part.encode("utf-16-be")) for part in key)


class IgnoresCase(WrappedStorage):
    caught_by = "test_keys_that_look_alike_are_different"

    class transaction(WrappedTransaction):  # noqa: N801
        def get(self, table: str, key: Key) -> JSON:
            for found, document in self.inner.scan(table):
                if _folded(found) == _folded(key):
                    return document
            return super().get(table, key)


def _folded(key: Key) -> Key:
    return tuple(part.casefold() if isinstance(part, str) else part for part in key)


class IgnoresAfterInReverse(WrappedStorage):
    caught_by = "test_a_scan_answers_to_every_prefix_start_limit_and_direction"

    class transaction(WrappedTransaction):  # noqa: N801
        def scan(self, table: str, prefix: Key = (), **options: Any) -> Iterator[tuple[Key, JSON]]:
            if options.get("reverse"):
                options["after"] = None
            return super().scan(table, prefix, **options)


class IncludesWhereItStarts(WrappedStorage):
    caught_by = "test_a_scan_answers_to_every_prefix_start_limit_and_direction"

    class transaction(WrappedTransaction):  # noqa: N801
        def scan(self, table: str, prefix: Key = (), **options: Any) -> Iterator[tuple[Key, JSON]]:
            rows = super().scan(table, prefix, **options)
            after: Key | None = options.get("after")
            if after is None or options.get("limit") is not None:
                return rows
            document = self.inner.get(table, after)
            return rows if document is None else iter([(after, document), *rows])


class TakesNoLimitForZero(WrappedStorage):
    caught_by = "test_a_scan_answers_to_every_prefix_start_limit_and_direction"

    class transaction(WrappedTransaction):  # noqa: N801
        def scan(self, table: str, prefix: Key = (), **options: Any) -> Iterator[tuple[Key, JSON]]:
            options["limit"] = options.get("limit") or None
            return super().scan(table, prefix, **options)


class TakesPrefixesOfTexts(WrappedStorage):
    caught_by = "test_a_scan_answers_to_every_prefix_start_limit_and_direction"

    class transaction(WrappedTransaction):  # noqa: N801
        def scan(self, table: str, prefix: Key = (), **options: Any) -> Iterator[tuple[Key, JSON]]:
            if not prefix or not isinstance(prefix[-1], str) or options.get("limit") is not None:
                return super().scan(table, prefix, **options)
            rows = super().scan(table, prefix[:-1], **options)
            at, start = len(prefix) - 1, prefix[-1]
            return (row for row in rows if len(row[0]) > at and str(row[0][at]).startswith(start))


class ScansWhatIsThereNow(WrappedStorage):
    caught_by = "test_a_scan_yields_what_was_there_when_it_was_called"

    class transaction(WrappedTransaction):  # noqa: N801
        def scan(self, table: str, prefix: Key = (), **options: Any) -> Iterator[tuple[Key, JSON]]:
            limit = options.pop("limit", None)
            while limit is None or limit > 0:
                row = next(self.inner.scan(table, prefix, limit=1, **options), None)
                if row is None:
                    return
                yield row
                options["after"] = row[0]
                limit = None if limit is None else limit - 1


class SharesDocuments(WrappedStorage):
    caught_by = "test_changing_a_document_that_was_written_changes_nothing"

    class transaction(WrappedTransaction):  # noqa: N801
        def __init__(self, inner: Any) -> None:
            super().__init__(inner)
            self.held: dict[tuple[str, Key], JSON] = {}

        def put(self, table: str, key: Key, document: JSON) -> None:
            super().put(table, key, document)
            self.held[table, key] = document

        def get(self, table: str, key: Key) -> JSON:
            return self.held.get((table, key), super().get(table, key))


class SharesWhatIsRead(WrappedStorage):
    caught_by = "test_changing_a_document_that_was_read_changes_nothing"

    class transaction(WrappedTransaction):  # noqa: N801
        def __init__(self, inner: Any) -> None:
            super().__init__(inner)
            self.read: dict[tuple[str, Key], JSON] = {}

        def get(self, table: str, key: Key) -> JSON:
            return self.read.setdefault((table, key), super().get(table, key))


class _Changing(WrappedTransaction):
    @staticmethod
    def changed(document: Any) -> Any:
        raise NotImplementedError

    def put(self, table: str, key: Key, document: JSON) -> None:
        super().put(table, key, document)
        super().put(table, key, self.changed(document))


class SortsNames(WrappedStorage):
    caught_by = "test_a_document_is_read_as_it_was_written"

    class transaction(_Changing):  # noqa: N801
        @staticmethod
        def changed(document: Any) -> Any:
            return json.loads(json.dumps(document, sort_keys=True))


class LosesLoneSurrogates(WrappedStorage):
    caught_by = "test_a_document_is_read_in_its_transaction_as_it_was_written"

    class transaction(_Changing):  # noqa: N801
        @staticmethod
        def changed(document: Any) -> Any:
            return json.loads(json.dumps(document, ensure_ascii=False).encode(errors="replace"))


class MakesNumbersFloats(WrappedStorage):
    caught_by = "test_a_document_is_read_as_it_was_written"

    class transaction(_Changing):  # noqa: N801
        @staticmethod
        def changed(document: Any) -> Any:
            return json.loads(json.dumps(document), parse_int=float)


class TakesNullForNothing(WrappedStorage):
    caught_by = "test_null_and_what_is_not_json_is_refused_and_nothing_is_written"

    class transaction(WrappedTransaction):  # noqa: N801
        def put(self, table: str, key: Key, document: JSON) -> None:
            _write(self.inner, table, key, document)


class TakesTrueForOne(WrappedStorage):
    caught_by = "test_a_bad_key_is_refused_and_nothing_is_written"

    class transaction(WrappedTransaction):  # noqa: N801
        def get(self, table: str, key: Key) -> JSON:
            return super().get(table, tuple(int(part) if isinstance(part, bool) else part for part in key))


class TakesAnyTable(WrappedStorage):
    caught_by = "test_a_bad_table_is_refused_and_nothing_is_written"

    class transaction(WrappedTransaction):  # noqa: N801
        def get(self, table: str, key: Key) -> JSON:
            return super().get("a" if table == "A" else table, key)


class ListsEmptyTables(WrappedStorage):
    caught_by = "test_a_table_from_which_everything_was_removed_is_not_listed"

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        names: set[str] = set()

        class Remembering(WrappedTransaction):
            def tables(self) -> list[str]:
                names.update(self.inner.tables())
                return sorted(names)

        self.transaction = Remembering


class LetsViewsWrite(WrappedStorage):
    caught_by = "test_a_view_cannot_write"

    async def view(self, work: Work) -> Any:
        return await self.inner.transact(work)


class LivesOn(WrappedStorage):
    """Its transactions can be read after their end."""

    caught_by = "test_a_transaction_cannot_be_used_after_its_end"

    class transaction(WrappedTransaction):  # noqa: N801
        def tables(self) -> list[str]:
            return []


class ReturnsBeforeItWrote(WrappedStorage):
    caught_by = "test_a_view_that_starts_after_a_transaction_returned_sees_its_result"

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.waiting: list[Work] = []

    async def transact(self, work: Work) -> Any:
        late, self.waiting = self.waiting, [work]
        for each in late:
            await self.inner.transact(each)
        return None


class CancelsWhatItWrote(WrappedStorage):
    caught_by = "test_exactly_the_calls_that_returned_have_written"

    async def transact(self, work: Work) -> Any:
        result = await super().transact(work)
        await anyio.lowlevel.checkpoint()
        return result


class TakesNoNoticeOfCancellation(WrappedStorage):
    caught_by = "test_a_call_that_was_cancelled_before_it_began_writes_nothing"

    async def transact(self, work: Work) -> Any:
        with anyio.CancelScope(shield=True):
            return await super().transact(work)


class BreaksWhenCancelled(WrappedStorage):
    caught_by = "test_a_view_that_was_cancelled_leaves_the_store_working"
    names_the_law = False

    async def view(self, work: Work) -> Any:
        try:
            return await super().view(work)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self.inner.aclose()
            raise


class _Silent:
    def __aiter__(self) -> _Silent:
        return self

    async def __anext__(self) -> None:
        await anyio.sleep_forever()


class NeverWakes(WrappedStorage):
    caught_by = "test_a_commit_wakes"

    def changes(self, table: str, prefix: Key = ()) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        return _entered(_Silent())


class LeavesWaitersAlone(NeverWakes):
    caught_by = "test_closing_ends_those_who_wait_for_changes"


class RegistersLate(WrappedStorage):
    """Begins to listen at each wait, not when the block is entered."""

    caught_by = "test_a_commit_wakes"

    def changes(self, table: str, prefix: Key = ()) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        return _entered(_Late(self.inner, table, prefix))


class LosesWakesWhileOthersRead(RegistersLate):
    caught_by = "test_many_commits_may_wake_once_and_none_is_lost"

    async def view(self, work: Work) -> Any:
        result = await super().view(work)
        await anyio.sleep(0.02)
        return result


class _Late(_Silent):
    def __init__(self, storage: Storage, table: str, prefix: Key) -> None:
        self.storage, self.table, self.prefix = storage, table, prefix

    async def __anext__(self) -> None:
        async with self.storage.changes(self.table, self.prefix) as wakes:
            await anext(wakes)


@asynccontextmanager
async def _entered(wakes: AsyncIterator[None]) -> AsyncIterator[AsyncIterator[None]]:
    yield wakes


class WakesForExactKeys(WrappedStorage):
    caught_by = "test_a_commit_below_the_prefix_wakes"

    def changes(self, table: str, prefix: Key = ()) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        return self.inner.changes(table, prefix and (*prefix, "only this"))


class ForgetsRemovals(WrappedStorage):
    caught_by = "test_removing_a_document_wakes"

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.silent = False

    async def transact(self, work: Work) -> Any:
        storage = self

        class Noting(WrappedTransaction):
            def delete(self, table: str, key: Key) -> None:
                super().delete(table, key)
                storage.silent = True

        return await self.inner.transact(lambda tx: work(Noting(tx)))

    def changes(self, table: str, prefix: Key = ()) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        return _entered(_Choosy(self, table, prefix))


class _Choosy(_Late):
    storage: ForgetsRemovals

    async def __anext__(self) -> None:
        if self.storage.silent:
            await anyio.sleep_forever()


class WorksAfterClosing(WrappedStorage):
    caught_by = "test_what_comes_after_closing_is_refused"

    async def aclose(self) -> None:
        """Closes nothing."""


class CannotBeClosedTwice(WrappedStorage):
    caught_by = "test_closing_twice_is_harmless"
    names_the_law = False

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.closed = False

    async def aclose(self) -> None:
        if self.closed:
            raise StorageClosedError
        self.closed = True
        await super().aclose()


class DropsTheQueue(WrappedStorage):
    caught_by = "test_calls_that_were_made_before_closing_finish"

    async def transact(self, work: Work) -> Any:
        await anyio.sleep(0.05)
        return await super().transact(work)


class MakesWhatShouldNotBeMade(WrappedStorage):
    caught_by = "test_a_store_that_is_not_there_is_not_made_unless_asked"

    @classmethod
    async def opened(cls, url: str, *, create: bool = True, migrate: bool = True) -> Storage:
        return cls(await open_store(url))


class FindsFault(WrappedStorage):
    caught_by = "test_a_healthy_store_has_nothing_wrong"

    async def check(self) -> list[str]:
        return ["Something is wrong."]
