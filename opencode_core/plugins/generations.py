"""Imports a plugin's code, again and again, each time as a generation of its own. Knows no hook and no scope.

Python's own reload runs new code in the old module, so old and new mix. Here the plugin's modules leave `sys.modules`
and are imported anew; until the caller commits, rolling back puts the old ones in their place again.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextvars import copy_context
from hashlib import sha256
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import attrs

from opencode_core.errors import PluginError, PluginImportError, PluginNotFoundError
from opencode_core.plugins.candidate import Candidate, Code, FileCode, ModuleCode, ObjectCode
from opencode_core.plugins.diagnostics import import_error
from opencode_core.plugins.loader import locate, root_package

MODULE_PREFIX = "opencode_plugin_"
STAMP = "__opencode_plugin__"


@attrs.define(eq=False, repr=False)
class Importer:
    """Imports plugins for one host.

    Attributes:
        foreign: Modules that were there before any plugin of their package was loaded: the host's own, never unloaded.
    """

    _files: _SourceFinder = attrs.field(factory=lambda: _SourceFinder())
    _fresh: _FreshFinder = attrs.field(factory=lambda: _FreshFinder())
    foreign: dict[str, frozenset[str]] = attrs.field(factory=dict)
    _folders: list[str] = attrs.field(factory=list)

    def open(self) -> None:
        """Lets Python find file plugins; undone by `close`."""
        sys.meta_path[:0] = [self._fresh, self._files]

    def close(self) -> None:
        """Takes file plugins out of Python's sight again; twice is harmless."""
        sys.meta_path[:] = [each for each in sys.meta_path if each is not self._fresh and each is not self._files]
        sys.path[:] = [each for each in sys.path if not any(each is folder for folder in self._folders)]
        for root in {name.partition(".")[0] for name in self._files.sources}:
            self._unload(root)

    def root(self, candidate: Candidate) -> str | None:
        """Returns the package that is imported as one; None for an object, which is never imported."""
        match candidate.code:
            case ModuleCode(module=module):
                return root_package(module)
            case FileCode(path=path):
                return self._module_name(path)
            case ObjectCode():
                return None

    def load(self, candidate: Candidate) -> object:
        """Imports a plugin for the first time, and returns it. When that fails, nothing of it stays imported.

        Raises:
            PluginImportError: Its code raised.
            PluginNotFoundError: Its code is not there.
        """
        root = self.root(candidate)
        if root is None:
            return self._import(candidate)
        before = frozenset(_within(root))
        if root not in self.foreign:
            self.foreign[root] = frozenset(name for name in before if not _is_stamped(sys.modules[name]))
        try:
            plugin = self._import(candidate)
        except BaseException:
            self._unload(root, keep=before)
            raise
        self._stamp(root)
        return plugin

    def begin(self, candidates: Sequence[Candidate]) -> Replacement:
        """Takes the modules of plugins out of Python's sight, so that the next import runs new code."""
        roots = {root for each in candidates if (root := self.root(each)) is not None}
        entries = {each.code.module for each in candidates if isinstance(each.code, ModuleCode)}
        unloaded = {
            name: sys.modules[name]
            for root in roots
            for name in _within(root)
            if name not in self.foreign.get(root, ()) or any(_is_inside(name, entry) for entry in entries)
        }
        self._fresh.roots |= roots
        return Replacement(self, frozenset(roots), unloaded, dict(self._files.sources))

    def forget(self, candidate: Candidate) -> None:
        """Unloads a file plugin; what is installed stays imported, as Python leaves it."""
        if isinstance(candidate.code, FileCode):
            self._unload(self._module_name(candidate.code.path))

    def _import(self, candidate: Candidate) -> object:
        try:
            # A copy, so that context variables which the code sets do not keep it alive in the host's context.
            return copy_context().run(self._run, candidate.code)
        except PluginError:
            raise
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # importing is synchronous, so even a cancellation is the plugin's own doing
            raise _explained(candidate, error) from error

    def _run(self, code: Code) -> object:
        if isinstance(code, ObjectCode):
            return _instance(code.value)
        if isinstance(code, FileCode):
            name = self._module_name(code.path)
            self._files.drop(name)
            self._files.sources.update(_sources(name, code))
            return importlib.import_module(name)
        if code.path is not None and str(code.path) not in sys.path:
            self._folders.append(str(code.path))
            sys.path.append(self._folders[-1])
        value: Any = importlib.import_module(code.module)
        for part in code.attribute.split(".") if code.attribute else ():
            value = getattr(value, part)
        return _instance(value)

    def _unload(self, root: str, *, keep: frozenset[str] = frozenset()) -> None:
        for name in _within(root):
            if name not in keep:
                _unload(name)
        self._files.drop(root)

    def _stamp(self, root: str) -> None:
        for name in _within(root):
            module = sys.modules[name]
            if name not in self.foreign[root] and isinstance(module, ModuleType):
                vars(module)[STAMP] = True

    def _module_name(self, path: Path) -> str:
        """Returns a name that is the same for the same file, and no other live host uses."""
        digest = sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:8]
        base = name = f"{MODULE_PREFIX}{digest}_{path.stem if path.suffix == '.py' else path.name}".replace(".", "_")
        number = 1
        while name not in self._files.sources and _is_taken(name):
            number += 1
            name = f"{base}_{number}"
        return name


