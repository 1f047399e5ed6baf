"""Writes the pages of docs/reference from the code, so that they cannot disagree with it. Edits nothing else.

Run by `make docs`. With `--check` it writes nothing: it shows what is stale, and then exits with 1.
"""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import attrs

import plugin_sdk
from opencode_core import errors, hookspecs
from opencode_core.model import fault, message, part, prompt
from opencode_core.model import session as session_values
from opencode_core.model.context import SnapshotEntry
from opencode_core.model.event import base, conversation, live, plugin, session
from opencode_core.model.event.base import EventKind, SessionEvent
from opencode_core.plugins.relay import MAY_BE_ASYNC
from opencode_core.ports import storage as ports_storage
from opencode_core.session.listing import Listing
from opencode_core.session.store import SessionStore
from opencode_core.storage.log import Page
from plugin_sdk import http, testing, threads
from plugin_sdk import sessions as sdk_sessions
from plugin_sdk import storage as sdk_storage
from plugin_sdk import text as sdk_text

COMMAND = "make docs"
ROOT = Path(__file__).resolve().parent.parent
SECTIONS = ("When", "Args", "Returns", "Raises", "Example", "Since", "Builtins")
SHARED_ARGUMENTS = {
    "options": "The plugin's own validated options.",
    "scope": "This plugin's part of the scope that opens; it registers its clean-up there.",
}

_NOTE = "<!-- Written by docs/generate.py from {source}; edit that, then run `make docs`. -->"
_SECTION = re.compile(rf"^({'|'.join((*SECTIONS, 'Attributes', 'Laws'))}):[ \t]*(.*)$")
_ENTRY = re.compile(r"^(\w+): (.*)$")
_PRIVATE = re.compile(r"\b_\w+\.")
_EVENT_FAMILIES = {
    session: "Sessions",
    conversation: "Conversations",
    live: "Live",
    plugin: "Plugins",
    base: "What all of them are",
}
_SESSION_FAMILIES = {
    session_values: "Sessions",
    message: "Messages",
    part: "Parts",
    prompt: "Prompts",
    fault: "Faults",
}
_MODULES_OF_EXAMPLES = ("attrs", "click")


@attrs.frozen(kw_only=True)
class HookDoc:
    """One hook as its docstring describes it.

    Attributes:
        name: The hook.
        signature: Its exact signature in the contract.
        summary: The first sentence or sentences.
        is_async: Whether it may be an async function.
        sections: The text of each section, without its indentation.
        arguments: All arguments of the signature.
    """

    name: str
    signature: str
    summary: str
    is_async: bool
    sections: Mapping[str, str]
    arguments: tuple[str, ...]

    @property
    def example(self) -> str:
        """The example with the imports that it needs, a whole plugin."""
        code = self.sections["Example"]
        used = set(_names_in(compile(code, self.name, "exec", dont_inherit=True)))
        imports = [f"import {name}\n" for name in _MODULES_OF_EXAMPLES if name in used]
        names = ", ".join(_sorted_names(used & set(plugin_sdk.__all__)))
        gap = "\n" if imports else ""
        return f"{''.join(imports)}{gap}from plugin_sdk import {names}\n\n\n{code}\n"


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Write the pages, or with `--check` say which are stale."""
    if arguments not in ([], ["--check"]):
        print("usage: docs/generate.py [--check]", file=sys.stderr)
        return 2
    if arguments:
        differences = list(stale(root))
        for _path, difference in differences:
            print(difference)
        if differences:
            print(f"{len(differences)} pages are stale. Run `{COMMAND}`.")
        return 1 if differences else 0
    for path, page in pages().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(page, encoding="utf-8")
    return 0


def pages() -> dict[Path, str]:
    """Return every generated page, by its path from the root of the repository."""
    reference = Path("docs", "reference")
    return {reference / f"{name}.md": write() for name, write in _PAGES.items()}


def stale(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each page that is not what the code says now, with the difference."""
    for path, wanted in pages().items():
        there = (root / path).read_text(encoding="utf-8") if (root / path).is_file() else ""
        if there != wanted:
            lines = difflib.unified_diff(
                there.splitlines(), wanted.splitlines(), str(path), f"{path} as it should be", lineterm="", n=1
            )
            yield path, "\n".join(lines)


