"""Runs other processes that use a store, so that they can be stopped, killed and asked."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]

_BEGINNING = """
import os, signal, sys
import anyio
from plugins_builtin.storage_jsonfiles import open_store
from plugins_builtin.storage_jsonfiles.files import Files
URL = sys.argv[1]

def say(what):
    print(what, flush=True)

def hear():
    return sys.stdin.readline().strip()
"""


@contextmanager
def child(script: str, url: str) -> Iterator[subprocess.Popen[str]]:
    """Run a script that finds ``URL``, ``say`` and ``hear``; kill it at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", _BEGINNING + script, url],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        kill(process)


def kill(process: "subprocess.Popen[str]") -> None:
    """Kill a child, as the system does when memory runs out."""
    process.kill()
    process.communicate()


def heard(process: "subprocess.Popen[str]") -> str:
    """Return the next line that a child says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: "subprocess.Popen[str]", what: str) -> None:
    """Say a line to a child."""
    assert process.stdin is not None
    process.stdin.write(what + "\n")
    process.stdin.flush()
