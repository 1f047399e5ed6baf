"""Runs the fault tests for long: hundreds of kills on each backend, thousands of appends of eight processes.

`python -m tests.faults.long` runs all backends, `python -m tests.faults.long sqlite --rounds 50` what is named. It
tells how far it is, prints a table at the end, and fails when anything was lost.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import anyio
import attrs

from tests.faults.crowd import PROCESSES, objections_to_a_crowd
from tests.faults.killing import Damaged, Trial
from tests.faults.nursery import Nursery, nursery
from tests.faults.servers import PostgresStore, private_store
from tests.support.postgres_server import PostgresMissing

BACKENDS = ("sqlite", "jsonfiles", "postgresql")
ROUNDS_OF_A_STORE_THAT_IS_MADE = 10


@attrs.define
class Line:
    """One line of the table.

    Attributes:
        backend: Where.
        what: What was done.
        times: How often.
        acknowledged: How much was acknowledged.
        outcome: What came of it.
    """

    backend: str
    what: str
    times: int = 0
    acknowledged: int = 0
    outcome: str = "nothing lost"
    kinds: Counter[str] = attrs.field(factory=Counter)


@attrs.define
class Places:
    """Where the stores of one backend are made."""

    backend: str
    folder: Path
    server: PostgresStore | None
    _made: int = 0

    def trial(self, children: Nursery, seed: int) -> Trial:
        """Returns a trial of a store that is not there yet."""
        self._made += 1
        if self.server is None:
            return Trial(f"{self.backend}://{self.folder}/{self._made}/store", children, seed)
        store = PostgresStore(self.server.server)
        return Trial(store.url, children, seed, store.calm, store.crash)


def main(arguments: list[str]) -> int:
    """Runs what is wanted; returns 1 when something was lost, 2 when a backend could not be tried."""
    parser = _parser()
    wanted = parser.parse_args(arguments)
    if unknown := sorted(set(wanted.backends) - set(BACKENDS)):
        parser.error(f"There is no backend '{unknown[0]}' to kill processes on. There are: {', '.join(BACKENDS)}.")
    lines: list[Line] = []
    for backend in wanted.backends or BACKENDS:
        try:
            with _places(backend) as places, nursery() as children:
                lines.append(_kill(places, children, wanted.rounds, wanted.seed))
                lines += [_crowd(places, children, sessions, wanted.appends) for sessions in (1, PROCESSES)]
        except PostgresMissing as missing:
            lines.append(Line(backend, "not run", outcome=f"NOT RUN: {missing}"))
    print("\n" + "\n".join(_table(lines)))
    outcomes = {line.outcome.partition(" ")[0] for line in lines}
    return 1 if outcomes & {"LOST", "WRONG:"} else 2 if "NOT" in outcomes else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make faults", description="Kills processes, and looks what they lost.")
    parser.add_argument("backends", nargs="*", metavar="BACKEND", help=f"of {', '.join(BACKENDS)}; all by default")
    parser.add_argument("--rounds", type=int, default=200, metavar="N", help="kills on each backend (%(default)s)")
    parser.add_argument("--appends", type=int, default=500, metavar="N", help="of each process (%(default)s)")
    parser.add_argument("--seed", type=int, default=Random().randrange(1_000_000), help="decides what is done")
    return parser


@contextmanager
def _places(backend: str) -> Iterator[Places]:
    if backend == "postgresql":
        with private_store() as store:
            yield Places(backend, Path(), store)
    else:
        with tempfile.TemporaryDirectory(prefix="opencode-faults-") as folder:
            yield Places(backend, Path(folder), None)


def _kill(places: Places, children: Nursery, rounds: int, seed: int) -> Line:
    line, trial = Line(places.backend, f"killed, seed {seed}"), places.trial(children, seed)
    try:
        for number in range(1, rounds + 1):
            begun = time.monotonic()
            if number % ROUNDS_OF_A_STORE_THAT_IS_MADE == 0:
                done = places.trial(children, seed + number).round("opening")
                kind = "making"
            else:
                done = trial.round()
                kind = done.kind
            line.times, line.acknowledged = number, line.acknowledged + done.acknowledged
            line.kinds[kind] += 1
            print(
                f"{places.backend:10} {number:4}/{rounds}  {_shown(kind):22} {done.acknowledged:4} acknowledged  "
                f"{done.events:5} events in the store  {time.monotonic() - begun:5.1f} s",
                flush=True,
            )
    except Damaged as damaged:
        print(damaged, flush=True)
        line.outcome = f"LOST in round {line.times + 1}"
    return line


def _shown(kind: str) -> str:
    return f"killed while {kind}" if kind != "whole" else "not killed"


def _crowd(places: Places, children: Nursery, sessions: int, each: int) -> Line:
    line = Line(places.backend, f"{PROCESSES} processes, {sessions} session{'s' * (sessions > 1)}")
    print(f"{places.backend:10} {line.what}, {each} appends each", flush=True)
    url = places.trial(children, 0).url

    async def run() -> list[str]:
        return await objections_to_a_crowd(url, children, sessions=sessions, each=each)

    wrong = anyio.run(run)
    line.times, line.acknowledged = 1, PROCESSES * each
    if wrong:
        print("\n".join(wrong[:20]), flush=True)
        line.outcome = f"WRONG: {len(wrong)} things"
    return line


def _table(lines: list[Line]) -> Iterator[str]:
    yield f"{'backend':11}{'what':28}{'times':>6}{'acknowledged':>14}  {'outcome':18}when"
    for line in lines:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(line.kinds.items()))
        yield f"{line.backend:11}{line.what:28}{line.times:6}{line.acknowledged:14}  {line.outcome:18}{kinds}".rstrip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