def hooks() -> list[HookDoc]:
    """Return every hook of the contract, in its order."""
    return [
        _hook(name, function)
        for name, function in vars(hookspecs).items()
        if name.startswith("opencode_") and isinstance(function, FunctionType)
    ]


def _hook(name: str, function: FunctionType) -> HookDoc:
    summary, sections = _parsed(function)
    return HookDoc(
        name=name,
        signature=_signature(name, function),
        summary=summary,
        is_async=name in MAY_BE_ASYNC,
        sections=sections,
        arguments=tuple(inspect.signature(function).parameters),
    )


def _signature(name: str, function: FunctionType) -> str:
    signature = inspect.signature(function)
    arguments = [f"{each.name}: {each.annotation}" for each in signature.parameters.values()]
    line = f"def {name}({', '.join(arguments)}) -> {signature.return_annotation}: ..."
    if len(line) <= 100:
        return line
    listed = "".join(f"    {argument},\n" for argument in arguments)
    return f"def {name}(\n{listed}) -> {signature.return_annotation}: ..."


def _parsed(value: object) -> tuple[str, dict[str, str]]:
    """Return the prose of a docstring and its sections; a section is inline, or indented below its name."""
    summary: list[str] = []
    sections: dict[str, list[str]] = {}
    current = summary
    for line in (inspect.getdoc(value) or "").splitlines():
        if match := _SECTION.match(line):
            current = sections.setdefault(match[1], [])
            if match[2]:
                current.append(match[2])
        else:
            current.append(line)
    return _text(summary), {name: _text(lines) for name, lines in sections.items()}


def _text(lines: list[str]) -> str:
    """Join lines, without the indentation of all that follow an inline beginning."""
    if lines and not lines[0].startswith(" "):
        return "\n".join([lines[0], *textwrap.dedent("\n".join(lines[1:])).splitlines()]).strip()
    return textwrap.dedent("\n".join(lines)).strip()


def _entries(text: str) -> dict[str, str]:
    """Return `name: text` entries, each on one line."""
    entries: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if match := _ENTRY.match(line):
            name = match[1]
            entries[name] = match[2]
        elif name and line.strip():
            entries[name] += f" {line.strip()}"
    return entries


def _hooks_page() -> str:
    described = hooks()
    lines = [
        "# Hooks",
        "",
        _NOTE.format(source="opencode_core/hookspecs.py"),
        "",
        f"Every hook that a plugin may implement, in the order of a run. Hook API version: {hookspecs.HOOK_API}.",
        "",
        *_markdown(inspect.getdoc(hookspecs) or "").split("\n\n", 1)[1].splitlines(),
        "",
        "| hook | what it does | may be async |",
        "|---|---|---|",
        *(_hook_row(hook) for hook in described),
        "",
    ]
    for hook in described:
        lines += _hook_section(hook)
    return _page(lines)


def _hook_row(hook: HookDoc) -> str:
    may_be_async = "yes" if hook.is_async else "no"
    return f"| [`{hook.name}`](#{hook.name}) | {_one_line(_sentence(hook.summary))} | {may_be_async} |"


def _hook_section(hook: HookDoc) -> Iterator[str]:
    yield from (f"## `{hook.name}`", "", _markdown(hook.summary.removesuffix(" May be async.")), "")
    yield from ("```python", hook.signature, "```", "")
    yield from (f"**When.** {_markdown(_one_line(hook.sections['When']))}", "")
    yield from ("**Arguments.**", "")
    described = {**SHARED_ARGUMENTS, **_entries(hook.sections.get("Args", ""))}
    yield from (f"- `{name}`: {_markdown(described[name])}" for name in hook.arguments)
    yield from ("", f"**Returns.** {_markdown(_one_line(hook.sections['Returns']))}", "")
    yield from ("**When it raises.**", "")
    for name, text in _entries(hook.sections["Raises"]).items():
        yield f"- {name if name == 'Anything' else f'`{name}`'}: {_markdown(text)}"
    yield from ("", f"**Async.** {'`async def` is accepted.' if hook.is_async else 'A plain function only.'}", "")
    yield from ("**Example.**", "", "```python", hook.example.rstrip(), "```", "")
    yield f"**Since** hook API {hook.sections['Since']}. **Builtins that use it:** {hook.sections['Builtins']}."
    yield ""


