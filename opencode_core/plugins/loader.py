"""Finds plugins in every way they can be offered, and finds the same one only once. Runs no plugin's code."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from opencode_core.config import PluginSpec
from opencode_core.errors import PluginNotFoundError
from opencode_core.hookspecs import ENTRY_POINT_GROUP
from opencode_core.plugins.candidate import Candidate, FileCode, ModuleCode, ObjectCode, name_from
from opencode_core.plugins.project_code import ProjectCode

DISTRIBUTION = "opencode-core"
PLUGIN_FOLDERS = ("plugins", "plugin")


def from_entry_points(path: Sequence[str] | None = None, *, only: str = "") -> list[Candidate]:
    """Returns what installed distributions declare in the group ``opencode.plugins``, by name.

    Args:
        path: Where to look for distributions; Python's own path when None.
        only: The one distribution to read, when it is known; all when empty.
    """
    import importlib_metadata

    if path is None and not only:
        declared = importlib_metadata.entry_points(group=ENTRY_POINT_GROUP)
        pairs = [(entry, entry.dist) for entry in declared]
    else:
        where = {} if path is None else {"path": list(path)}
        named = {"name": only} if only else {}
        first = list(importlib_metadata.distributions(**named, **where))[: 1 if only else None]
        pairs = [(entry, each) for each in first for entry in each.entry_points.select(group=ENTRY_POINT_GROUP)]
    extra = Path(path[0]) if path else None
    found = [_from_entry_point(entry, distribution, extra) for entry, distribution in pairs]
    return sorted(found, key=lambda each: (not each.builtin, each.name, each.location))


def from_spec(spec: PluginSpec, *, origin_folder: Path | None = None) -> Candidate:
    """Returns what one configured entry names: a module, ``module:attribute``, a file or a package folder.

    Args:
        spec: The entry; one that names a distribution to install is not for this function.
        origin_folder: The project folder whose configuration says so; None when the person's own does.

    Raises:
        PluginNotFoundError: It names a path where no plugin can be.
    """
    path = spec.path
    if path is not None:
        return _from_path(path, spec, origin_folder)
    module, _, attribute = spec.text.partition(":")
    return Candidate(
        name=spec.name or name_from(module.rpartition(".")[2]),
        origin="module",
        location=spec.text,
        identity=_module_identity(module, attribute),
        code=ModuleCode(module=module, attribute=attribute),
        folder=origin_folder,
    )


def from_object(value: object, name: str | None = None) -> Candidate:
    """Returns a plugin that a host hands over: a module, or any object with hooks."""
    if isinstance(value, ModuleType):
        file = getattr(value, "__file__", None)
        identity = str(Path(file).resolve()) if file else f"module:{value.__name__}"
        suggested, location = value.__name__.rpartition(".")[2], value.__name__
    else:
        kind = value if inspect.isclass(value) else type(value)
        identity, suggested = f"object:{id(value)}", kind.__name__
        location = f"{kind.__module__}.{kind.__qualname__}"
    return Candidate(
        name=name or name_from(suggested),
        origin="host",
        location=location,
        identity=identity,
        code=ObjectCode(value=value),
    )


def from_project(code: ProjectCode) -> list[Candidate]:
    """Returns the plugins in a folder's ``.opencode/plugins``: each file, and each folder with an ``__init__.py``."""
    contents = {file.path: file.content for file in code.files}
    found: dict[Path, Candidate] = {}
    for path in sorted(contents):
        top = _top_of_plugin(path, code.folder)
        if top is not None and top not in found and (top == path or top / "__init__.py" in contents):
            found[top] = from_trusted_path(top, contents, code.folder)
    return list(found.values())


def from_trusted_path(top: Path, contents: Mapping[Path, bytes], folder: Path) -> Candidate:
    """Returns a plugin of a project: a file, or a folder with an ``__init__.py``, that runs only these bytes."""
    is_package = top not in contents
    module = top / "__init__.py" if is_package else top
    if is_package:
        trusted = {path: content for path, content in contents.items() if path.is_relative_to(top)}
    else:
        trusted = {top: contents[top]}
    return Candidate(
        name=name_from(top.name if is_package else top.stem),
        origin="project",
        location=str(top),
        identity=str(module.resolve()),
        code=FileCode(path=top, trusted=trusted),
        folder=folder,
        watched=(top,),
    )


