"""Prints which behaviours of the catalogue a passing test shows. Never judges: gaps do not fail the run."""

import json
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from tests.support.catalogue import BadCatalogue, Behaviour, read_catalogue

Report = dict[str, list[dict[str, str]]]


@attrs.frozen(kw_only=True)
class Tally:
    """The ids of one section: shown by a passing test, named but not proved, and named by no test."""

    section: str
    shown: list[str]
    unproved: list[str]
    missing: list[str]

    @property
    def total(self) -> int:
        return len(self.shown) + len(self.unproved) + len(self.missing)


def main(arguments: list[str]) -> int:
    """Print the table for the report at the given path, made by `pytest --behaviours-report PATH`."""
    if len(arguments) != 1:
        print("usage: python -m tests.support.print_behaviours REPORT", file=sys.stderr)
        return 2
    try:
        report: Report = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
        catalogue = read_catalogue(Path.cwd())
    except FileNotFoundError:
        print(f"No report at '{arguments[0]}'. The run ended before it could write one.", file=sys.stderr)
        return 1
    except BadCatalogue as exc:
        print(exc, file=sys.stderr)
        return 1
    print("\n".join(render(tallies(catalogue.values(), report))))
    return 0


def tallies(behaviours: Iterable[Behaviour], report: Report) -> list[Tally]:
    """Return one tally per section, in the order of the catalogue."""
    sections: dict[str, list[str]] = {}
    for behaviour in behaviours:
        sections.setdefault(behaviour.section, []).append(behaviour.id)
    return [_tally(section, ids, report) for section, ids in sections.items()]


def render(rows: list[Tally]) -> Iterator[str]:
    """Yield the table's lines: a count per section, and below it the ids that no passing test shows."""
    width = max((len(row.section) for row in rows), default=0)
    for row in rows:
        yield f"{row.section:<{width}}  {len(row.shown):>3} of {row.total:>3}"
        yield from _ids_line("named, but not passing", row.unproved)
        yield from _ids_line("no test", row.missing)
    shown, total = sum(len(row.shown) for row in rows), sum(row.total for row in rows)
    yield ""
    yield f"{shown} of {total} behaviours have a passing test."


def _tally(section: str, ids: list[str], report: Report) -> Tally:
    shown = [id for id in ids if _is_shown(report.get(id, []))]
    missing = [id for id in ids if not report.get(id)]
    return Tally(
        section=section,
        shown=shown,
        unproved=[id for id in ids if id not in shown and id not in missing],
        missing=missing,
    )


def _is_shown(tests: list[dict[str, str]]) -> bool:
    outcomes = {test["outcome"] for test in tests}
    return "passed" in outcomes and "failed" not in outcomes


def _ids_line(label: str, ids: list[str]) -> list[str]:
    text = f"{label}: {', '.join(compact(ids))}"
    return textwrap.wrap(text, 100, initial_indent="    ", subsequent_indent="      ") if ids else []


def compact(ids: list[str]) -> list[str]:
    """Return the ids with consecutive numbers folded: `SC-02`, `SC-03`, `SC-04` become `SC-02..04`."""
    runs: list[list[str]] = []
    for id in ids:
        if runs and _follows(runs[-1][-1], id):
            runs[-1].append(id)
        else:
            runs.append([id])
    return [run[0] if len(run) == 1 else f"{run[0]}..{run[-1].rpartition('-')[2]}" for run in runs]


def _follows(before: str, after: str) -> bool:
    (prefix, _, number), (next_prefix, _, next_number) = before.rpartition("-"), after.rpartition("-")
    return prefix == next_prefix and int(next_number) == int(number) + 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