def _sdk_page() -> str:
    groups: dict[str, list[str]] = {}
    for name in _sorted_names(set(plugin_sdk.__all__)):
        groups.setdefault(_kind(getattr(plugin_sdk, name)), []).append(name)
    lines = [
        "# `plugin_sdk`",
        "",
        _NOTE.format(source="plugin_sdk/__init__.py and what it re-exports"),
        "",
        _markdown(inspect.getdoc(plugin_sdk) or ""),
        "",
    ]
    for kind in ("Constants and aliases", "Functions", "Values", "Events", "Protocols", "Errors"):
        lines += [f"## {kind}", ""]
        for name in groups.pop(kind, []):
            lines += _export(name)
        lines += [""]
    assert not groups, groups
    for module in (http, sdk_text, threads, testing):
        lines += [f"## `{module.__name__}`", "", _markdown(inspect.getdoc(module) or ""), ""]
        for name in sorted(module.__all__):
            lines += _member(getattr(module, name), name)
    return _page(lines)


def _storage_page() -> str:
    laws = inspect.getdoc(ports_storage) or ""
    lines = [
        "# `plugin_sdk.storage`",
        "",
        _NOTE.format(source="opencode_core/ports/storage.py and plugin_sdk/storage"),
        "",
        _markdown(inspect.getdoc(sdk_storage) or ""),
        "",
        "## Laws",
        "",
        *_laws(laws.split("\n\n", 2)[2]),
    ]
    for kind in ("Protocols", "Values", "Functions"):
        lines += [f"## {kind}", ""]
        for name in sorted(sdk_storage.__all__):
            value = getattr(sdk_storage, name)
            if _storage_kind(value) == kind:
                lines += _member(value, name, typed=True)
    lines += [
        "## Constants and aliases",
        "",
        f"- `DEEPEST`: {sdk_storage.DEEPEST}, how many lists and mappings may stand inside each other in a document.",
        *(f"- `{name}`: {_markdown(_constants(sdk_storage, whole=True)[name])}" for name in ("JSON", "Key")),
    ]
    lines += ["", "## Errors", "", "What each one means to whom it is raised at is in [Errors](errors.md).", ""]
    for name in sorted(sdk_storage.__all__):
        value = getattr(sdk_storage, name)
        if inspect.isclass(value) and issubclass(value, BaseException):
            lines += [f"- `{_constructor(value)}`: {_markdown(_one_line(_parsed(value)[0]))}"]
    return _page(lines)


