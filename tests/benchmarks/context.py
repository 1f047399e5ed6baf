"""What an unchanged boundary costs: observing and reconciling sources that did not change, and instructions far away.

The goals are those of issue 4: at most 1 ms for 50 sources that answer at once, and linear. What the disk itself costs
is measured beside it: looking for the same files with nothing around it.
"""

import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio

from opencode_core.context.compose import compose
from opencode_core.context.observe import observe
from opencode_core.context.reconcile import initialize, reconcile
from opencode_core.host import Host
from opencode_core.model.context import Boundary, ContextSource, Unchanged
from opencode_core.model.location import Location
from opencode_core.session.boundary import Boundaries
from plugin_sdk import hookimpl
from plugin_sdk.testing import load_plugin
from plugins_builtin import instructions, storage_memory, storage_sqlite
from tests.benchmarks._report import Row, timed
from tests.benchmarks._sampling import Case, Samples, Sizes, interleave

OBSERVING = "observing and reconciling unchanged sources"
CROSSING = "a whole boundary with nothing to do"
FAR = "instructions far above the working directory"
COUNTS = (4, 50, 500)
NAMES = ("AGENTS.md", "CLAUDE.md")


def measure(sizes: Sizes) -> Iterator[Row]:
    """Measures one section after the other."""
    yield from anyio.run(_observing, sizes)
    for section in (_crossing, _far):
        folder = Path(tempfile.mkdtemp(prefix="b")).resolve()
        try:
            yield from anyio.run(section, sizes, folder)
        finally:
            _remove(folder)


class Immediate:
    """A plugin with so many sources that answer at once."""

    def __init__(self, count: int) -> None:
        self._count = count

    @hookimpl
    def opencode_context_sources(self) -> Iterator[ContextSource[str]]:
        for number in range(self._count):
            yield _immediate(number)


def _immediate(number: int) -> ContextSource[str]:
    async def load() -> str:
        return f"the value of source {number}"

    return ContextSource(
        key=f"bench/{number}", load=load, baseline=str, update=lambda _before, now: now, removed=lambda _value: "gone"
    )


async def _observing(sizes: Sizes) -> list[Row]:
    cases: dict[str, Case] = {}
    with tempfile.TemporaryDirectory(prefix="b") as folder:
        plugins = [load_plugin(Immediate(count), directory=folder) for count in COUNTS]
        async with plugins[0] as few, plugins[1] as some, plugins[2] as many:
            for count, plugin in zip(COUNTS, (few, some, many), strict=True):
                cases[str(count)] = await _reconciled(plugin.host, sizes.loops)
            took = await interleave(cases, sizes.reads)
    return list(_observing_rows(took, sizes.loops))


async def _reconciled(host: Host, loops: int) -> Case:
    boundary = Boundary(location=host.location.location)
    snapshot = initialize(await observe(await host.context(), boundary)).snapshot

    async def run() -> float:
        start = perf_counter()
        for _ in range(loops):
            observation = await observe(await compose(host.location.read()), boundary)
            assert reconcile(observation, snapshot) == Unchanged()
        return perf_counter() - start

    return run


def _observing_rows(took: dict[str, Samples], loops: int) -> Iterator[Row]:
    for count in COUNTS:
        target = 1000.0 if count == 50 else None
        yield timed(OBSERVING, f"{count} sources", "µs", took[str(count)], target=target, per=loops)
    some = Samples(tuple(each / 50 for each in took["50"].seconds))
    many = Samples(tuple(each / 500 for each in took["500"].seconds))
    yield timed(OBSERVING, "each of 50", "µs", some, per=loops)
    yield timed(OBSERVING, "each of 500", "µs", many, ("each of 50", some), ratio_target=1.2, per=loops)


