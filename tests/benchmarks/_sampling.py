"""Takes samples of several cases in turn, so that what else the machine does hits all of them alike."""

import gc
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import attrs

Case = Callable[[], Awaitable[float]]
"""Does something once and returns how long it took in seconds, without what it had to prepare."""


@attrs.frozen(kw_only=True)
class Sizes:
    """How much is measured.

    Attributes:
        many: How many plugins are many.
        processes: How often each process is started.
        opens: How often each host is opened.
        reloads: How often each plugin is reloaded.
        reads: How often the registry is read, each time `loops` times in a row.
        loops: How many reads one sample is made of.
        spans: How many Locations and session scopes are opened to weigh one.
        growth: How many reloads memory is watched over.
        batches: How often a batch of appends or reads of a store is timed.
        appends: How many appends one batch is made of.
        events: How many events are read at once, weighed and followed.
        sessions: How many sessions are many.
    """

    many: int = 100
    processes: int
    opens: int
    reloads: int
    reads: int
    loops: int
    spans: int
    growth: int
    batches: int
    appends: int
    events: int
    sessions: int

    def with_plugins(self, many: int) -> "Sizes":
        """Returns the same with another number of plugins."""
        return attrs.evolve(self, many=many)


FULL = Sizes(
    processes=40,
    opens=25,
    reloads=60,
    reads=60,
    loops=50,
    spans=20,
    growth=200,
    batches=15,
    appends=300,
    events=1000,
    sessions=10_000,
)
QUICK = Sizes(
    processes=1, opens=1, reloads=1, reads=1, loops=2, spans=2, growth=4, batches=1, appends=50, events=20, sessions=120
)


@attrs.frozen
class Samples:
    """What one case took, in seconds; the smallest is the case itself, the rest is the machine."""

    seconds: tuple[float, ...]

    @property
    def min(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return median(self.seconds)


async def interleave(cases: Mapping[str, Case], rounds: int, *, warm_up: int = 1) -> dict[str, Samples]:
    """Runs every case once per round."""
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(-warm_up, rounds):
        for name, case in cases.items():
            gc.collect()
            seconds = await case()
            if number >= 0:
                taken[name].append(seconds)
    return {name: Samples(tuple(seconds)) for name, seconds in taken.items()}


def process(command: Sequence[str], folder: Path) -> Case:
    """Returns a case that runs a command to its end.

    Python's bytecode is cached beside the folder: the first run compiles, and the checkout and what the caller's
    environment says about caches do not matter.
    """
    environment = clean_environment(folder)

    async def run() -> float:
        start = perf_counter()
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)  # noqa: ASYNC221
        return perf_counter() - start

    return run


def clean_environment(folder: Path) -> dict[str, str]:
    """Returns the environment of a person who never ran the program, with what it keeps in a folder."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("OPENCODE_", "PYTHON"))}
    return inherited | {
        "PYTHONPYCACHEPREFIX": str(folder.parent / "bytecode"),
        "OPENCODE_CONFIG_DIR": str(folder / "config"),
        "OPENCODE_DATA_DIR": str(folder / "data"),
    }


def python(program: str) -> list[str]:
    """Returns the command that runs a program in the Python of this process."""
    return [sys.executable, "-c", program]