def _laws(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        name, _, law = paragraph.partition("\n")
        yield from (f"**{name}.** {_markdown(_one_line(law))}", "")


def _storage_kind(value: Any) -> str:
    if inspect.isfunction(value) or hasattr(value, "cache_info"):
        return "Functions"
    if not inspect.isclass(value) or issubclass(value, BaseException):
        return ""
    return "Protocols" if getattr(value, "_is_protocol", False) else "Values"


def _sessions_page() -> str:
    summary, sections = _parsed(SessionStore)
    lines = [
        "# The session API",
        "",
        _NOTE.format(source="opencode_core/session/store.py and opencode_core/model"),
        "",
        "`await host.sessions()` returns a `SessionStore`; [Sessions](../sessions.md) shows how it is used. The values",
        "below can be imported from `plugin_sdk.sessions`, events from [`plugin_sdk.events`](events.md).",
        "",
        *("## `SessionStore`", "", _markdown(_one_line(summary)), ""),
        *_fields(SessionStore, _entries(sections["Attributes"])),
        "",
    ]
    for name, function in _public_functions(SessionStore):
        lines += _operation(name, function)
    lines += ["## Pages", ""]
    lines += [*_value(Listing), *_value(Page)]
    for module, title in _SESSION_FAMILIES.items():
        lines += [f"## {title}", "", _markdown(_one_line(inspect.getdoc(module) or "")), ""]
        for kind in _classes_of(module):
            lines += _value(kind)
        aliases = [name for name in sdk_sessions.__all__ if name in _assigned_in(module)]
        for name in aliases:
            lines += [f"### `{name}`", "", _markdown(_constants(sdk_sessions, whole=True)[name]), ""]
    lines += ["## Context", "", *_value(SnapshotEntry)]
    return _page(lines)


def _public_functions(kind: type) -> Iterator[tuple[str, FunctionType]]:
    for name, member in vars(kind).items():
        if isinstance(member, FunctionType) and not name.startswith("_"):
            yield name, member


def _operation(name: str, function: FunctionType) -> Iterator[str]:
    summary, sections = _parsed(function)
    yield from (f"### `{name}`", "", _markdown(_one_line(summary)), "")
    yield from ("```python", _definition(name, function), "```", "")
    yield from (f"- `{each}`: {_markdown(text)}" for each, text in _entries(sections.get("Args", "")).items())
    yield from ("", *_raised(sections), "")


def _definition(name: str, function: FunctionType) -> str:
    """Return how a method is called, one argument a line when it is long."""
    line = f"{'async ' if inspect.iscoroutinefunction(function) else ''}def {name}({_typed(function, 1)})"
    end = f"{_returned(function)}: ..."
    if len(line + end) <= 100:
        return line + end
    head, _, _ = line.partition("(")
    listed = "".join(f"    {argument},\n" for argument in _typed_arguments(function, 1))
    return f"{head}(\n{listed}){end}"


def _raised(sections: Mapping[str, str]) -> Iterator[str]:
    if entries := _entries(sections.get("Raises", "")):
        yield from ("Raises:", "", *(f"- `{name}`: {_markdown(text)}" for name, text in entries.items()))


def _value(kind: type) -> Iterator[str]:
    summary, sections = _parsed(kind)
    yield from (f"### `{kind.__name__}`", "", _markdown(_one_line(summary)), "")
    yield from (*_fields(kind, _entries(sections.get("Attributes", ""))), "")
    properties = [(name, member.fget) for name, member in vars(kind).items() if isinstance(member, property)]
    yield from (
        f"- `{name}`, a property: {_markdown(_one_line(_parsed(function)[0]))}" for name, function in properties
    )
    yield ""


def _events_page() -> str:
    lines = [
        "# Events",
        "",
        _NOTE.format(source="opencode_core/model/event"),
        "",
        "Every event can be imported from `plugin_sdk.events`. A durable one reaches subscribers and hooks inside a",
        "`Recorded`, which says whose log it is in, and where. Values such as `Prompt` and `FileDiff` are in",
        "[The session API](sessions.md), and can be imported from `plugin_sdk.sessions`.",
        "",
    ]
    for module, title in _EVENT_FAMILIES.items():
        lines += [f"## {title}", "", _markdown(_one_line(inspect.getdoc(module) or "")), ""]
        for event in _classes_of(module):
            lines += _event(event)
    return _page(lines)


def _classes_of(module: Any) -> Iterator[type]:
    yield from (each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__)


def _event(event: type) -> Iterator[str]:
    summary, sections = _parsed(event)
    yield from (f"### `{event.__name__}`", "", _markdown(_one_line(summary)), "")
    kind = vars(event).get("kind")
    if isinstance(kind, EventKind):
        yield from (f"`{kind.type}`, version {kind.version}{'' if kind.public else ', private'}.", "")
    inherited = {field.name for field in attrs.fields(SessionEvent)} if issubclass(event, SessionEvent) else set()
    described = _entries(sections.get("Attributes", ""))
    fields = [line for line in _fields(event, described) if line.split("`")[1] not in inherited]
    yield from fields
    if fields:
        yield ""


def _member(value: Any, name: str, *, typed: bool = False) -> Iterator[str]:
    summary, sections = _parsed(value)
    arguments = "" if inspect.isclass(value) else _typed(value, 0) if typed else _arguments(value, 0)
    call = name if inspect.isclass(value) else f"{name}({arguments}){_returned(value) if typed else ''}"
    yield from (f"### `{call}`", "", _markdown(_one_line(summary)), "")
    if typed and inspect.isclass(value) and not getattr(value, "_is_protocol", False):
        yield from (f"Made with `{_constructor(value)}`.", "")
    described = _entries(sections.get("Args", "") or sections.get("Attributes", ""))
    yield from (f"- `{each}`: {_markdown(text)}" for each, text in described.items())
    if inspect.isclass(value):
        yield from ("",) if typed else ()
        yield from _methods(value, typed=typed)
    elif typed:
        yield from ("", *_raised(sections))
    yield ""


def _kind(value: Any) -> str:
    if isinstance(value, FunctionType):
        return "Functions"
    if not inspect.isclass(value):
        return "Constants and aliases"
    if issubclass(value, BaseException):
        return "Errors"
    if issubclass(value, plugin_sdk.Event):
        return "Events"
    return "Protocols" if getattr(value, "_is_protocol", False) else "Values"


def _export(name: str) -> Iterator[str]:
    value = getattr(plugin_sdk, name)
    if isinstance(value, FunctionType):
        yield from _member(value, name)
        return
    if not inspect.isclass(value):
        yield f"- `{name}`: {_markdown(_constants(plugin_sdk)[name])}"
        return
    summary, sections = _parsed(value)
    laws = f" *Laws:* {_one_line(sections['Laws'])}" if "Laws" in sections else ""
    yield from (f"### `{name}`", "", _markdown(_one_line(summary) + laws), "")
    described = _entries(sections.get("Attributes", ""))
    members = list(_fields(value, described)) or list(_methods(value))
    yield from members
    if members:
        yield ""


def _fields(kind: type, described: Mapping[str, str]) -> Iterator[str]:
    for field in attrs.fields(kind) if attrs.has(kind) else ():
        if field.init and not field.name.startswith("_"):
            text = f": {_markdown(described[field.name])}" if field.name in described else ""
            required = "" if field.default is not attrs.NOTHING else ", required"
            yield f"- `{field.name}` (`{_declared(kind, field.name)}`{required}){text}"
    if issubclass(kind, BaseException):
        yield from (f"- `{name}`: {_markdown(text)}" for name, text in described.items())


def _methods(kind: type, *, typed: bool = False) -> Iterator[str]:
    for name, member in vars(kind).items():
        function = member.fget if isinstance(member, property) else member
        if isinstance(function, FunctionType) and (not name.startswith("_") or name == "__call__"):
            called = "" if name == "__call__" else name
            call = f"{called}({_arguments(function, 1)})"
            if typed:
                call = f"{called}({_typed(function, 1)}){_returned(function)}"
                call = f"async {call}" if inspect.iscoroutinefunction(function) else call
            call = name if isinstance(member, property) else call
            summary, sections = _parsed(function)
            yield f"- `{call}`: {_markdown(_one_line(_sentence(summary)))}"
            if typed:
                yield from _details(sections)


def _details(sections: Mapping[str, str]) -> Iterator[str]:
    for name, text in _entries(sections.get("Args", "")).items():
        yield f"  - `{name}`: {_markdown(text)}"
    for name, text in _entries(sections.get("Raises", "")).items():
        yield f"  - raises `{name}`: {_markdown(text)}"


def _arguments(function: Callable[..., Any], skipped: int) -> str:
    signature = inspect.signature(function)
    parameters = [each.replace(annotation=each.empty) for each in signature.parameters.values()][skipped:]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))[1:-1]


