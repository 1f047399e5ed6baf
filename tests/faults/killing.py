"""Lets children work on one store over many rounds, kills each, and looks at what is left. Judges by raising."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Final

import attrs

from opencode_core.errors import OpencodeError
from tests.faults.ledger import Ledger
from tests.faults.looking import look, problems
from tests.faults.nursery import Child, Nursery
from tests.faults.work import SHARED

KILLED: Final = -9
UNTIL_KILLED: Final = 1_000_000
ROUNDS_OF_A_SHARED_SESSION: Final = 20


class Damaged(AssertionError):
    """Something that was acknowledged is missing, or something is half there."""


@attrs.frozen
class Round:
    """How a round went.

    Attributes:
        kind: When the child was killed.
        acknowledged: How much it had acknowledged.
        events: How many events are in the store after it.
    """

    kind: str
    acknowledged: int
    events: int


def _nothing() -> None:
    """A store without a server has nobody to wait for or to crash."""


@attrs.define(eq=False)
class Trial:
    """One store and what must be in it.

    Attributes:
        url: The store.
        nursery: Who makes the children.
        seed: Decides everything that can be decided.
        calm: Returns when nobody works for a killed child any more.
        crash: Crashes the server in the middle, where there is one, and returns when it is up again.
        most: A child is killed before it has acknowledged so much.
    """

    url: str
    nursery: Nursery
    seed: int
    calm: Callable[[], None] = _nothing
    crash: Callable[[], None] | None = None
    most: int = 80
    ledger: Ledger = attrs.field(factory=Ledger)
    _number: int = 0
    _random: Random = attrs.field(init=False, default=attrs.Factory(lambda self: Random(self.seed), takes_self=True))

    def round(self, kind: str | None = None) -> Round:
        """Lets one child work, kills it, and looks.

        Raises:
            Damaged: The store is not as it must be.
        """
        kind = kind or self._random.choices(*zip(*self._kinds(), strict=True))[0]
        before, self._number = self.ledger.counted, self._number + 1
        child = self._child(kind)
        {
            "opening": self._kill_opening,
            "working": self._kill_working,
            "flooding": self._kill_working,
            "closing": self._kill_closing,
            "crashing": self._kill_after_crash,
            "whole": self._let_live,
        }[kind](child)
        for line in child.said:
            self.ledger.note(line)
        self._check_end(kind, child.wait())
        return Round(kind, self.ledger.counted - before, self._look(kind))

    def _kinds(self) -> Iterator[tuple[str, int]]:
        yield from (("working", 65), ("flooding", 8), ("opening", 10), ("closing", 12), ("whole", 5))
        if self.crash is not None:
            yield "crashing", 20

    def _child(self, kind: str) -> Child:
        shared = f"{SHARED}{self._number // ROUNDS_OF_A_SHARED_SESSION}"
        steps = self._random.randrange(1, 8) if kind in ("closing", "whole") else UNTIL_KILLED
        told = (self._random.randrange(1 << 30), shared, steps, kind == "flooding", self.crash is not None)
        return self.nursery.child("live", self.url, *told)

    def _kill_opening(self, child: Child) -> None:
        self._hear(child, until="opening")
        self._wait_a_moment(0.03)
        child.kill()

    def _kill_working(self, child: Child) -> None:
        self._hear(child, acknowledged=self._random.randrange(self.most))
        self._wait_a_moment(self._random.choice([0, 0.002, 0.01]))
        child.kill()

    def _kill_closing(self, child: Child) -> None:
        self._hear(child, until="closing")
        self._wait_a_moment(0.01)
        child.kill()

    def _kill_after_crash(self, child: Child) -> None:
        assert self.crash is not None
        self._hear(child, acknowledged=self._random.randrange(1, self.most // 2))
        self._wait_a_moment(0.005)
        self.crash()
        self._hear(child, acknowledged=self._random.randrange(1, self.most // 2))
        child.kill()

    def _let_live(self, child: Child) -> None:
        self._hear(child, until="closed")

    def _hear(self, child: Child, *, until: str = "", acknowledged: int = UNTIL_KILLED) -> None:
        enough = self.ledger.counted + acknowledged
        while self.ledger.counted < enough:
            line = child.said.readline()
            if self.ledger.note(line) == until or not line:
                return

    def _wait_a_moment(self, longest: float) -> None:
        # Not to wait for anything: this is what makes the moment of the kill a random one.
        time.sleep(self._random.uniform(0, longest))

    def _check_end(self, kind: str, status: int) -> None:
        if status != KILLED and not (status == 0 and kind in ("closing", "whole")):
            raise Damaged(f"{self._where(kind)}: the child ended with {status}; its error is above.")

    def _look(self, kind: str) -> int:
        self.calm()
        try:
            found = look(self.url)
        except OpencodeError as error:
            raise Damaged(f"{self._where(kind)}: the store cannot be read: {error}") from error
        if wrong := problems(found, self.ledger):
            raise Damaged("\n".join([f"{self._where(kind)}: {len(wrong)} things are wrong.", *wrong[:20]]))
        logs = found.logs()
        self.ledger.settle(logs)
        return sum(len(events) for events in logs.values())

    def _where(self, kind: str) -> str:
        return f"Round {self._number} of seed {self.seed}, killed while {kind}"
