"""Reads the code that a project would have imported, once, into memory. Imports nothing and decides nothing.

What is read here is what is hashed here, and the loader compiles exactly these bytes: a file that is swapped
after the person was asked cannot run. What must not be imported is refused with a reason, never an exception.
"""

from __future__ import annotations

import datetime
import errno
import hashlib
import json
import os
import posixpath
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import attrs

__all__ = ["ProjectCode", "Refusal", "SourceFile", "read_project_code"]

FILE_LIMIT = 2_000
NAME_LIMIT = 20_000
DEPTH_LIMIT = 64
FILE_SIZE_LIMIT = 4 * 1024 * 1024
TOTAL_SIZE_LIMIT = 64 * 1024 * 1024

_NOTHING: Mapping[str, object] = MappingProxyType({})


def read_project_code(
    folder: Path,
    *,
    project_root: Path,
    declared: Iterable[Path] = (),
    declarations: Mapping[str, object] = _NOTHING,
) -> ProjectCode:
    """Read every file that importing the plugins of a folder could touch.

    These are the Python files below ``.opencode/plugins``, ``.opencode/plugin`` and each declared path. Names
    that begin with a dot and ``__pycache__`` are skipped. A tree that holds too much is refused as a whole:
    no package is ever imported by half.

    Args:
        folder: The folder whose configuration and ``.opencode`` are meant.
        project_root: Nothing that resolves to a place outside of it is read.
        declared: Python files and package folders that the folder's configuration names.
        declarations: What that configuration says about plugins, as it was written there: an absolute path
            in it would make the digest depend on where the project lies.
    """
    reading = _Reading.of(folder, project_root)
    reading.add_plugin_folders()
    for path in sorted({os.fspath(path) for path in declared}):
        reading.add_declared(path)
    return ProjectCode(
        folder=Path(reading.folder),
        files=tuple(reading.files.values()),
        refused=tuple(reading.refused.values()),
        declarations=_canonical_json(declarations),
    )


@attrs.frozen(kw_only=True)
class SourceFile:
    """One file that may be imported once it is trusted.

    Attributes:
        relative: Its name relative to the folder, with forward slashes.
        path: Where it was found: absolute, its links not followed.
        content: What to compile, the bytes that were hashed.
        sha256: The hash of the content.
    """

    relative: str
    path: Path
    content: bytes = attrs.field(repr=False)
    sha256: str = attrs.field(
        init=False,
        default=attrs.Factory(lambda self: hashlib.sha256(self.content).hexdigest(), takes_self=True),
    )


@attrs.frozen(kw_only=True)
class Refusal:
    """One file or folder that must not be imported, trusted or not.

    Attributes:
        relative: Its name relative to the folder, or its absolute path when it is outside of the project.
            Characters that cannot be shown are escaped.
        reason: Why, as a sentence.
    """

    relative: str
    reason: str


def _sorted_files(files: Iterable[SourceFile]) -> tuple[SourceFile, ...]:
    return tuple(sorted(files, key=lambda file: file.relative))


def _sorted_refusals(refused: Iterable[Refusal]) -> tuple[Refusal, ...]:
    return tuple(sorted(refused, key=lambda refusal: refusal.relative))


@attrs.frozen(kw_only=True)
class ProjectCode:
    """Everything that a folder would have imported, as it was at one moment.

    Attributes:
        folder: The folder, absolute, its links not followed.
        files: What may be imported, by name.
        refused: What must not be imported, by name.
        declarations: What the folder's configuration says about plugins, as canonical JSON.
        digest: The hash that a person's decision is about. It covers the names, the contents, the refused
            names and the declarations; not the reasons of refusals, which name absolute paths.
    """

    folder: Path
    files: tuple[SourceFile, ...] = attrs.field(converter=_sorted_files)
    refused: tuple[Refusal, ...] = attrs.field(converter=_sorted_refusals)
    declarations: str = "{}"
    digest: str = attrs.field(init=False, default=attrs.Factory(lambda self: _digest(self), takes_self=True))

    @property
    def is_empty(self) -> bool:
        """Nothing would be imported and nothing is declared, so there is nothing to decide."""
        return not self.files and self.declarations == "{}"


def _digest(code: ProjectCode) -> str:
    # Nested JSON lists cannot be confused with one another, whatever the names contain.
    everything = [
        "opencode project code 1",
        [[file.relative, file.sha256] for file in code.files],
        [refusal.relative for refusal in code.refused],
        code.declarations,
    ]
    return hashlib.sha256(json.dumps(everything).encode()).hexdigest()