def _constructor(kind: type) -> str:
    return f"{kind.__name__}({_typed(kind, 0)})"


def _typed(function: Callable[..., Any], skipped: int) -> str:
    return ", ".join(_typed_arguments(function, skipped))


def _typed_arguments(function: Callable[..., Any], skipped: int) -> list[str]:
    """Return the arguments as they stand in the source, with their types."""
    listed: list[str] = []
    for each in list(inspect.signature(function).parameters.values())[skipped:]:
        if each.kind is each.KEYWORD_ONLY and "*" not in listed:
            listed.append("*")
        default = "" if each.default is each.empty else f" = {each.default!r}"
        listed.append(f"{each.name}: {each.annotation}{default}")
    return listed


def _returned(function: Callable[..., Any]) -> str:
    returned = str(inspect.signature(function).return_annotation)
    if inspect.isasyncgenfunction(getattr(function, "__wrapped__", None)):
        # What is written at the generator is not what its decorator makes of it.
        returned = f"AbstractAsyncContextManager[{returned.removeprefix('AsyncIterator[')}"
    return f" -> {returned}"


def _declared(kind: type, name: str) -> str:
    """Return a field's type as it stands in the source: what attrs keeps changes when a converter looks at it."""
    annotation = next(notes[name] for each in kind.__mro__ if name in (notes := vars(each).get("__annotations__", {})))
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


