"""Shows measurements to people, as a table, and to programs, as JSON. Measures nothing."""

import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from tests.benchmarks._sampling import Samples, Sizes

Unit = Literal["ms", "µs", "B", "KiB", "MiB"]

_PER_UNIT: Mapping[Unit, float] = {"ms": 1e-3, "µs": 1e-6, "B": 1, "KiB": 1024, "MiB": 1024**2}


@attrs.frozen(kw_only=True)
class Row:
    """One measurement.

    Attributes:
        section: What it belongs to.
        name: What was measured.
        unit: What `least`, `middle` and `target` are in.
        least: The smallest sample; None when it could not be measured.
        middle: The median of the samples.
        ratio: The smallest sample divided by the smallest of the reference, in the same run.
        reference: What the ratio is to.
        target: What `least` should stay below.
        ratio_middle: The same ratio of the medians.
        ratio_target: What the ratio should stay below.
        note: Why it could not be measured.
    """

    section: str
    name: str
    unit: Unit
    least: float | None = None
    middle: float | None = None
    ratio: float | None = None
    reference: str = ""
    target: float | None = None
    ratio_middle: float | None = None
    ratio_target: float | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether the target is met, as far as one run can say."""
        if self.ratio_target is not None and self.ratio is not None:
            if self.ratio > self.ratio_target:
                return "missed"
            return "met" if (self.ratio_middle or 0) <= self.ratio_target else "met (median missed)"
        if self.target is None or self.least is None:
            return ""
        if self.least > self.target:
            return "missed"
        return "met" if self.middle is None or self.middle <= self.target else "met (median missed)"


def timed(
    section: str,
    name: str,
    unit: Unit,
    samples: Samples,
    reference: tuple[str, Samples] | None = None,
    *,
    less: Samples | None = None,
    target: float | None = None,
    ratio_target: float | None = None,
    per: int = 1,
) -> Row:
    """Returns the row of a time.

    Args:
        section: What it belongs to.
        name: What was measured.
        unit: What to show it in.
        samples: What it took, in seconds.
        reference: What it is compared with, by name.
        less: What of it is not shown, smallest from smallest and median from median; the ratio is of the whole.
        target: What it should stay below, in the unit.
        ratio_target: What the ratio to the reference should stay below.
        per: How many of it one sample is made of, as one of the reference.
    """
    least, middle = (less.min, less.median) if less is not None else (0.0, 0.0)
    return Row(
        section=section,
        name=name,
        unit=unit,
        least=(samples.min - least) / per / _PER_UNIT[unit],
        middle=(samples.median - middle) / per / _PER_UNIT[unit],
        ratio=samples.min / reference[1].min if reference is not None else None,
        ratio_middle=samples.median / reference[1].median if reference is not None else None,
        reference=reference[0] if reference is not None else "",
        target=target,
        ratio_target=ratio_target,
    )


def weighed(section: str, name: str, unit: Unit, size: float, reference: tuple[str, float] | None = None) -> Row:
    """Returns the row of an amount of memory, in bytes."""
    return Row(
        section=section,
        name=name,
        unit=unit,
        least=size / _PER_UNIT[unit],
        ratio=size / reference[1] if reference is not None and reference[1] > 0 else None,
        reference=reference[0] if reference is not None else "",
    )


def lines(title: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yields the table, one section after the other."""
    heads = (title, "min", "median", "unit", "ratio", "to", "target", "")
    cells = [_cells(row) for row in rows]
    widths = [max(len(line[column]) for line in (heads, *cells)) for column in range(len(heads))]
    yield _line(heads, widths)
    section = None
    for row, line in zip(rows, cells, strict=True):
        if row.section != section:
            section = row.section
            yield f"-- {section} ".ljust(sum(widths) + 2 * len(widths) - 2, "-")
        yield _line(line, widths)
    missed = [row for row in rows if row.verdict == "missed"]
    judged = [row for row in rows if row.verdict]
    yield ""
    yield from (f"Not measured: {row.name}, because {row.note}." for row in rows if row.least is None)
    yield f"{len(judged) - len(missed)} of {len(judged)} targets met."


def circumstances(sizes: Sizes) -> str:
    """Returns what a reader has to know to compare this run with another."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    machine = (
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs{load}"
    )
    repetitions = f"{sizes.processes} starts, {sizes.opens} opens, {sizes.reloads} reloads"
    return f"{machine}; {repetitions}, {sizes.reads} x {sizes.loops} reads"


def saved(sizes: Sizes, measured: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """Returns a run as JSON."""
    return {
        "python": sys.version,
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "sizes": attrs.asdict(sizes),
        "benchmarks": {
            name: [{**attrs.asdict(row), "verdict": row.verdict} for row in rows] for name, rows in measured.items()
        },
    }


def _cells(row: Row) -> tuple[str, ...]:
    if row.least is None:
        return (row.name, "-", "-", row.unit, "", "", _target(row), "")
    middle = _number(row.middle) if row.middle is not None else ""
    ratio = f"{_number(row.ratio)}x" if row.ratio is not None else ""
    return (row.name, _number(row.least), middle, row.unit, ratio, row.reference, _target(row), row.verdict)


def _target(row: Row) -> str:
    if row.ratio_target is not None:
        return f"< {row.ratio_target:g}x"
    return f"< {row.target:g}" if row.target is not None else ""


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    is_number = (False, True, True, False, True, False, True, False)
    padded = [
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, is_number, strict=True)
    ]
    return "  ".join(padded).rstrip()


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