def once(candidates: Iterable[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """Returns the candidates that are no earlier one's code, and those that are found again."""
    kept: dict[str, Candidate] = {}
    again = [each for each in candidates if kept.setdefault(each.identity, each) is not each]
    return list(kept.values()), again


def locate(module: str) -> Path | None:
    """Returns the file of a module without importing anything; None when there is none."""
    spec = _spec(module)
    return Path(spec.origin).resolve() if spec is not None and spec.has_location and spec.origin else None


def root_package(module: str) -> str:
    """Returns the outermost part of a module's name that is not a namespace shared with other distributions."""
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        name = ".".join(parts[:length])
        spec = _spec(name)
        if spec is None or spec.origin is not None:
            return name
    return module


def _spec(module: str) -> ModuleSpec | None:
    """Finds a module as ``importlib.util.find_spec`` would, except that it imports no parent package."""
    locations: Sequence[str] | None = None
    spec = None
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = _search(name, locations)
        if spec is None:
            return None
        locations = spec.submodule_search_locations
        if locations is None and name != module:
            return None
    return spec


def _search(name: str, locations: Sequence[str] | None) -> ModuleSpec | None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find(name, locations) if find is not None else None
        if spec is not None:
            return spec
    return None


def _module_identity(module: str, attribute: str) -> str:
    file = locate(module)
    base = str(file) if file is not None else f"module:{module}"
    return f"{base}:{attribute}" if attribute else base


def _from_entry_point(entry: Any, distribution: Any, extra: Path | None) -> Candidate:
    module, _, attribute = entry.value.partition(":")
    module, attribute = module.strip(), attribute.partition("[")[0].strip()
    name = str(distribution.name) if distribution is not None else ""
    identity = _module_identity(module, attribute) if extra is None else f"{extra}:{module}:{attribute}"
    return Candidate(
        name=name_from(entry.name),
        origin="entry point",
        location=entry.value,
        identity=identity,
        code=ModuleCode(module=module, attribute=attribute, path=extra),
        distribution=name,
        version=str(distribution.version) if distribution is not None else "",
        builtin=name.lower().replace("_", "-") == DISTRIBUTION,
        watched=tuple(_editable_roots(distribution, module)),
    )


def _editable_roots(distribution: Any, module: str) -> Iterator[Path]:
    """Yields the package folder of a distribution that was installed for editing."""
    direct_url = getattr(getattr(distribution, "origin", None), "dir_info", None)
    if not getattr(direct_url, "editable", False):
        return
    from urllib.request import url2pathname  # 20 ms to import, and only editable installs need it

    root = Path(url2pathname(distribution.origin.url.removeprefix("file://")))
    file = locate(root_package(module))
    if file is not None and file.is_relative_to(root.resolve()):
        yield file.parent if file.name == "__init__.py" else file


def _from_path(path: Path, spec: PluginSpec, folder: Path | None) -> Candidate:
    module = path / "__init__.py" if path.is_dir() else path
    if not module.is_file() or module.suffix != ".py":
        name = name_from(path.stem)
        wanted = "a folder without an '__init__.py'" if path.is_dir() else "not a Python file"
        raise PluginNotFoundError(
            f"The plugin path '{spec.text}' of {spec.origin} is {wanted if path.exists() else 'not there'}.",
            "Name a '.py' file, or a folder with an '__init__.py'.",
            plugin=name,
        )
    return Candidate(
        name=spec.name or name_from(path.name if path.is_dir() else path.stem),
        origin="package" if path.is_dir() else "file",
        location=str(path),
        identity=str(module.resolve()),
        code=FileCode(path=path),
        folder=folder,
        watched=(path,),
    )


def _top_of_plugin(path: Path, folder: Path) -> Path | None:
    """Returns the file or folder directly below a plugin folder that a path belongs to."""
    for name in PLUGIN_FOLDERS:
        base = folder / ".opencode" / name
        if path.is_relative_to(base):
            return base / path.relative_to(base).parts[0]
    return None
