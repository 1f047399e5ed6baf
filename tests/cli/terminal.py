"""Runs the command line as a person does: in a process of its own, with a person's folders and plugins."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = [sys.executable, "-m", "opencode_core.cli"]

GREETS = """\
import click
from plugin_sdk import PluginManifest, Tool, hookimpl

opencode_plugin = PluginManifest(description="Greets people.")

@hookimpl
def opencode_cli(cli):
    @cli.command()
    @click.argument("name", default="you")
    def hello(name):
        "Say hello."
        click.echo(f"hello {name}")
"""

TELLS = """\
from plugin_sdk import ContextSource, hookimpl

async def load():
    return "{text}"

@hookimpl
def opencode_context_sources():
    yield ContextSource(key="{key}", load=load, baseline=str, update=lambda before, now: now)
"""


def write(path: Path, text: str) -> Path:
    """Write a file, with the folders that it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def configure(**settings: object) -> None:
    """Write the person's configuration."""
    write(Path(os.environ["OPENCODE_CONFIG_DIR"]) / "opencode.json", json.dumps(settings))


def run(*args: str, cwd: Path | None = None, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run one command to its end, without a terminal."""
    return subprocess.run(
        [*PROGRAM, *args],
        cwd=cwd,
        env={**os.environ, **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def running(*args: str, cwd: Path) -> Iterator[tuple["subprocess.Popen[str]", Callable[[str], list[str]]]]:
    """Start a command, and offer to read its output until a line contains a text."""
    process = subprocess.Popen(
        [*PROGRAM, *args], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )

    def until(text: str) -> list[str]:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if text in line:
                return lines
        raise AssertionError(f"'{text}' was never printed:\n" + "\n".join(lines))

    with process:
        try:
            yield process, until
        finally:
            process.kill()


def sockets() -> list[Path]:
    """Return where running hosts of this person listen."""
    return sorted((Path(os.environ["OPENCODE_DATA_DIR"]) / "hosts").glob("*"))
