"""What was acknowledged is never lost and nothing is half there, whenever a process, or the server, is killed.

A few rounds on each backend; `make faults` runs hundreds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.killing import Trial
from tests.faults.nursery import Nursery
from tests.faults.servers import PostgresStore
from tests.support.postgres_server import PostgresServer

ROUNDS = ("opening", "working", "working", "closing", "working", "whole", "flooding", "opening", "working")


def test_a_killed_process_loses_nothing_that_it_acknowledged_in_sqlite(place: Path, children: Nursery) -> None:
    _survives(Trial(f"sqlite://{place}", children, 1, most=40))


def test_a_killed_process_loses_nothing_that_it_acknowledged_in_json_files(place: Path, children: Nursery) -> None:
    _survives(Trial(f"jsonfiles://{place}", children, 2, most=40))


def test_a_killed_process_loses_nothing_that_it_acknowledged_in_postgresql(
    postgres_store: PostgresStore, children: Nursery
) -> None:
    _survives(Trial(postgres_store.url, children, 3, postgres_store.calm, most=40))


def test_a_crashed_server_loses_nothing_that_was_acknowledged(
    private_postgres_server: PostgresServer, children: Nursery
) -> None:
    store = PostgresStore(private_postgres_server)
    _survives(Trial(store.url, children, 4, store.calm, store.crash, most=40), ("crashing", "crashing", "crashing"))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scheme", ["sqlite", "jsonfiles"])
def test_a_store_whose_making_was_killed_can_be_opened(scheme: str, seed: int, place: Path, children: Nursery) -> None:
    trial = Trial(f"{scheme}://{place}", children, seed, most=10)
    trial.round("opening")
    trial.round("working")


def _survives(trial: Trial, kinds: tuple[str, ...] = ROUNDS) -> None:
    rounds = [trial.round(kind) for kind in kinds]
    assert trial.ledger.counted > 20, "it was seen to work"
    assert rounds[-1].events > 0
