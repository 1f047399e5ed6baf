"""Writes the project of a plugin, as a stranger would have it: a package with a submodule, and an entry point."""

import shutil
from pathlib import Path

HATCHLING = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build]
dev-mode-dirs = ["."]

[tool.hatch.build.targets.wheel]
packages = ["acme"]
"""

FINDER = """
[build-system]
requires = []
build-backend = "finder_backend"
backend-path = ["."]
"""

PROJECT = """
[project]
name = "acme-plugin"
version = "1.2.3"
dependencies = ["opencode-core"]

[project.entry-points."opencode.plugins"]
acme = "acme"
"""

PLUGIN = '''
"""Greets, in the words of a submodule."""

from acme.words import GREETING
from plugin_sdk import ContextSource, Tool, ToolOutput, hookimpl


async def load():
    return GREETING


async def greet(call):
    return ToolOutput(text=GREETING)


@hookimpl
def opencode_context_sources():
    yield ContextSource(
        key="acme/greeting",
        load=load,
        baseline=lambda word: f"People here say {word}.",
        update=lambda before, word: f"People here now say {word}.",
    )


@hookimpl
def opencode_tools():
    return {"greet": Tool(description="Greets.", execute=greet)}
'''


def write_plugin_project(folder: Path, *, build_system: str = HATCHLING, entry_points: str = "") -> Path:
    """Write the project of the plugin ``acme`` into a new folder, and return the folder."""
    package = folder / "acme"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(PLUGIN.lstrip(), encoding="utf-8")
    (package / "words.py").write_text('GREETING = "hello"\n', encoding="utf-8")
    (folder / "pyproject.toml").write_text(PROJECT + entry_points + build_system, encoding="utf-8")
    if build_system == FINDER:
        shutil.copy(Path(__file__).with_name("finder_backend.py"), folder)
    return folder
