"""Loads a plugin in processes of its own, to see what it says there. Judges nothing.

Run as a program, it is such a process: its argument says what to load, and the last line of its output is its answer.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import attrs

from opencode_core.model.json import JSON, plain
from plugin_sdk.testing import StillClock, load_plugin


class NoValueElsewhere(Exception):
    """A process could not load the plugin, or saw nothing in the world of the test."""


@attrs.frozen(kw_only=True)
class Elsewhere:
    """What another process is to load, and where.

    Attributes:
        module: The module to import; empty when the plugin is named otherwise.
        named: What names the plugin in a list of plugins, such as its file; empty when it is a module.
        key: The source.
        directory: The Location.
        options: The plugin's options.
        at: The time, in ISO 8601.
        environ: The environment variables.
        config_dir: Where the person's own configuration is.
    """

    module: str
    named: str
    key: str
    directory: str
    options: dict[str, JSON]
    at: str
    environ: dict[str, str]
    config_dir: str

    @classmethod
    def of(
        cls,
        plugin: object,
        *,
        key: str,
        directory: Path,
        options: Mapping[str, JSON],
        at: datetime,
        environ: Mapping[str, str],
        config_dir: Path,
    ) -> Elsewhere | None:
        """Says how another process finds a plugin; None when it cannot."""
        if not isinstance(plugin, (ModuleType, str, Path)):
            return None
        plugin = plugin.absolute() if isinstance(plugin, Path) else plugin
        return cls(
            module=plugin.__name__ if isinstance(plugin, ModuleType) else "",
            named="" if isinstance(plugin, ModuleType) else str(plugin),
            key=key,
            directory=str(directory),
            options=dict(options),
            at=at.isoformat(),
            environ=dict(environ),
            config_dir=str(config_dir),
        )


def ask_elsewhere(place: Elsewhere, *, seeds: Sequence[int], patience: float) -> list[dict[str, Any]]:
    """Returns the encoded value and the baseline that each process found, one for each seed of Python's hashes.

    Raises:
        NoValueElsewhere: One of them found none.
    """
    asked = [_start(place, seed) for seed in seeds]
    answers = []
    try:
        for process in asked:
            out, err = process.communicate(timeout=patience)
            if process.returncode:
                raise NoValueElsewhere((err.strip().splitlines() or ["it ended without a word"])[-1])
            answers.append(json.loads(out.splitlines()[-1]))
    except subprocess.TimeoutExpired as error:
        raise NoValueElsewhere(f"it did not answer within {patience:g} seconds") from error
    finally:
        for process in asked:
            process.kill()
            process.communicate()
    return answers


def _start(place: Elsewhere, seed: int) -> subprocess.Popen[str]:
    path = os.pathsep.join(each or os.getcwd() for each in sys.path)
    return subprocess.Popen(
        [sys.executable, "-m", __name__, json.dumps(attrs.asdict(place))],
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


async def answer(place: Elsewhere) -> dict[str, Any]:
    """Loads the plugin, and returns the encoded value of the source and its baseline."""
    plugin: object = importlib.import_module(place.module) if place.module else place.named
    async with load_plugin(
        plugin,
        directory=place.directory,
        options=place.options,
        clock=StillClock(datetime.fromisoformat(place.at)),
        environ=place.environ,
        config_dir=Path(place.config_dir),
    ) as loaded:
        value = (await loaded.host.observe()).values[place.key]
        source = (await loaded.sources())[place.key]
        return {"value": plain(source.encode(value)), "text": source.baseline(value)}


def main(argument: str) -> None:
    """Answers on the standard output."""
    with redirect_stdout(sys.stderr):  # whatever the plugin prints is no answer
        found = anyio.run(answer, Elsewhere(**json.loads(argument)))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