@attrs.define(eq=False, repr=False)
class Replacement:
    """Modules that were taken out of `sys.modules`; the new ones stay only if the caller says so."""

    _importer: Importer
    _roots: frozenset[str]
    _unloaded: dict[str, ModuleType]
    _sources: dict[str, _Source]
    _is_open: bool = True

    def __enter__(self) -> Replacement:
        for name in self._unloaded:
            sys.modules.pop(name, None)
        for name, module in self._unloaded.items():
            _detach(name, module)  # a package that stays would hand the old module to `from . import`
        importlib.invalidate_caches()
        return self

    def load(self, candidate: Candidate) -> object:
        """Imports new code, from the source files as they are now, never from cached bytecode.

        Raises:
            PluginImportError: The new code raised.
            PluginNotFoundError: The code is no longer there.
        """
        return self._importer._import(candidate)

    def commit(self) -> None:
        """Keeps the new modules."""
        for root in self._roots:
            self._importer.foreign.setdefault(root, frozenset())
            self._importer._stamp(root)
        self._end()

    def rollback(self) -> None:
        """Puts the old modules back, as if nothing had been imported."""
        for root in self._roots:
            untouched = self._importer.foreign.get(root, frozenset()) - self._unloaded.keys()
            for name in _within(root):
                if name not in untouched:
                    _unload(name)
        self._importer._files.sources = dict(self._sources)
        for name, module in sorted(self._unloaded.items()):
            sys.modules[name] = module
            parent, _, attribute = name.rpartition(".")
            package = sys.modules.get(parent)
            if isinstance(package, ModuleType):
                setattr(package, attribute, module)
        self._end()

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            self.rollback()

    def _end(self) -> None:
        self._is_open = False
        self._unloaded.clear()
        self._sources.clear()


@attrs.frozen
class _Source:
    path: Path
    content: bytes = attrs.field(repr=False)
    is_package: bool


@attrs.define(eq=False, repr=False)
class _SourceFinder(MetaPathFinder):
    """Finds the modules of file plugins, and only in the bytes it was given."""

    sources: dict[str, _Source] = attrs.field(factory=dict)

    def drop(self, root: str) -> None:
        """Forgets a plugin's files."""
        self.sources = {name: source for name, source in self.sources.items() if not _is_inside(name, root)}

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Answers Python's import system."""
        source = self.sources.get(fullname)
        if source is None:
            return None
        spec = ModuleSpec(fullname, _BytesLoader(source), origin=str(source.path), is_package=source.is_package)
        spec.has_location = True
        return spec


@attrs.frozen
class _BytesLoader(InspectLoader):
    """Runs exactly the bytes that were read, and never cached bytecode that could say something else."""

    source: _Source

    def get_code(self, fullname: str) -> CodeType:
        """Compiles the bytes."""
        return compile(self.source.content, str(self.source.path), "exec", dont_inherit=True)

    def get_source(self, fullname: str) -> str:
        """Returns the text, for tracebacks."""
        return importlib.util.decode_source(self.source.content)

    def is_package(self, fullname: str) -> bool:
        """Whether the module has submodules."""
        return self.source.is_package


