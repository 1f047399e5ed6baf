"""Records which projects' code a person has trusted. Never reads that code, never runs it and never asks."""

from __future__ import annotations

import hashlib
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import attrs

from opencode_core.errors import PluginUntrustedError, TrustError
from opencode_core.plugins.project_code import ProjectCode

__all__ = ["Changed", "TrustStore", "Trusted", "TrustedProject", "Unknown", "Verdict", "untrusted_error"]

VERSION = 1
REFUSED = "refused"


@attrs.frozen(kw_only=True)
class Trusted:
    """A person trusted exactly this code, or there is no code."""


@attrs.frozen(kw_only=True)
class Unknown:
    """Nobody ever decided about this project."""


@attrs.frozen(kw_only=True)
class Changed:
    """The project was trusted, but it is not what it was.

    Attributes:
        added: Names of files that were not there.
        removed: Names of files that are gone.
        modified: Names of files with other content, or that are now refused, or were.
        declarations: Whether the configuration says something else about plugins.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    modified: tuple[str, ...]
    declarations: bool


Verdict: TypeAlias = Trusted | Unknown | Changed


@attrs.frozen(kw_only=True)
class TrustedProject:
    """One decision as it was recorded.

    Attributes:
        folder: The project's folder, resolved.
        digest: What was trusted.
        when: When, as it was given.
        files: Each file's hash by name; ``refused`` for a file that was not to be imported even then.
        declarations: The hash of the declarations. Not their text, which may hold secrets.
    """

    folder: Path
    digest: str
    when: str
    files: Mapping[str, str]
    declarations: str


@attrs.define(eq=False, repr=False)
class TrustStore:
    """The record of trusted projects, one file that only its owner can read.

    Attributes:
        path: The file; while it is missing, nothing is trusted.
        patience: How many seconds to wait for another process that is writing.
    """

    path: Path
    patience: float = attrs.field(default=10.0, kw_only=True)

    def verdict(self, code: ProjectCode) -> Verdict:
        """Compare code with what was trusted.

        Raises:
            TrustError: The record cannot be read.
        """
        if code.is_empty:
            return Trusted()
        trusted = _load(self.path).get(_resolved(code.folder))
        if trusted is None:
            return Unknown()
        return Trusted() if trusted.digest == code.digest else _difference(trusted, code)

    def trust(self, code: ProjectCode, *, when: str) -> None:
        """Record that a person trusts exactly this code, in place of what was trusted of its folder before.

        Args:
            code: What the person was shown.
            when: The time of the decision, ISO 8601.

        Raises:
            TrustError: The record cannot be read or written; it is as it was.
        """
        project = _decision(code, when)
        with self._writing() as projects:
            projects[str(project.folder)] = project

    def revoke(self, folder: Path) -> bool:
        """Forget a decision, and say whether there was one.

        Raises:
            TrustError: The record cannot be read or written; it is as it was.
        """
        if _resolved(folder) not in _load(self.path):
            return False
        with self._writing() as projects:
            return projects.pop(_resolved(folder), None) is not None

    def projects(self) -> tuple[TrustedProject, ...]:
        """Return all decisions, by folder.

        Raises:
            TrustError: The record cannot be read.
        """
        projects = _load(self.path)
        return tuple(projects[folder] for folder in sorted(projects))

    @contextmanager
    def _writing(self) -> Iterator[dict[str, TrustedProject]]:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _locked(self.path.with_name(f"{self.path.name}.lock"), self.patience):
                projects = _load(self.path)
                yield projects
                _replace(self.path, _dump(projects))
        except OSError as exc:
            raise TrustError(
                f"The record of trusted projects '{self.path}' cannot be written: {exc.strerror}.",
                f"Make the folder '{self.path.parent}' writable, then try again.",
            ) from exc


def untrusted_error(plugin: str, folder: Path, verdict: Unknown | Changed) -> PluginUntrustedError:
    """Say why a project's plugin does not run, and which command lets it."""
    return PluginUntrustedError(
        f"The plugin '{plugin}' is code of the project '{folder}', which {_reason(verdict)}.",
        f"Read its code, then run `opencode-core plugins trust {shlex.quote(str(folder))}`.",
        plugin=plugin,
    )


def _reason(verdict: Unknown | Changed) -> str:
    if isinstance(verdict, Unknown):
        return "was not trusted yet"
    groups = {"added": verdict.added, "removed": verdict.removed, "modified": verdict.modified}
    parts = [f"{word} {_listing(names)}" for word, names in groups.items() if names]
    if verdict.declarations:
        parts.append("what its configuration says")
    return f"changed since it was trusted ({'; '.join(parts) or 'its digest'})"


def _listing(names: tuple[str, ...], most: int = 5) -> str:
    quoted = ", ".join(f"'{name}'" for name in names[:most])
    return quoted if len(names) <= most else f"{quoted} and {len(names) - most} more"


