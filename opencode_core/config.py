"""Reads layered settings. Never writes a file and runs no code.

A file that is not valid stops the start with its line and column (V1-25), where CF-03 would skip it in
silence: a person who mistyped a comma would otherwise run without the rules that they wrote down.

A project's documents may be a stranger's, so they are read with less authority than the person's own:
see ``read_documents``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from opencode_core import jsonc
from opencode_core.errors import ConfigError, Place
from opencode_core.model.json import JSON
from opencode_core.model.location import Location

__all__ = [
    "Document",
    "PluginSettings",
    "PluginSpec",
    "document_from",
    "plugin_settings",
    "read_documents",
    "storage_setting",
]

_NAMES = ("opencode.json", "opencode.jsonc")
_OWN_KEYS = {"$schema", "plugin", "plugins", "plugin_allow", "plugin_block", "plugin_strict", "plugin_watch", "storage"}
_LARGEST = 1024 * 1024
_PATH = re.compile(r"[/\\]|^[.~]|\.py$")
_REFERENCE = re.compile(r"\{(env|file):([^{}]+)\}")


@attrs.frozen(kw_only=True)
class Document:
    """One layer of settings.

    Attributes:
        origin: The path or the variable that it came from, for messages.
        base: What relative paths in it resolve against.
        folder: The project folder that holds it, itself or in its ``.opencode``; None when it belongs to the
            person: global, named by the environment, or handed over by a host.
        values: What it says, with ``{env:...}`` and ``{file:...}`` replaced where they may be.
    """

    origin: str
    base: Path
    folder: Path | None
    values: Mapping[str, JSON] = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class PluginSpec:
    """One entry of a ``plugin`` list: a module, a ``.py`` file or package folder, or ``pip:REQUIREMENT``.

    Attributes:
        text: The entry as it was written.
        base: What it resolves against when it is a path.
        origin: The document that lists it, for messages.
        folder: The project folder whose document lists it; None when the person listed it.
        name: What a host calls the plugin; empty to name it by what the entry says.
    """

    text: str
    base: Path
    origin: str
    folder: Path | None = None
    name: str = ""

    @property
    def path(self) -> Path | None:
        """The file or folder it names, absolute; None for a module or a requirement.

        A path has a separator, starts with ``.`` or ``~``, or ends with ``.py``.
        """
        if self.text.startswith("pip:") or not _PATH.search(self.text):
            return None
        return Path(os.path.normpath(self.base / os.path.expanduser(self.text)))


@attrs.frozen(kw_only=True)
class PluginSettings:
    """What all documents together say about plugins.

    Attributes:
        load: What to load, in the order of the documents, each once.
        options: The options of each plugin by its name.
        allow: The only names that may load; None when all may.
        block: The names that may not load.
        keys: Every other key of the documents, for the plugin that owns it: lists add up, of others the last counts.
        strict: Whether a plugin that fails stops the host, instead of being quarantined.
        watch: Whether changed plugins reload by themselves.
    """

    load: tuple[PluginSpec, ...] = ()
    options: Mapping[str, Mapping[str, JSON]] = attrs.field(factory=dict, repr=False)
    allow: tuple[str, ...] | None = None
    block: tuple[str, ...] = ()
    keys: Mapping[str, JSON] = attrs.field(factory=dict, repr=False)
    strict: bool = False
    watch: bool = False


@attrs.frozen
class Documents:
    """Where settings come from: the files, or what the host says instead of them."""

    config: Mapping[str, JSON] | None = attrs.field(repr=False)
    config_dir: Path
    environ: Mapping[str, str] = attrs.field(repr=False)

    def of(self, location: Location) -> tuple[Document, ...]:
        """Returns everything that applies in a Location, lowest priority first.

        Raises:
            ConfigError: A file is not right.
        """
        if self.config is not None:
            return (document_from(self.config, base=location.directory),)
        return read_documents(location, config_dir=self.config_dir, environ=self.environ)

    def of_person(self, location: Location) -> tuple[Document, ...]:
        """Returns what the person says, and no project.

        Raises:
            ConfigError: A file is not right.
        """
        return tuple(document for document in self.of(location) if document.folder is None)


def read_documents(location: Location, *, config_dir: Path, environ: Mapping[str, str]) -> tuple[Document, ...]:
    """Reads all settings for a Location, lowest priority first.

    The order is: the person's ``config_dir``; each project folder from the root to the nearest; the
    ``.opencode`` of each folder in the same order; the file that ``OPENCODE_CONFIG`` names; the text in
    ``OPENCODE_CONFIG_CONTENT``. Where a folder has both ``opencode.json`` and ``opencode.jsonc``, the second
    has priority; both may hold comments. ``OPENCODE_DISABLE_PROJECT_CONFIG`` leaves the project's out.

    In strings, ``{env:NAME}`` becomes the variable, or nothing when it is not set, and ``{file:path}`` the
    stripped content of a file, relative to the document; what is put in is not searched again. Opening an
    untrusted project must not hand it the person's secrets. So in a project's documents ``{env:NAME}`` stays
    as it is written, and both the documents and the files they name must be inside the project root, links
    followed.

    Args:
        location: Where sessions will run; what the environment says relatively is relative to its directory.
        config_dir: The person's own configuration folder.
        environ: The environment.

    Raises:
        ConfigError: A file cannot be read, is too large, leaves the project, or is not valid;
            ``OPENCODE_CONFIG`` or a ``{file:...}`` names a file that is not there.
    """
    found = (
        *_documents_in(config_dir),
        *_project_documents(location, config_dir, environ),
        *_environment_documents(location, environ),
    )
    return tuple(_substituted(document, root=location.root, environ=environ) for document in found)


def document_from(values: Mapping[str, JSON], *, base: Path, origin: str = "the host's config argument") -> Document:
    """Settings that a host hands over; nothing in them is substituted.

    Raises:
        ConfigError: They are not a mapping.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"{origin[0].upper()}{origin[1:]} is a '{type(values).__name__}'.", "Hand over a mapping.")
    return Document(origin=origin, base=base, folder=None, values=dict(values))