@attrs.frozen
class _Entry:
    """A file or folder by its name and its path, neither of them resolved yet."""

    relative: str
    path: str

    def child(self, name: str) -> _Entry:
        return _Entry(posixpath.normpath(posixpath.join(self.relative, name)), os.path.join(self.path, name))

    def refusal(self, reason: str) -> Refusal:
        """Refuse this entry; the reason goes on after its name."""
        name = _shown(self.relative)
        return Refusal(relative=name, reason=f"'{name}' {_shown(reason)}.")


class _TooMuch(Exception):
    """A tree does not fit in what is left of the budget; says what the whole would be."""


@attrs.define(kw_only=True)
class _Budget:
    """What one project may still cost, so that links among folders cannot keep the reader busy for ever."""

    files: int = FILE_LIMIT
    names: int = NAME_LIMIT
    size: int = TOTAL_SIZE_LIMIT

    def spend(self, *, files: int = 0, names: int = 0, size: int = 0) -> None:
        self.files -= files
        self.names -= names
        self.size -= size
        if self.files < 0:
            raise _TooMuch(f"more than {FILE_LIMIT:,} files")
        if self.names < 0:
            raise _TooMuch(f"more than {NAME_LIMIT:,} names")
        if self.size < 0:
            raise _TooMuch(f"more than {TOTAL_SIZE_LIMIT // 1024**2} MiB")


@attrs.define(eq=False, repr=False, kw_only=True)
class _Reading:
    """One pass over a project, which reads each name at most once."""

    folder: str
    root: str
    budget: _Budget = attrs.field(factory=_Budget)
    files: dict[str, SourceFile] = attrs.field(factory=dict)
    refused: dict[str, Refusal] = attrs.field(factory=dict)

    @classmethod
    def of(cls, folder: Path, project_root: Path) -> _Reading:
        return cls(
            folder=os.path.abspath(folder),
            root=os.path.abspath(project_root),
        )

    # Only when something has to be read: in a deep tree, resolving each of its folders costs more than all the rest.
    @cached_property
    def real_folder(self) -> str:
        return os.path.realpath(self.folder)

    @cached_property
    def real_root(self) -> str:
        return os.path.realpath(self.root)

    def add_plugin_folders(self) -> None:
        home = _Entry(".opencode", os.path.join(self.folder, ".opencode"))
        if not os.path.lexists(home.path):
            return
        match self._resolve(home):
            case Refusal() as refusal:
                self._keep([refusal])
            case _:
                for entry in (home.child("plugins"), home.child("plugin")):
                    if os.path.lexists(entry.path):
                        self._add(entry)

    def add_declared(self, path: str) -> None:
        path = os.path.normpath(os.path.join(self.folder, path))
        self._add(_Entry(self._name(path), path))

    def _name(self, path: str) -> str:
        """Name a path relative to the folder, so that the name stays when the project moves."""
        for lexical, real in ((self.folder, self.real_folder), (self.root, self.real_root)):
            if _is_inside(path, lexical):
                up = os.path.relpath(real, self.real_folder)
                return Path(os.path.normpath(os.path.join(up, os.path.relpath(path, lexical)))).as_posix()
        try:
            real = os.path.realpath(path)
        except ValueError:  # a NUL in it
            return path
        return Path(os.path.relpath(real, self.real_folder) if self._has(real) else path).as_posix()

    def _add(self, top: _Entry) -> None:
        """Read one file or tree: all of it, or, where it is too much, nothing."""
        budget = attrs.evolve(self.budget)
        try:
            found = list(self._read(top, budget))
        except _TooMuch as exc:
            self._keep([top.refusal(f"brings the project's plugins to {exc}, so nothing in it is imported")])
        else:
            self._keep(found)
            self.budget = budget

    def _keep(self, found: Iterable[SourceFile | Refusal]) -> None:
        for item in found:
            if isinstance(item, Refusal):
                self.refused[item.relative] = item
            else:
                self.files[item.relative] = item

    def _read(self, top: _Entry, budget: _Budget) -> Iterator[SourceFile | Refusal]:
        # With each entry the real folders above it, to notice a link that leads back to one of them.
        pending: list[tuple[_Entry, tuple[str, ...]]] = [(top, ())]
        while pending:
            entry, above = pending.pop()
            if entry.relative in self.files:
                continue
            real = self._resolve(entry, above)
            match real if isinstance(real, Refusal) else _look(entry, real, budget):
                case Refusal() as refusal:
                    budget.spend(files=1)
                    yield refusal
                case bytes() as content:
                    budget.spend(files=1, size=len(content))
                    yield SourceFile(relative=entry.relative, path=Path(entry.path), content=content)
                case children:
                    pending.extend((child, (*above, str(real))) for child in children)

    def _resolve(self, entry: _Entry, above: tuple[str, ...] = ()) -> str | Refusal:
        """Follow all links, and refuse what does not lead to a place inside the project."""
        if not entry.relative.isprintable():
            return entry.refusal("has a name with characters that are not printable UTF-8 text")
        # The folder above is resolved already; following its links again for each file in it would be slow.
        path = os.path.join(above[-1], os.path.basename(entry.path)) if above else entry.path
        try:
            real = os.path.realpath(path, strict=True)
        except (OSError, ValueError) as exc:
            return _unreadable(entry, exc)
        if not self._has(real):
            return entry.refusal(f"leads to '{real}', which is outside of the project '{self.real_root}'")
        if real in above:
            return entry.refusal("is a link that leads back to a folder it is in")
        if len(above) > DEPTH_LIMIT:
            return entry.refusal(f"is more than {DEPTH_LIMIT} folders deep")
        return real

    def _has(self, real: str) -> bool:
        return _is_inside(real, self.real_root)