@attrs.define(eq=False, repr=False)
class _FreshFinder(MetaPathFinder):
    """Finds what the others find, but loads from source: a cached file can be older than a second edit.

    It stays, because a reloaded plugin may import a part of itself only when it needs it.
    """

    roots: set[str] = attrs.field(factory=set)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Answers Python's import system for the modules of plugins that were reloaded."""
        if not any(_is_inside(fullname, root) for root in self.roots):
            return None
        for finder in sys.meta_path:
            find = None if isinstance(finder, _FreshFinder) else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find is not None else None
            if spec is not None:
                if type(spec.loader) is SourceFileLoader:
                    spec.loader = _FreshLoader(spec.loader.name, spec.loader.path)
                return spec
        return None


class _FreshLoader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """Compiles the file as it is now."""
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def _sources(root: str, code: FileCode) -> Iterator[tuple[str, _Source]]:
    contents = _contents(code)
    for path, content in sorted(contents.items()):
        if path == code.path:
            yield root, _Source(path, content, False)
            continue
        parts = path.relative_to(code.path).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        yield ".".join((root, *(parts[:-1] if is_package else parts))), _Source(path, content, is_package)
        for folder in list(path.relative_to(code.path).parents)[:-1]:
            init = code.path / folder / "__init__.py"
            if init not in contents:  # a folder without one is a package too, as it is for Python
                yield ".".join((root, *folder.parts)), _Source(init, b"", True)


def _contents(code: FileCode) -> Mapping[Path, bytes]:
    if code.trusted is not None:
        return code.trusted
    if code.path.is_dir():
        return {path: path.read_bytes() for path in code.path.rglob("*.py") if path.is_file()}
    return {code.path: code.path.read_bytes()}


def _is_taken(name: str) -> bool:
    others = (finder for finder in sys.meta_path if isinstance(finder, _SourceFinder))
    return name in sys.modules or any(name in finder.sources for finder in others)


def _unload(name: str) -> None:
    module = sys.modules.pop(name, None)
    if module is not None:
        _detach(name, module)


def _detach(name: str, module: ModuleType) -> None:
    """Takes a module out of the package it is in, if that is still imported; it would keep the module alive."""
    parent, _, attribute = name.rpartition(".")
    package = sys.modules.get(parent)
    if isinstance(package, ModuleType) and vars(package).get(attribute) is module:
        delattr(package, attribute)


def _is_stamped(module: object) -> bool:
    """Whether a plugin brought a module; what is not a module is whatever a plugin put in its place."""
    return not isinstance(module, ModuleType) or STAMP in vars(module)


def _within(root: str) -> list[str]:
    inside = f"{root}."
    return [name for name in list(sys.modules) if name == root or name.startswith(inside)]


def _is_inside(name: str, root: str) -> bool:
    return name == root or name.startswith(f"{root}.")


def _instance(value: object) -> object:
    return value() if inspect.isclass(value) else value


def _explained(candidate: Candidate, error: BaseException) -> PluginImportError | PluginNotFoundError:
    code = candidate.code
    missing = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
    if isinstance(code, ModuleCode) and missing and _is_inside(code.module, missing):
        by = f"the distribution '{candidate.distribution}'" if candidate.distribution else "the configuration"
        return PluginNotFoundError(
            f"The plugin '{candidate.name}' is declared by {by} as '{candidate.location}', which is not installed.",
            f"Reinstall {by}, or block the plugin." if candidate.distribution else "Install it, or correct the name.",
            plugin=candidate.name,
        )
    if isinstance(code, FileCode) and isinstance(error, FileNotFoundError):
        return PluginNotFoundError(
            f"The file '{code.path}' of the plugin '{candidate.name}' is gone.",
            "Put it back.",
            plugin=candidate.name,
        )
    return import_error(candidate.name, error, file=_file(code))


def _file(code: Code) -> str:
    match code:
        case FileCode(path=path):
            return str(path / "__init__.py" if path.suffix != ".py" else path)
        case ModuleCode(module=module):
            return str(locate(module) or "")
        case ObjectCode():
            return ""