@functools.cache
def _constants(exporter: Any, *, whole: bool = False) -> dict[str, str]:
    """Return what is said of each constant that a module may export: the text below it, or else what is assigned.

    Both, where the whole is asked for.
    """
    said: dict[str, str] = {}
    for module in _modules_imported_by(exporter):
        body = ast.parse(inspect.getsource(module)).body
        for node, following in zip(body, [*body[1:], None], strict=True):
            for name in _assigned(node):
                stands_for = f"Stands for `{_PRIVATE.sub('', _assigned_source(node))}`."
                if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                    said[name] = _one_line(inspect.cleandoc(str(following.value.value)))
                    said[name] += f" {stands_for}" if whole else ""
                else:
                    said[name] = stands_for
    return said


def _modules_imported_by(module: Any) -> Iterator[Any]:
    # Also those that only a type checker sees: names are loaded when they are first used.
    names = re.findall(r"^ *from (opencode_core\.[\w.]+) import", inspect.getsource(module), re.MULTILINE)
    yield from map(importlib.import_module, dict.fromkeys(names))


def _assigned_in(module: Any) -> set[str]:
    return set().union(*(_assigned(node) for node in ast.parse(inspect.getsource(module)).body))


def _assigned(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.Assign):
        return {target.id for target in node.targets if isinstance(target, ast.Name)}
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return {node.target.id}
    return set()


def _errors_page() -> str:
    law, tree = (inspect.getdoc(errors) or "").split("\n\n", 1)
    lines = [
        "# Errors",
        "",
        _NOTE.format(source="opencode_core/errors.py"),
        "",
        law,
        "",
        "```text",
        *tree.splitlines(),
        "```",
        "",
    ]
    for kind in error_classes():
        summary, sections = _parsed(kind)
        parent = kind.__mro__[1]
        above = f" *Is a* [`{parent.__name__}`](#{parent.__name__.lower()})." if parent in error_classes() else ""
        lines += [f"## `{kind.__name__}`", "", _markdown(_one_line(summary)) + above, ""]
        attributes = _entries(sections.get("Attributes", ""))
        lines += [f"- `{name}`: {_markdown(text)}" for name, text in attributes.items()]
        lines += [""] if attributes else []
    return _page(lines)


def error_classes() -> list[type[BaseException]]:
    """Return every error of `errors.py`, in the order of the file."""
    return [each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, BaseException)]


def _assigned_source(node: ast.stmt) -> str:
    assert isinstance(node, (ast.Assign, ast.AnnAssign))
    assert node.value is not None
    return str(node.value.value) if isinstance(node.value, ast.Constant) else ast.unparse(node.value)


def _page(lines: list[str]) -> str:
    text = "\n".join(line.rstrip() for line in lines).strip()
    return re.sub(r"\n{3,}(?=[#*-]|Raises:)", "\n\n", text) + "\n"


def _markdown(text: str) -> str:
    return text.replace("``", "`")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _sentence(text: str) -> str:
    """Return the first sentence."""
    return re.split(r"(?<=\.)\s", text, maxsplit=1)[0]


def _sorted_names(names: set[str]) -> list[str]:
    """Sort as import sorters do: constants, then classes, then functions."""

    def place(name: str) -> tuple[int, str]:
        return (0 if name.isupper() else 1 if name[0].isupper() else 2), name

    return sorted(names, key=place)


_PAGES: dict[str, Callable[[], str]] = {
    "hooks": _hooks_page,
    "sdk": _sdk_page,
    "storage": _storage_page,
    "sessions": _sessions_page,
    "events": _events_page,
    "errors": _errors_page,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
