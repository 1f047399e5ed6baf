"""Other processes for the tests of this folder. Tests nothing itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(code: str, *arguments: object, through: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, whatever that is."""
    return subprocess.run(
        [*through, *_command(code, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False
    )


def output(code: str, *arguments: object, through: Sequence[str] = ()) -> str:
    """Runs a program that must succeed, and returns what it printed."""
    done = run(code, *arguments, through=through)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextmanager
def held(code: str, *arguments: object) -> Iterator[None]:
    """Runs a program that prints a line when it is ready and ends when its input does."""
    pipe = subprocess.PIPE
    with subprocess.Popen(_command(code, arguments), cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            assert child.stdout.readline().strip() == "ready"
            yield
        finally:
            child.stdin.close()
            child.wait(timeout=30)


def bound_by_permissions() -> list[str]:
    """Returns what makes a program heed permissions even when root runs it."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("Root ignores permissions, and 'setpriv' is not installed.")
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


def _command(code: str, arguments: Sequence[object]) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
