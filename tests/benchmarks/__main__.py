"""Runs the benchmarks of this folder: each is a module or package with a `main()` that prints a table.

`python -m tests.benchmarks` runs all of them, `python -m tests.benchmarks kernel` those named.
"""

import importlib
import pkgutil
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(wanted: list[str]) -> int:
    """Run the wanted benchmarks, or all; return 2 when one of them does not exist."""
    known = sorted(module.name for module in pkgutil.iter_modules([str(HERE)]) if module.name != "__main__")
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        print(f"No benchmark '{unknown[0]}'. There are: {', '.join(known) or 'none yet'}.", file=sys.stderr)
        return 2
    for name in wanted or known:
        print(f"== {name}")
        importlib.import_module(f"tests.benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
