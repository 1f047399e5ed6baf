"""Shows how far a copy is on stderr: a bar on a terminal, now and then a line anywhere else. Knows no store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import attrs
import click

from opencode_core.clock import Clock, SystemClock

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from opencode_core.storage.copying import Progress, Stage

REFRESH = 0.1
"""Seconds between two changes of a bar."""

PAUSE = 3.0
"""Seconds between two lines."""

_WORDS: Final = {"counting": "Counting", "copying": "Copying", "verifying": "Comparing"}


@contextmanager
def showing_progress(*, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Offers somewhere to report progress to."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bars() as bars:
            yield _Bar(bars).show
    else:
        yield Lines(SystemClock(), lambda line: click.echo(line, err=True)).show


def _bars() -> Bars:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<9}"),
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=Console(stderr=True))


@attrs.define(eq=False, repr=False)
class _Bar:
    _bars: Bars
    _clock: Clock = attrs.field(factory=SystemClock)
    _tasks: dict[Stage, TaskID] = attrs.field(init=False, factory=dict)
    _shown_at: float = attrs.field(init=False, default=0.0)
    _last: Progress | None = attrs.field(init=False, default=None)

    def show(self, now: Progress) -> None:
        is_new = now.stage not in self._tasks
        if is_new:
            self._finish()
            self._tasks[now.stage] = self._bars.add_task(_WORDS[now.stage], total=now.total)
        self._last = now
        moment = self._clock.monotonic()
        if is_new or now.done == now.total or moment - self._shown_at >= REFRESH:
            self._shown_at = moment
            self._bars.update(self._tasks[now.stage], completed=now.done)

    def _finish(self) -> None:
        if self._last is not None:  # what was counted is all there is
            done = self._last.done
            self._bars.update(self._tasks[self._last.stage], completed=done, total=self._last.total or done)


@attrs.define(eq=False, repr=False)
class Lines:
    """Prints a line when a stage has ended, and now and then while it lasts."""

    _clock: Clock
    _print: Callable[[str], None]
    _printed_at: float = attrs.field(init=False)

    @_printed_at.default
    def _now(self) -> float:
        return self._clock.monotonic()

    def show(self, now: Progress) -> None:
        """Takes a report, and prints it if it is time."""
        moment = self._clock.monotonic()
        if now.done == now.total or moment - self._printed_at >= PAUSE:
            self._printed_at = moment
            of = f" of {now.total:,} ({now.done * 100 // now.total} %)" if now.total else ""
            self._print(f"{_WORDS[now.stage]}: {now.done:,}{of}")