def _difference(trusted: TrustedProject, code: ProjectCode) -> Changed:
    before, now = trusted.files, _entries(code)
    return Changed(
        added=tuple(sorted(now.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - now.keys())),
        modified=tuple(sorted(name for name in before.keys() & now.keys() if before[name] != now[name])),
        declarations=trusted.declarations != _sha256(code.declarations),
    )


def _decision(code: ProjectCode, when: str) -> TrustedProject:
    folder = _resolved(code.folder)
    try:
        folder.encode()
    except UnicodeEncodeError as exc:
        raise TrustError(
            f"The project {folder!a} cannot be recorded, because its path is not UTF-8 text.",
            "Rename the folder, then try again.",
        ) from exc
    return TrustedProject(
        folder=Path(folder),
        digest=code.digest,
        when=when,
        files=_entries(code),
        declarations=_sha256(code.declarations),
    )


def _entries(code: ProjectCode) -> dict[str, str]:
    entries = {file.relative: file.sha256 for file in code.files}
    for refusal in code.refused:
        # The escaped name of a refused file can be the name of another one.
        entries[refusal.relative] = f"{entries.get(refusal.relative, '')} {REFUSED}".lstrip()
    return entries


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _resolved(folder: Path) -> str:
    return os.path.realpath(folder)


def _load(path: Path) -> dict[str, TrustedProject]:
    """Read the record; a reader needs no lock, because the file is only ever replaced."""
    import tomllib

    try:
        document = tomllib.loads(path.read_bytes().decode())
    except FileNotFoundError:
        return {}
    except OSError as exc:
        raise TrustError(
            f"The record of trusted projects '{path}' cannot be read: {exc.strerror}.",
            "Make it readable, or move it aside and trust your projects again.",
        ) from exc
    except UnicodeDecodeError as exc:
        raise _damaged(path, "it is not UTF-8 text") from exc
    except tomllib.TOMLDecodeError as exc:
        raise _damaged(path, f"it is not TOML ({exc})") from exc
    return _decoded(path, document)


def _decoded(path: Path, document: Mapping[str, object]) -> dict[str, TrustedProject]:
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise _damaged(path, "it has no version")
    if version > VERSION:
        raise TrustError(
            f"The record of trusted projects '{path}' has version {version}; known here is {VERSION}.",
            "Update opencode-core, or move the file aside and trust your projects again.",
        )
    projects = document.get("projects", {})
    if not isinstance(projects, dict):
        raise _damaged(path, "'projects' is not a table")
    return {folder: _project(path, folder, fields) for folder, fields in projects.items()}


def _project(path: Path, folder: str, fields: object) -> TrustedProject:
    match fields:
        case {
            "digest": str(digest),
            "when": str(when),
            "declarations": str(declarations),
            "files": dict(files),
        } if all(isinstance(entry, str) for entry in files.values()):
            return TrustedProject(folder=Path(folder), digest=digest, when=when, files=files, declarations=declarations)
        case _:
            raise _damaged(path, f"the entry of '{folder}' is incomplete or has values of the wrong type")


def _damaged(path: Path, what: str) -> TrustError:
    return TrustError(
        f"The record of trusted projects '{path}' is damaged: {what}.",
        "Move it aside, then trust your projects again with `opencode-core plugins trust DIRECTORY`.",
    )


def _dump(projects: Mapping[str, TrustedProject]) -> bytes:
    import tomli_w

    tables = {
        folder: {
            "digest": project.digest,
            "when": project.when,
            "declarations": project.declarations,
            "files": dict(sorted(project.files.items())),
        }
        for folder, project in sorted(projects.items())
    }
    return tomli_w.dumps({"version": VERSION, "projects": tables}).encode()


def _replace(path: Path, content: bytes) -> None:
    """Put a file in the place of another so that a crash leaves one of the two, whole."""
    # One name is enough under the lock, and what a killed process left behind is not left for ever.
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    if os.name == "posix":
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _locked(file: Path, patience: float) -> Iterator[None]:
    pause = 0.005
    for _ in range(max(1, round(patience / pause))):
        release = _take(file)
        if release is not None:
            break
        time.sleep(pause)
    else:
        raise TrustError(
            f"The record of trusted projects is locked by another process, which holds '{file}'.",
            "Try again when it has ended; if none is running, delete that file.",
        )
    try:
        yield
    finally:
        release()


def _take(file: Path) -> Callable[[], None] | None:
    """Take the lock if it is free, and return what gives it back."""
    try:
        import fcntl
    except ImportError:
        return _take_by_creating(file)
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:
        os.close(handle)
        raise

    def release() -> None:
        # Closing alone would leave the lock with a process that was forked meanwhile.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)

    return release


def _take_by_creating(file: Path) -> Callable[[], None] | None:
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except (FileExistsError, PermissionError):  # Windows denies a file that is just being deleted
        return None
    return file.unlink
