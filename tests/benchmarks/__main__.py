"""Runs the benchmarks of this folder and prints their tables. Never judges: a missed target does not fail the run.

`python -m tests.benchmarks` runs all of them, `python -m tests.benchmarks kernel --quick` those named. Each is a
module with a `measure(sizes)` that yields rows; modules that start with an underscore are what they share.
"""

import argparse
import importlib
import json
import pkgutil
import sys
from pathlib import Path

from tests.benchmarks._report import Row, circumstances, lines, saved
from tests.benchmarks._sampling import FULL, QUICK, Sizes

HERE = Path(__file__).parent


def main(arguments: list[str]) -> int:
    """Runs the wanted benchmarks, or all; returns 2 when the arguments are wrong."""
    known = sorted(each.name for each in pkgutil.iter_modules([str(HERE)]) if not each.name.startswith("_"))
    wanted = _parser().parse_args(arguments)
    unknown = sorted(set(wanted.names) - set(known))
    if unknown:
        print(f"No benchmark '{unknown[0]}'. There are: {', '.join(known)}.", file=sys.stderr)
        return 2
    sizes = (QUICK if wanted.quick else FULL).with_plugins(wanted.plugins)
    print(circumstances(sizes), end="\n\n", flush=True)
    measured = {name: _measure(name, sizes) for name in wanted.names or known}
    for name, rows in measured.items():
        print("\n".join(lines(name, rows)), end="\n\n")
    if wanted.json is not None:
        wanted.json.write_text(json.dumps(saved(sizes, measured), indent=2) + "\n", encoding="utf-8")
        print(f"Saved in {wanted.json}.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Measures, and prints a table.")
    parser.add_argument("names", nargs="*", help="the benchmarks to run; all of them when none is named")
    parser.add_argument("--quick", action="store_true", help="few repetitions: to see that it runs, not to quote")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also save the results")
    parser.add_argument("--plugins", type=int, default=100, metavar="N", help="what 'many plugins' is (%(default)s)")
    return parser


def _measure(name: str, sizes: Sizes) -> list[Row]:
    rows = []
    for row in importlib.import_module(f"tests.benchmarks.{name}").measure(sizes):
        rows.append(row)
        if sys.stderr.isatty():
            print(f"  {row.section}: {row.name}", file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