def plugin_settings(documents: Iterable[Document]) -> PluginSettings:
    """Merges what documents say about plugins; every other key is left to those who read it.

    ``plugin`` and ``plugin_block`` of all documents add up; in ``plugins`` a later document replaces single
    options; of ``plugin_allow``, ``plugin_strict`` and ``plugin_watch`` the last one counts.

    Args:
        documents: Lowest priority first.

    Raises:
        ConfigError: A value has the wrong type. The value is never quoted, because it may be a secret.
    """
    specs: list[PluginSpec] = []
    options: dict[str, dict[str, JSON]] = {}
    keys: dict[str, JSON] = {}
    settings = PluginSettings()
    for document in documents:
        specs += _specs(document)
        for name, changed in _options(document).items():
            options.setdefault(name, {}).update(changed)
        for key in document.values.keys() - _OWN_KEYS:
            keys[key] = added(keys.get(key), document.values[key])
        settings = attrs.evolve(
            settings,
            allow=_strings(document, "plugin_allow", settings.allow),
            block=(*settings.block, *(_strings(document, "plugin_block", None) or ())),
            strict=_flag(document, "plugin_strict", settings.strict),
            watch=_flag(document, "plugin_watch", settings.watch),
        )
    block = tuple(dict.fromkeys(settings.block))
    return attrs.evolve(settings, load=_once(specs), options=options, keys=keys, block=block)


def added(before: JSON, now: JSON) -> JSON:
    """Returns what two documents say together: lists add up, anything else is replaced."""
    return [*before, *now] if isinstance(before, (list, tuple)) and isinstance(now, (list, tuple)) else now


