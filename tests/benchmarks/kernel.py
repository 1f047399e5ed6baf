"""What the kernel costs: importing it, opening hosts, reloading plugins, reading the registry, and memory.

Times are the smallest and the median of samples that were taken in turn with those of a reference, so that a ratio says
something even on a busy machine. The targets are those of issue 2.
"""

import gc
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio

from opencode_core.context.compose import compose
from opencode_core.host import Host
from opencode_core.plugins.place import Place
from opencode_core.plugins.scope import Owner, View
from opencode_core.plugins.slots import CONTEXT_SOURCES, TOOLS
from opencode_core.tools.registry import materialize
from plugin_sdk import Tool, ToolCall, ToolOutput
from tests.benchmarks import _plugins as plugins
from tests.benchmarks._report import Row, timed, weighed
from tests.benchmarks._sampling import Case, Sizes, clean_environment, interleave, process, python

IMPORT_MS, VERSION_MS, OPEN_MS, RELOAD_MS, READ_US = 80.0, 150.0, 100.0, 10.0, 50.0
BARE = "bare Python"
COMMAND = "opencode-core"
ROOT = Path(__file__).parents[2]


def measure(sizes: Sizes) -> Iterator[Row]:
    """Measures one section after the other, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="opencode-bench-") as folder:
        for section in (starting, opening, reloading, reading, weighing):
            yield from anyio.run(section, sizes, _made(Path(folder, section.__name__)))


async def starting(sizes: Sizes, folder: Path) -> list[Row]:
    """Imports the packages and runs the command, each in a new process."""
    modules = ("opencode_core", "plugin_sdk", "opencode_core.host")
    cases = {name: process(python(f"import {name}"), folder) for name in modules}
    command = shutil.which(COMMAND, path=str(Path(sys.executable).parent))
    problem = _why_not(command, folder)
    if command is not None and not problem:
        cases["--version"] = process([command, "--version"], folder)
    took = await interleave({BARE: process(python("pass"), folder), **cases}, sizes.processes)
    bare = took[BARE]
    section = f"start: time over {BARE}"
    rows = [timed(section, f"{BARE}, itself", "ms", bare)] + [
        timed(section, f"import {name}", "ms", took[name], (BARE, bare), less=bare, target=IMPORT_MS)
        for name in modules
    ]
    name = f"{COMMAND} --version"
    if problem:
        return [*rows, Row(section=section, name=name, unit="ms", target=VERSION_MS, note=problem)]
    return [*rows, timed(section, name, "ms", took["--version"], (BARE, bare), less=bare, target=VERSION_MS)]


async def opening(sizes: Sizes, folder: Path) -> list[Row]:
    """Opens hosts with plugins of every kind."""
    many = sizes.many
    paths = plugins.files(folder / "files", many)
    plugins.files(folder / "project" / ".opencode" / "plugins", many)
    counts = sorted({0, 10, many})
    cases: dict[str, Case] = {}
    for count in counts:
        cases[f"{count} objects"] = partial(_open, folder, count)
        cases[f"{count} objects and entry points"] = partial(_open, folder, count, entry_points=True)
    cases[f"{many} files"] = partial(_open, folder, paths)
    cases[f"{many} files and entry points"] = partial(_open, folder, paths, entry_points=True)
    cases[f"{many} files of a trusted project"] = partial(_open, folder / "project", 0, data_dir=folder / "trust")
    cases[f"close {many} objects"] = partial(_open, folder, many, close=True)
    took = await interleave(cases, sizes.opens)
    reference = ("0 objects", took["0 objects"])
    return [
        timed(
            "open a host",
            name,
            "ms",
            samples,
            reference if samples is not reference[1] else None,
            target=OPEN_MS if name.startswith("100 ") else None,
        )
        for name, samples in took.items()
    ]


async def reloading(sizes: Sizes, folder: Path) -> list[Row]:
    """Reloads one plugin, alone and among many."""
    many = sizes.many
    alone, among = plugins.write(folder / "alone.py"), plugins.write(folder / "among.py")
    plugins.files(folder / "project" / ".opencode" / "plugins", many)
    async with AsyncExitStack() as stack:
        single = await stack.enter_async_context(_host(folder, [alone]))
        crowded = await stack.enter_async_context(_host(folder, {**plugins.objects(many), "among": among}))
        project = await stack.enter_async_context(_host(folder / "project", (), data_dir=folder / "trust"))
        installed = await stack.enter_async_context(_host(folder, (), entry_points=True))
        cases: dict[str, Case] = {
            "compile + exec": partial(_compile_and_run, alone),
            "a file, no other plugin": partial(_reload, single, "alone"),
            f"a file, {many} other plugins": partial(_reload, crowded, "among"),
            f"a file of a trusted project, {many - 1} beside it": partial(_reload, project, "file0000"),
            "an installed plugin (date)": partial(_reload, installed, "date"),
        }
        took = await interleave(cases, sizes.reloads)
    reference = ("compile + exec", took.pop("compile + exec"))
    return [timed("reload", "the same file: read, compile, exec", "ms", reference[1])] + [
        timed("reload", name, "ms", samples, reference, target=RELOAD_MS) for name, samples in took.items()
    ]


async def reading(sizes: Sizes, folder: Path) -> list[Row]:
    """Reads what a turn reads of the registry, when nothing changed and after a change."""
    section = f"read the registry with {sizes.many} plugins"
    async with _host(folder, plugins.objects(sizes.many)) as host:
        values = tuple(_values(host.location.read()))
        loops = sizes.loops
        cases: dict[str, Case] = {
            "tuple": partial(_iterate, values, loops),
            "warm: read, sources, tools": partial(_read, host.location, loops),
            "warm: read, sources, tools, compose": partial(_read_and_compose, host.location, loops),
            "warm: materialize the tools of a turn": partial(_materialize, host.location, loops),
            "after a change: read, sources, tools": partial(_read_changed, host, loops, composing=False),
            "after a change: read, sources, tools, compose": partial(_read_changed, host, loops, composing=True),
            "the change itself: a tool comes and goes": partial(_change, host, loops),
        }
        took = await interleave(cases, sizes.reads)
    reference = ("a plain tuple", took.pop("tuple"))
    rows = [timed(section, f"iterate a plain tuple of the {len(values)} values", "µs", reference[1], per=loops)]
    for name, samples in took.items():
        target = READ_US if "read, sources" in name and sizes.many == 100 else None
        rows.append(timed(section, name, "µs", samples, reference, target=target, per=loops))
    return rows


async def weighing(sizes: Sizes, folder: Path) -> list[Row]:
    """Weighs Locations, session scopes, hosts and what reloads leave behind."""
    many = sizes.many
    tracemalloc.start()
    try:
        empty = await _location_bytes(folder, 0, sizes.spans)
        full = await _location_bytes(folder, many, sizes.spans)
        idle, busy = await _session_bytes(folder, many, sizes.spans)
        growth = await _growth_bytes(folder, many, sizes.growth)
    finally:
        tracemalloc.stop()
    location = ("an empty Location", empty)
    return [
        weighed("memory", "one open Location, no plugins", "KiB", empty),
        weighed("memory", f"one open Location, {many} plugins", "KiB", full, location),
        weighed("memory", "one session scope that registers nothing", "KiB", idle, location),
        weighed("memory", f"one session scope with a tool of its own, {many} plugins", "KiB", busy, location),
        *_resident_rows(many, folder),
        weighed("memory", f"growth over {sizes.growth} reloads", "KiB", growth),
        weighed("memory", "growth per reload", "KiB", growth / sizes.growth),
    ]


# Starting


def _why_not(command: str | None, folder: Path) -> str:
    if command is None:
        return "there is no such command beside this Python"
    ran = subprocess.run(
        [command, "--version"], cwd=folder, env=clean_environment(folder), capture_output=True, text=True, check=False
    )
    said = ran.stderr.strip().splitlines() or ["nothing said"]
    return "" if ran.returncode == 0 else f"it fails: {said[-1]}"


# Opening


def _host(folder: Path, given: Any, *, entry_points: bool = False, data_dir: Path | None = None) -> Any:
    folder.mkdir(exist_ok=True)
    return Host.open(
        folder,
        plugins=given,
        config={},
        entry_points=entry_points,
        ask_trust=_yes,
        data_dir=data_dir or folder / "data",
        watch=False,
    )


async def _yes(_code: object, _verdict: object) -> bool:
    return True


async def _open(
    folder: Path,
    given: int | list[Path],
    *,
    entry_points: bool = False,
    data_dir: Path | None = None,
    close: bool = False,
) -> float:
    handed_over = plugins.objects(given) if isinstance(given, int) else given
    start = perf_counter()
    async with _host(folder, handed_over, entry_points=entry_points, data_dir=data_dir) as host:
        opened = perf_counter()
        broken = [each.name for each in host.plugins.list() if each.state != "active"]
        if broken:
            raise RuntimeError(f"The plugin '{broken[0]}' is not active, so this would measure something else.")
        closing = perf_counter()
    return perf_counter() - closing if close else opened - start


# Reloading


async def _reload(host: Host, name: str) -> float:
    start = perf_counter()
    await host.plugins.reload(name)
    return perf_counter() - start


async def _compile_and_run(path: Path) -> float:
    start = perf_counter()
    exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), {"__name__": path.stem})  # noqa: ASYNC240
    return perf_counter() - start


# Reading


def _values(view: View) -> Iterator[object]:
    for source in view.all(CONTEXT_SOURCES):
        yield source.value
    for tool in view.all(TOOLS):
        yield tool.value


def _look(place: Place) -> View:
    view = place.read()
    for source in view.all(CONTEXT_SOURCES):
        _ = source.value
    for tool in view.all(TOOLS):
        _ = tool.value
    return view


async def _iterate(values: tuple[object, ...], loops: int) -> float:
    start = perf_counter()
    for _loop in range(loops):
        for each in values:
            _ = each
    return perf_counter() - start


async def _read(place: Place, loops: int) -> float:
    start = perf_counter()
    for _loop in range(loops):
        _look(place)
    return perf_counter() - start


async def _read_and_compose(place: Place, loops: int) -> float:
    start = perf_counter()
    for _loop in range(loops):
        await compose(_look(place))
    return perf_counter() - start


async def _materialize(place: Place, loops: int) -> float:
    start = perf_counter()
    for _loop in range(loops):
        materialize(place.read)
    return perf_counter() - start


async def _read_changed(host: Host, loops: int, *, composing: bool) -> float:
    seconds = 0.0
    application = host.attach("benchmark")
    for _loop in range(loops):
        application.add_tool("changed", _tool())
        start = perf_counter()
        view = _look(host.location)
        if composing:
            await compose(view)
        seconds += perf_counter() - start
    await application.aclose()
    return seconds


async def _change(host: Host, loops: int) -> float:
    application, tool = host.attach("benchmark"), _tool()
    start = perf_counter()
    for _loop in range(loops):
        application.add_tool("changed", tool).close()
    seconds = perf_counter() - start
    await application.aclose()
    return seconds


def _tool() -> Tool:
    return Tool(description="Does nothing.", execute=_execute)


async def _execute(_call: ToolCall) -> ToolOutput:
    return ToolOutput()


# Weighing


async def _location_bytes(folder: Path, count: int, spans: int) -> float:
    async with _host(folder, plugins.objects(count)) as host, AsyncExitStack() as stack:
        async with host.open_location(_made(folder / "warm")) as place:
            place.read()
        with _Weighing() as weight:
            for number in range(spans):
                place = await stack.enter_async_context(host.open_location(_made(folder / str(number))))
                place.read()
    return weight.size / spans


async def _session_bytes(folder: Path, count: int, spans: int) -> tuple[float, float]:
    async with _host(folder, plugins.objects(count)) as host:
        with _Weighing() as idle:
            scopes = [host.location.scope.open_child("session", f"idle {number}") for number in range(spans)]
            for scope in scopes:
                scope.read()
        with _Weighing() as busy:
            for number in range(spans):
                scopes.append(host.location.scope.open_child("session", f"busy {number}"))
                scopes[-1].attach(Owner("benchmark", "host")).add_tool("own", _tool())
            for scope in scopes[spans:]:
                scope.read()
        for scope in scopes:
            await scope.aclose()
    return idle.size / spans, busy.size / spans


async def _growth_bytes(folder: Path, count: int, reloads: int) -> float:
    path = plugins.write(folder / "growing.py")
    async with _host(folder, {**plugins.objects(count), "growing": path}) as host:
        for _warm_up in range(min(20, reloads)):
            await host.plugins.reload("growing")
        with _Weighing() as weight:
            for _reload in range(reloads):
                await host.plugins.reload("growing")
    return weight.size


class _Weighing:
    """How much more Python holds after a block than before; memory must be traced since before what it replaces."""

    size = 0.0

    def __enter__(self) -> "_Weighing":
        gc.collect()
        self._before = tracemalloc.get_traced_memory()[0]
        return self

    def __exit__(self, *_: object) -> None:
        gc.collect()
        self.size = tracemalloc.get_traced_memory()[0] - self._before


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _resident_rows(many: int, folder: Path) -> list[Row]:
    _resident(folder, "1", str(folder))  # the first run compiles, which takes memory of its own
    bare = _resident(folder)
    if not bare:
        note = "this system does not say"
        return [Row(section="memory", name="resident memory of a host", unit="MiB", note=note)]
    reference = (BARE, float(bare))
    return [
        weighed("memory", f"resident: {BARE}", "MiB", bare),
        weighed("memory", "resident: a host, no plugins", "MiB", _resident(folder, "0", str(folder)), reference),
        weighed(
            "memory", f"resident: a host, {many} plugins", "MiB", _resident(folder, str(many), str(folder)), reference
        ),
    ]


def _resident(folder: Path, *arguments: str) -> int:
    command = [sys.executable, "-m", "tests.benchmarks._resident", *arguments]
    ran = subprocess.run(
        command, cwd=ROOT, env=clean_environment(folder), check=True, stdout=subprocess.PIPE, text=True
    )
    return int(ran.stdout)
