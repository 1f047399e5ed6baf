"""Eight processes that append at once all get their place, and whoever follows sees each event once, in order."""

from __future__ import annotations

import pytest

from tests.faults.crowd import objections_to_a_crowd
from tests.faults.nursery import Nursery


@pytest.fixture
def each(store_url: str) -> int:
    """How much each process appends; `make faults` lets them append more."""
    return 15 if store_url.startswith("jsonfiles:") else 40


@pytest.mark.behaviour("EV-23")
async def test_eight_processes_append_to_one_session_at_once(store_url: str, each: int, children: Nursery) -> None:
    assert await objections_to_a_crowd(store_url, children, sessions=1, each=each) == []


@pytest.mark.behaviour("EV-23")
async def test_eight_processes_append_to_eight_sessions_at_once(store_url: str, each: int, children: Nursery) -> None:
    assert await objections_to_a_crowd(store_url, children, sessions=8, each=each) == []