def storage_setting(documents: Iterable[Document]) -> str | None:
    """Returns the URL of the store that the person chose, the last one that is said; None when none is.

    A project does not choose: its file could otherwise have everything that is said in it sent elsewhere.

    Args:
        documents: Lowest priority first.

    Raises:
        ConfigError: It is no text, or empty. The value is never quoted, because it may hold a password.
    """
    chosen: str | None = None
    for document in documents:
        if document.folder is None and "storage" in document.values:
            value = document.values["storage"]
            if not isinstance(value, str) or not value.strip():
                raise _wrong_type(document, "storage", "the URL of a store, such as 'sqlite:///home/me/opencode.db'")
            chosen = value.strip()
    return chosen


def _project_documents(location: Location, config_dir: Path, environ: Mapping[str, str]) -> Iterator[Document]:
    if environ.get("OPENCODE_DISABLE_PROJECT_CONFIG", "").strip().lower() in ("1", "true", "yes"):
        return
    folders = location.folders
    for inner in ("", ".opencode"):
        for folder in folders:
            # The person's own folder was read already, with an authority that it must not lose here.
            if not _is_same(folder / inner, config_dir):
                yield from _documents_in(folder / inner, folder=folder, inside=location.root)


def _is_same(one: Path, other: Path) -> bool:
    """Whether two names are one folder, links followed. Resolving names instead is slow in a deep tree."""
    try:
        return os.path.samestat(os.stat(one), os.stat(other))
    except (OSError, ValueError):
        return False  # one of them is not there, and so nothing is in it


def _documents_in(directory: Path, *, folder: Path | None = None, inside: Path | None = None) -> Iterator[Document]:
    for name in _NAMES:
        path = directory / name
        content = _content(path, str(path), inside=inside)
        if content is not None:
            yield _document(_decoded(content, str(path)), str(path), base=directory, folder=folder)


def _environment_documents(location: Location, environ: Mapping[str, str]) -> Iterator[Document]:
    if named := environ.get("OPENCODE_CONFIG"):
        path = _against(location.directory, named, environ)
        content = _content(path, str(path))
        if content is None:
            raise ConfigError(
                f"The file '{path}' that OPENCODE_CONFIG names does not exist.",
                "Create it, or change or unset the variable.",
            )
        yield _document(_decoded(content, str(path)), str(path), base=path.parent)
    if text := environ.get("OPENCODE_CONFIG_CONTENT"):
        yield _document(text, "OPENCODE_CONFIG_CONTENT", base=location.directory)


def _document(text: str, origin: str, *, base: Path, folder: Path | None = None) -> Document:
    # CF-03 would skip what is not valid; then the person would run without the rules that they wrote.
    values = jsonc.parse_object(text, origin)
    return Document(origin=origin, base=base, folder=folder, values=values)