def _look(entry: _Entry, real: str, budget: _Budget) -> bytes | list[_Entry] | Refusal:
    """Return what is in a Python file or a folder."""
    try:
        mode = os.lstat(real).st_mode
        if stat.S_ISDIR(mode):
            return list(_children(entry, real, budget))
        if not stat.S_ISREG(mode):
            return entry.refusal("is neither a regular file nor a folder")
        if not entry.path.endswith(".py"):
            return entry.refusal("is neither a Python file nor a folder")
        content = _content(real)
    except (OSError, ValueError) as exc:
        return _unreadable(entry, exc)
    return entry.refusal(content) if isinstance(content, str) else content


def _children(entry: _Entry, real: str, budget: _Budget) -> Iterator[_Entry]:
    with os.scandir(real) as found:
        for each in found:
            budget.spend(names=1)
            if _could_be_imported(each):
                yield entry.child(each.name)


def _could_be_imported(found: os.DirEntry[str]) -> bool:
    if found.name.startswith(".") or found.name == "__pycache__":
        return False
    if found.name.endswith(".py"):
        return True
    try:
        leads_nowhere = found.is_symlink() and not os.path.exists(found.path)
        return found.is_dir() or leads_nowhere
    except OSError:  # a circle of links, or one through a closed folder: to be refused by name
        return True


def _content(real: str) -> bytes | str:
    """Read a file that was just seen to be regular, or say why not: it may be another one by now."""
    handle = os.open(real, _open_flags())
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return "is neither a regular file nor a folder"
        content = bytearray()
        while chunk := os.read(handle, 1 << 20):
            content += chunk
            if len(content) > FILE_SIZE_LIMIT:
                return f"is larger than {FILE_SIZE_LIMIT // 1024**2} MiB"
        return bytes(content)
    finally:
        os.close(handle)


def _open_flags() -> int:
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, name, 0)  # where a flag is missing, so is what it guards against
    return flags


def _unreadable(entry: _Entry, exc: OSError | ValueError) -> Refusal:
    match exc:
        case FileNotFoundError():
            return entry.refusal("does not exist, or is a link that leads nowhere")
        case OSError(errno=errno.ELOOP):
            return entry.refusal("is a link that leads in a circle")
        case OSError():
            return entry.refusal(f"cannot be read ({exc.strerror})")
        case _:
            return entry.refusal(f"cannot be read ({exc})")


def _is_inside(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)


def _shown(text: str) -> str:
    """Escape what a terminal would act on or could not show, because a project chooses its own names."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _canonical_json(declarations: Mapping[str, object]) -> str:
    return json.dumps(dict(declarations), sort_keys=True, separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    """Encode what TOML and frozen configuration have beyond JSON."""
    match value:
        case Mapping():
            return dict(value)
        case datetime.date() | datetime.time():
            return value.isoformat()
        case os.PathLike():
            return Path(value).as_posix()
        case _:
            raise TypeError(f"'{type(value).__name__}' is not a value of a configuration file")
