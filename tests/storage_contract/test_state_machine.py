"""Any sequence of operations gives the same answers on every backend as on a dictionary."""

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio.from_thread
import pytest
from anyio.from_thread import BlockingPortal
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from plugin_sdk.storage import JSON, Key, Storage, StorageFactory
from plugin_sdk.testing.storage.keys import scanned
from plugins_builtin import storage_jsonfiles, storage_memory, storage_postgres, storage_sqlite
from tests.storage_contract import mutants
from tests.storage_contract.operations import (
    EVERYTHING,
    Model,
    ModelTransaction,
    Operation,
    Scan,
    puts,
    reads,
    tables,
    transactions,
)
from tests.storage_contract.wrapped import WrappedStorage

# How many sequences and how long: a glance while one works, a look in CI, minutes in `make faults`.
EXAMPLES, STEPS = {"ci": (25, 20), "faults": (300, 40)}.get(os.environ.get("HYPOTHESIS_PROFILE", ""), (10, 12))


class Refusal(Exception):
    """What failing work raises."""


class StoreMachine(RuleBasedStateMachine):
    """Runs every operation on a store and on the model."""

    portal: BlockingPortal
    factory: StorageFactory
    new_url: Callable[[], str]
    shared: bool
    durable: bool

    def __init__(self) -> None:
        super().__init__()
        self.url = self.new_url()
        self.model: Model = {}
        self.stores: list[Storage] = []
        self.open(create=True)

    def open(self, *, create: bool) -> None:
        async def opened() -> Storage:
            return await self.factory(self.url, create=create)

        self.stores.append(self.portal.call(opened))

    @initialize(operations=st.lists(puts, min_size=8, max_size=16))
    def fill(self, operations: list[Operation]) -> None:
        self.transact(operations, 0)

    @rule(operations=transactions, which=st.integers(0, 1))
    def transact(self, operations: list[Operation], which: int) -> None:
        copy = {table: dict(rows) for table, rows in self.model.items()}
        wanted = [operation(ModelTransaction(copy)) for operation in operations]
        found = self.portal.call(self.store(which).transact, lambda tx: [operation(tx) for operation in operations])
        assert found == wanted
        self.model = copy

    @rule(operations=transactions, which=st.integers(0, 1))
    def transact_and_fail(self, operations: list[Operation], which: int) -> None:
        copy = {table: dict(rows) for table, rows in self.model.items()}
        wanted = [operation(ModelTransaction(copy)) for operation in operations]
        refusal = Refusal()

        def work(tx: Any) -> None:
            refusal.args = tuple(operation(tx) for operation in operations)
            raise refusal

        with pytest.raises(Refusal) as caught:
            self.portal.call(self.store(which).transact, work)
        assert caught.value is refusal
        assert list(refusal.args) == wanted
        self.view_of(EVERYTHING, which)

    @rule(operations=st.lists(reads, max_size=8), which=st.integers(0, 1))
    def view(self, operations: list[Operation], which: int) -> None:
        self.view_of(operations, which)

    def view_of(self, operations: list[Operation], which: int) -> None:
        wanted = [operation(ModelTransaction(self.model)) for operation in operations]
        found = self.portal.call(self.store(which).view, lambda view: [operation(view) for operation in operations])
        assert found == wanted

    @rule(data=st.data(), reverse=st.booleans(), which=st.integers(0, 1))
    def read_page_by_page(self, data: st.DataObject, reverse: bool, which: int) -> None:
        table, limit = data.draw(tables), data.draw(st.integers(1, 4))
        after: Key | None = None
        found: list[tuple[Key, JSON]] = []
        wanted = scanned(self.model.get(table, {}), (), None, None, reverse)
        for _ in range(len(wanted) // limit + 1):
            page = self.portal.call(self.store(which).view, Scan(table, (), after, limit, reverse))
            found.extend(page)
            after = page[-1][0] if page else after
        assert found == wanted

    @precondition(lambda self: self.durable)
    @rule()
    def reopen(self) -> None:
        count = len(self.stores)
        self.close_all()
        for _ in range(count):
            self.open(create=False)

    @precondition(lambda self: self.shared and len(self.stores) == 1)
    @rule(create=st.booleans())
    def open_second(self, create: bool) -> None:
        self.open(create=create)

    @precondition(lambda self: len(self.stores) == 2)
    @rule(which=st.integers(0, 1))
    def close_one(self, which: int) -> None:
        self.portal.call(self.stores.pop(which).aclose)

    def store(self, which: int) -> Storage:
        return self.stores[which % len(self.stores)]

    def close_all(self) -> None:
        while self.stores:
            self.portal.call(self.stores.pop().aclose)

    def teardown(self) -> None:
        try:
            for which, store in enumerate(self.stores):
                self.view_of(EVERYTHING, which)
                assert list(self.portal.call(store.check)) == []
        finally:
            self.close_all()


def run(factory: StorageFactory, new_url: Callable[[], str], *, lasting: bool = True, shrink: bool = True) -> None:
    """Runs many sequences on a backend, in one event loop in a thread; always the same ones without shrinking."""
    with anyio.from_thread.start_blocking_portal() as portal:

        class Machine(StoreMachine): ...

        Machine.portal, Machine.factory, Machine.new_url = portal, staticmethod(factory), staticmethod(new_url)
        Machine.shared = Machine.durable = lasting
        profile = settings(
            max_examples=EXAMPLES if shrink else 500,
            stateful_step_count=STEPS,
            phases=[phase for phase in Phase if shrink or phase is Phase.generate],
            derandomize=settings().derandomize or not shrink,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(Machine, settings=profile)


def test_memory_answers_as_a_dictionary_does() -> None:
    run(storage_memory.open_store, lambda: "memory:", lasting=False)


def test_sqlite_answers_as_a_dictionary_does(tmp_path: Path) -> None:
    run(storage_sqlite.open_store, lambda: f"sqlite://{tmp_path}/{uuid.uuid4().hex}.sqlite")


def test_json_files_answer_as_a_dictionary_does(tmp_path: Path) -> None:
    run(storage_jsonfiles.open_store, lambda: f"jsonfiles://{tmp_path}/{uuid.uuid4().hex}")


def test_postgresql_answers_as_a_dictionary_does(postgres_server: Any) -> None:
    schemas: list[str] = []

    def new_url() -> str:
        schemas.append(f"machine_{uuid.uuid4().hex[:16]}")
        return str(postgres_server.url(schema=schemas[-1]))

    try:
        run(storage_postgres.open_store, new_url)
    finally:
        for schema in schemas:
            postgres_server.execute(f"SET client_min_messages = warning; DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.mark.parametrize(
    "mutant",
    [
        mutants.ForgetsToUndoRemovals,
        mutants.IgnoresAfterInReverse,
        mutants.ListsEmptyTables,
        mutants.ReadsTheStateBefore,
        mutants.SortsNumbersAsTexts,
        mutants.TakesNoLimitForZero,
    ],
    ids=lambda mutant: mutant.__name__,
)
def test_a_backend_that_answers_otherwise_is_noticed(mutant: type[WrappedStorage]) -> None:
    with pytest.raises(AssertionError):
        run(mutant.opened, lambda: "memory:", lasting=False, shrink=False)
