"""The only place that reads a clock."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """What the kernel asks for the time, so that a test can hold it still."""

    def now(self) -> datetime:
        """Returns the wall clock's time, with the host's time zone."""
        ...

    def monotonic(self) -> float:
        """Returns seconds that never go back, for durations."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Returns the wall clock's time, with the host's time zone."""
        return datetime.now().astimezone()

    def monotonic(self) -> float:
        """Returns seconds that never go back, for durations."""
        return time.perf_counter()
