"""The command line. Answers ``--version`` before anything else is imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command, and returns the exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    args = sys.argv[1:] if argv is None else list(argv)
    if args == ["--version"]:
        from importlib.metadata import version

        print(f"opencode-core {version('opencode-core')}")
        return 0
    from opencode_core.cli.app import run

    return run(args)