def _content(path: Path, origin: str, *, inside: Path | None = None) -> bytes | None:
    """What is in a file; None when there is none.

    Args:
        path: The file.
        origin: The document to blame.
        inside: The folder that the file may not leave, links followed; None for no such bound.

    Raises:
        ConfigError: It cannot be read, is too large, or is not inside.
    """
    try:
        path.lstat()  # most are missing, and finding that out by resolving the name is slow in a deep tree
        with (path if inside is None else _contained(path, origin, inside)).open("rb") as file:
            content = file.read(_LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or str(exc)
        problem = f"The file '{path}' cannot be read ({reason})."
        raise _error(origin, problem, "Make it readable, or remove it.") from exc
    if len(content) > _LARGEST:
        raise _error(origin, f"The file '{path}' is larger than 1 MiB.", "Make it smaller, or remove it.")
    return content


def _contained(path: Path, origin: str, inside: Path) -> Path:
    real = Path(os.path.realpath(path, strict=True))
    if not real.is_relative_to(inside):
        problem = f"'{path}' is outside the project root '{inside}'."
        raise _error(origin, problem, "Copy it into the project, or remove it.")
    if not real.is_file():
        raise _error(origin, f"'{path}' is not a file.", "Put a file there, or remove it.")
    return real


def _decoded(content: bytes, file: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as exc:
        before = content[: exc.start].decode().removeprefix("\ufeff")
        place = jsonc.place_of(before, len(before), file)
        raise ConfigError(f"'{place}' is not UTF-8.", "Save the file as UTF-8.", place=place) from exc


def _against(base: Path, text: str, environ: Mapping[str, str]) -> Path:
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if home and text.startswith("~/"):
        return Path(home, text[2:])
    return base / text


def _substituted(document: Document, *, root: Path, environ: Mapping[str, str]) -> Document:
    substitution = _Substitution(document=document, root=root, environ=environ)
    values = {key: substitution.value(value) for key, value in document.values.items()}
    return attrs.evolve(document, values=values)


@attrs.define(eq=False, kw_only=True)
class _Substitution:
    """Replaces the references of one document; ``read`` counts the bytes of all its files together."""

    document: Document
    root: Path
    environ: Mapping[str, str]
    read: int = 0

    def value(self, value: JSON) -> JSON:
        if isinstance(value, str):
            return _REFERENCE.sub(self.reference, value)
        if isinstance(value, Mapping):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, Sequence):
            return [self.value(item) for item in value]
        return value

    def reference(self, match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind == "file":
            return self.file(name)
        return match.group() if self.document.folder else self.environ.get(name, "")

    def file(self, name: str) -> str:
        origin = self.document.origin
        path = _against(self.document.base, name, self.environ)
        content = _content(path, origin, inside=self.root if self.document.folder else None)
        if content is None:
            problem = f"'{origin}' names the file '{path}', which does not exist."
            raise _error(origin, problem, "Create it, or remove the reference.")
        self.read += len(content)
        if self.read > _LARGEST:
            problem = f"The files that '{origin}' names are together larger than 1 MiB."
            raise _error(origin, problem, "Name fewer or smaller ones.")
        return _decoded(content, str(path)).removeprefix("\ufeff").strip()


def _specs(document: Document) -> Iterator[PluginSpec]:
    for text in _strings(document, "plugin", None) or ():
        yield PluginSpec(text=text, base=document.base, origin=document.origin, folder=document.folder)


def _once(specs: Iterable[PluginSpec]) -> tuple[PluginSpec, ...]:
    """Each spec at its first place; of two that name the same, the person's own."""
    kept: dict[str, PluginSpec] = {}
    for spec in specs:
        known = kept.setdefault(str(spec.path or spec.text), spec)
        if known.folder and not spec.folder:
            kept[str(spec.path or spec.text)] = spec
    return tuple(kept.values())


def _options(document: Document) -> dict[str, Mapping[str, JSON]]:
    plugins = document.values.get("plugins", {})
    if not isinstance(plugins, Mapping):
        raise _wrong_type(document, "plugins", "an object with the options of each plugin")
    options: dict[str, Mapping[str, JSON]] = {}
    for name, changed in plugins.items():
        if not isinstance(changed, Mapping):
            raise _wrong_type(document, f"plugins.{name}", "an object")
        options[name] = changed
    return options


def _strings(document: Document, key: str, default: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if key not in document.values:
        return default
    value = document.values[key]
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _wrong_type(document, key, "a list of strings")
    strings = tuple(item for item in value if isinstance(item, str) and item)
    if len(strings) != len(value):
        raise _wrong_type(document, key, "a list of strings that are not empty")
    return strings


def _flag(document: Document, key: str, default: bool) -> bool:
    value = document.values.get(key, default)
    if not isinstance(value, bool):
        raise _wrong_type(document, key, "true or false")
    return value


def _wrong_type(document: Document, key: str, expected: str) -> ConfigError:
    return _error(
        document.origin, f"The key '{key}' in '{document.origin}' has the wrong type.", f"Make it {expected}."
    )


def _error(origin: str, problem: str, remedy: str) -> ConfigError:
    return ConfigError(problem, remedy, place=Place(origin))
