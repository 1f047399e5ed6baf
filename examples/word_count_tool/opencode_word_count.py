"""Lets the model count the words of a file. Reads only inside the project, and writes only what it removes again."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
from anyio import to_thread

from plugin_sdk import JSON, Location, PluginManifest, PluginScope, Tool, ToolCall, ToolFailure, ToolOutput, hookimpl


@attrs.frozen
class Options:
    """What people may set under ``plugins.word-count``.

    Attributes:
        top: How many of the most frequent words the model is shown.
    """

    top: int = attrs.field(default=5, validator=attrs.validators.ge(1))


opencode_plugin = PluginManifest(api=1, options=Options, description="Lets the model count the words of a file.")


@hookimpl
def opencode_tools(location: Location, options: Options, scope: PluginScope) -> dict[str, Tool]:
    """Contributes the tool ``word_count``; its tables of all words live as long as the Location is open."""
    tables = TemporaryDirectory(prefix="word-count-")
    scope.on_close(tables.cleanup)

    async def execute(call: ToolCall) -> ToolOutput:
        path = find_file(location, call.arguments.get("path"))
        words = await to_thread.run_sync(count_words, path)
        table = await to_thread.run_sync(write_table, words, Path(tables.name, f"{path.name}.tsv"))
        shown = ", ".join(f"{word} ({times})" for word, times in words.most_common(options.top))
        return ToolOutput(
            title=path.name,
            text=f"{words.total()} words, {len(words)} different. Most frequent: {shown}. All of them: {table}",
            structured={"total": words.total(), "different": len(words)},
        )

    return {
        "word_count": Tool(
            description="Counts the words of a text file in the project, and says which are most frequent.",
            parameters={
                "type": "object",
                "properties": {"path": {"type": "string", "description": "Relative to the working directory."}},
                "required": ["path"],
            },
            execute=execute,
            effects=frozenset({"reads"}),
        )
    }


def find_file(location: Location, path: JSON) -> Path:
    """Returns the file that the model means.

    Raises:
        ToolFailure: It is not a file of the project; the model is told, and can try another.
    """
    if not isinstance(path, str):
        raise ToolFailure("Say which file to count, as 'path'.")
    file = (location.directory / path).resolve()
    if not file.is_relative_to(location.root):
        raise ToolFailure(f"'{path}' is outside of the project.")
    if not file.is_file():
        raise ToolFailure(f"There is no file '{path}'.")
    return file


def count_words(path: Path) -> Counter[str]:
    """Returns how often each word occurs.

    Raises:
        ToolFailure: The file is not text.
    """
    try:
        return Counter(re.findall(r"\w+", path.read_text(encoding="utf-8").lower()))
    except UnicodeDecodeError as error:
        raise ToolFailure(f"'{path.name}' is not a text file.") from error


def write_table(words: Counter[str], path: Path) -> Path:
    """Writes every word with its number, most frequent first, and returns the file."""
    path.write_text("".join(f"{word}\t{times}\n" for word, times in words.most_common()), encoding="utf-8")
    return path