async def _crossing(sizes: Sizes, folder: Path) -> list[Row]:
    """Crosses the boundary of a session that has 50 sources and nothing to do, with its store."""
    stores = {"memory": "memory:", "sqlite": f"sqlite:///{folder}/store.db"}
    cases: dict[str, Case] = {}
    async with _sessions(folder, stores["memory"]) as memory, _sessions(folder, stores["sqlite"]) as sqlite:
        for name, (boundaries, session) in {"memory": memory, "sqlite": sqlite}.items():
            cases[name] = _crossed(boundaries, session, sizes.loops)
            cases[f"{name} alone"] = _viewed(boundaries, session, sizes.loops)
        took = await interleave(cases, sizes.reads)
    rows = []
    for name in stores:
        alone = took[f"{name} alone"]
        rows.append(timed(CROSSING, f"{name}, one read of it", "µs", alone, per=sizes.loops))
        rows.append(
            timed(CROSSING, f"{name}, 50 sources", "µs", took[name], (f"one read of {name}", alone), per=sizes.loops)
        )
    return rows


@asynccontextmanager
async def _sessions(folder: Path, storage: str) -> AsyncIterator[tuple[Boundaries, str]]:
    plugins = {"bench": Immediate(50), "storage_memory": storage_memory, "storage_sqlite": storage_sqlite}
    settings: dict[str, Any] = {"config": {}, "entry_points": False, "data_dir": folder / "data"}
    async with Host.open(folder, plugins=plugins, storage=storage, **settings) as host:
        sessions, boundaries = await host.sessions(), await host.boundaries()
        session = (await sessions.create(project="bench", directory=str(folder))).id
        await boundaries.cross(session)
        yield boundaries, session


def _crossed(boundaries: Boundaries, session: str, loops: int) -> Case:
    async def run() -> float:
        start = perf_counter()
        for _ in range(loops):
            await boundaries.cross(session)
        return perf_counter() - start

    return run


def _viewed(boundaries: Boundaries, session: str, loops: int) -> Case:
    async def run() -> float:
        start = perf_counter()
        for _ in range(loops):
            await boundaries.store.get(session)
        return perf_counter() - start

    return run


async def _far(sizes: Sizes, folder: Path) -> list[Row]:
    """Looks for instructions in every folder from a deep one up to the root of its project, where they are."""
    depth = min(2000, sizes.sessions // 5)
    deep = _dig(folder, depth)
    (folder / "AGENTS.md").write_text("Be brief.\n" * 50, encoding="utf-8")
    candidates = [str(each / name) for each in (deep, *deep.parents) if each.is_relative_to(folder) for name in NAMES]
    location = Location(directory=deep, root=folder, is_git=True)
    async with load_plugin(instructions, directory=deep) as plugin:
        assert plugin.host.location.location == location
        source = (await plugin.sources())["core/instructions"]
        boundary = Boundary(location=location)

        async def plain() -> float:
            start = perf_counter()
            await anyio.to_thread.run_sync(lambda: [os.path.lexists(each) for each in candidates])
            return perf_counter() - start

        async def ours() -> float:
            start = perf_counter()
            await source.load(boundary)
            return perf_counter() - start

        took = await interleave({"plain": plain, "ours": ours}, sizes.reads)
    looked = ("looking alone", took["plain"])
    return [
        timed(FAR, f"looking for {len(candidates):,} files in a thread", "ms", took["plain"]),
        timed(FAR, f"core/instructions, {depth:,} folders down", "ms", took["ours"], looked),
    ]


def _remove(folder: Path) -> None:
    """Removes a tree of any depth, which Python's own removal does not."""
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def _dig(folder: Path, depth: int) -> Path:
    """Makes a project with a working directory so deep; 2,000 is about as deep as a path can be."""
    (folder / ".git").mkdir()
    deep = folder / Path(*["d"] * depth)
    here = os.open(folder, os.O_RDONLY)
    try:
        for _ in range(depth):
            os.mkdir("d", dir_fd=here)
            inner = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
    finally:
        os.close(here)
    return deep
