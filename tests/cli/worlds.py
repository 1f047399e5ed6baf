"""Sessions to look at from the command line: run in this process, with a plugin whose world is a file."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from plugin_sdk.testing import StillClock
from plugins_builtin import storage_jsonfiles, storage_sqlite
from tests.cli.terminal import configure, write
from tests.context.running import Running, running

PLUGIN = """\
import json
from pathlib import Path

from plugin_sdk import ABSENT, UNAVAILABLE, ContextSource, hookimpl

WORLD = Path(__file__).with_name("world.json")


def source(name):
    async def load():
        value = json.loads(WORLD.read_text()).get(name, ABSENT)
        if value == "unavailable":
            return UNAVAILABLE
        if value == "raises":
            raise OSError("no \\x1b[31mnet\\n")
        return value

    def baseline(value):
        return "" if value == "renders nothing" else f"The {name} is {value}."

    return ContextSource(
        key=f"world/{name}",
        load=load,
        baseline=baseline,
        update=lambda _before, value: f"The {name} is now {value}.",
        removed=lambda _value: f"There is no {name} any more.",
        required=name != "news",
    )


@hookimpl
def opencode_context_sources():
    yield from map(source, ("flag", "news", "rules"))
"""

BUILTINS = ("date", "environment", "instructions", "references", "skills")


class World:
    """A plugin of the person's, told by a file, and nothing else that tells anything.

    Args:
        folder: Where both are.
        things: What is so, by name; the plugin tells 'flag', 'news' (which is not required) and 'rules'.
    """

    def __init__(self, folder: Path, block: tuple[str, ...] = BUILTINS, **things: Any) -> None:
        self.folder = folder
        self.plugin = write(folder / "world.py", PLUGIN)
        self.now(**things)
        configure(plugin=[str(self.plugin)], plugin_block=list(block))

    def now(self, **things: Any) -> None:
        """Make the world so."""
        write(self.folder / "world.json", json.dumps(things))

    def run(
        self, work: Callable[[Running], Awaitable[object]], *, url: str, directory: Path, session: str = "ses_1"
    ) -> None:
        """Run a session by hand, in a store."""

        async def main() -> None:
            plugins = {
                "storage_sqlite": storage_sqlite,
                "storage_jsonfiles": storage_jsonfiles,
                "world": str(self.plugin),
            }
            async with running(directory, plugins, storage=url, session=session, clock=StillClock()) as run:
                await work(run)

        anyio.run(main)
