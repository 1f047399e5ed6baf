"""Lets eight processes append to one store at once, and follows their logs meanwhile. Tests nothing itself."""

from __future__ import annotations

import os

import anyio
import anyio.abc
import anyio.to_thread
import attrs

from opencode_core.model.event.base import Recorded
from opencode_core.session.store import SessionStore
from tests.faults.ledger import Ledger
from tests.faults.looking import look_into, problems
from tests.faults.nursery import Child, Nursery
from tests.faults.stores import opened
from tests.faults.work import HERE

PROCESSES = 8


async def objections_to_a_crowd(url: str, children: Nursery, *, sessions: int, each: int) -> list[str]:
    """Returns what went wrong while eight processes appended so many events each, one sentence each."""
    async with opened(url) as store:
        seen = await _append_at_once(store, url, children, [f"ses_{number}" for number in range(sessions)], each)
        found = await look_into(store.log.storage)
    wrong = problems(found, seen.ledger)
    if seen.ends != [0] * PROCESSES:
        wrong.append(f"The processes ended with {seen.ends}.")
    places = sum(len(events) for events in seen.ledger.events.values())
    if not places == seen.ledger.counted == PROCESSES * each:
        wrong.append(f"{seen.ledger.counted} appends have {places} places, not {PROCESSES * each}.")
    if seen.logs != found.logs():
        wrong.append("Whoever followed the logs saw something else than is in them.")
    return wrong


@attrs.define
class _Seen:
    """What the processes acknowledged, how they ended, and what somebody saw who followed."""

    ledger: Ledger = attrs.field(factory=Ledger)
    logs: dict[str, list[Recorded]] = attrs.field(factory=dict)
    ends: list[int] = attrs.field(factory=list)


async def _append_at_once(store: SessionStore, url: str, children: Nursery, names: list[str], each: int) -> _Seen:
    for name in names:
        await store.create(id=name, **HERE)
    seen = _Seen()
    gate, opener = os.pipe()
    workers = [
        children.child("append", url, names[number % len(names)], each, f"process {number}", gate=gate)
        for number in range(PROCESSES)
    ]
    os.close(gate)
    wanted = 1 + each * PROCESSES // len(names)
    async with anyio.create_task_group() as group:
        for name in names:
            await group.start(_follow, store, name, wanted, seen)
        os.close(opener)
        async with anyio.create_task_group() as listening:
            for worker in workers:
                listening.start_soon(_listen, worker, seen)
        heads = [await store.log.head(name) for name in names]
        if heads != [wanted - 1] * len(names):  # then what is followed never ends
            group.cancel_scope.cancel()
    return seen


async def _follow(
    store: SessionStore, session: str, wanted: int, seen: _Seen, *, task_status: anyio.abc.TaskStatus[None]
) -> None:
    events = seen.logs[session] = list[Recorded]()
    async with store.log.tail(session, private=True) as tail:
        task_status.started()
        async for event in tail:
            events.append(event)
            if len(events) == wanted:
                return


async def _listen(worker: Child, seen: _Seen) -> None:
    for line in await anyio.to_thread.run_sync(worker.said.readlines):
        seen.ledger.note(line)
    seen.ends.append(worker.wait())
