"""Tells the model what the person and the project instruct it to do, as one ordered whole. Executes nothing in it."""

from __future__ import annotations

from collections.abc import Iterator

from plugin_sdk import ContextSource, PluginManifest, PluginScope, hookimpl
from plugins_builtin.instructions.options import InstructionsOptions
from plugins_builtin.instructions.service import InstructionService
from plugins_builtin.instructions.telling import Instructions

opencode_plugin = PluginManifest(
    options=InstructionsOptions,
    keys={"instructions": "files"},
    description="Tells the model the instructions of the person and of the project.",
)


@hookimpl
def opencode_context_sources(options: InstructionsOptions, scope: PluginScope) -> Iterator[ContextSource[Instructions]]:
    """Contributes all instructions as one source, because each supersedes the ones before it."""
    yield InstructionService.of(options, scope).source()
