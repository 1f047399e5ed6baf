"""Brings the documents of an older layout into the present one. Takes no lock, makes no backup.

The results are those of the first generation's own migrations, down to the bytes. Every step only reads and yields
changes, which somebody else commits in order. The number of the layout comes last, and what is written before it can be
written again, so a migration that was interrupted is simply begun anew.
"""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from plugin_sdk.storage import JSON, StorageDamagedError, StorageError, StorageUnavailableError
from plugins_builtin.storage_jsonfiles import listing
from plugins_builtin.storage_jsonfiles.changes import Change, new_version, put
from plugins_builtin.storage_jsonfiles.failures import translated
from plugins_builtin.storage_jsonfiles.files import Files
from plugins_builtin.storage_jsonfiles.inspection import CURRENT, OLD_SESSIONS, old_projects
from plugins_builtin.storage_jsonfiles.text import TooDeepError, from_bytes, to_bytes

GLOBAL = "global"
_REPOSITORY = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"})


def migrated(files: Files, version: int) -> Iterator[list[Change]]:
    """Yields groups of changes, each of which must be committed before the next is asked for.

    Before the first group of each step, everything that the step reads has been read once, so nothing that cannot be
    migrated stops it halfway.

    Raises:
        StorageDamagedError: A document that has to be changed cannot be read.
        StorageError: Something cannot be reached.
    """
    for step in range(version, CURRENT):
        for _ in _STEPS[step](files):  # made twice and not kept, because it may be more than memory holds
            pass
        yield from _STEPS[step](files)
        yield [new_version(step + 1)]


def _from_project_folders(files: Files) -> Iterator[list[Change]]:
    """Takes over what was kept in one folder per project beside the store, which stays as it is."""
    for folder in old_projects(files.root):
        worktree = _worktree(folder) if folder.name != GLOBAL else None
        commit = _root_commit(worktree) if worktree is not None else None
        if commit is None:  # the first generation left these where they are, too
            continue
        now = time.time_ns() // 1_000_000
        project = {"id": commit, "vcs": "git", "worktree": worktree, "time": {"created": now, "initialized": now}}
        yield [put("project", (commit,), to_bytes(project, compact=True))]
        for path in _json_files(folder / OLD_SESSIONS):
            yield from _session_of(folder, path, commit)


def _session_of(folder: Path, path: Path, commit: str) -> Iterator[list[Change]]:
    session = _mapping(path)
    yield [put("session", (commit, path.stem), to_bytes(session, compact=True))]
    session_id = str(session.get("id"))
    for message_path in _json_files(folder / "storage" / "session" / "message" / session_id):
        message = _mapping(message_path)
        message_id = str(message.get("id"))
        parts = _json_files(folder / "storage" / "session" / "part" / session_id / message_id)
        yield [
            put("message", (session_id, message_path.stem), to_bytes(message, compact=True)),
            *(put("part", (message_id, part.stem), to_bytes(_mapping(part), compact=True)) for part in parts),
        ]


def _diffs_apart(files: Files) -> Iterator[list[Change]]:
    """Moves each session's diffs into a document of their own, and keeps their sums in the session."""
    for _, names in list(listing.keys(files, "session")):
        session = _parsed(files.read(names) or b"null", files.shown(names))
        if len(names) != 3 or not isinstance(session, Mapping):
            continue
        summary, project, session_id = session.get("summary"), session.get("projectID"), session.get("id")
        diffs = summary.get("diffs") if isinstance(summary, Mapping) else None
        if not isinstance(project, str) or not project or not isinstance(session_id, str) or not _is_list(diffs):
            continue
        sums: dict[str, JSON] = {name: _sum(diffs, name) for name in ("additions", "deletions")}
        yield [
            put("session_diff", (session_id,), to_bytes(diffs, compact=True)),
            put("session", (project, session_id), to_bytes({**session, "summary": sums}, compact=True)),
        ]


_STEPS: tuple[Callable[[Files], Iterator[list[Change]]], ...] = (_from_project_folders, _diffs_apart)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _sum(diffs: JSON, name: str) -> int | float:
    assert isinstance(diffs, Sequence)
    numbers = [diff.get(name) for diff in diffs if isinstance(diff, Mapping)]
    return sum(number for number in numbers if isinstance(number, int | float))


def _worktree(folder: Path) -> str | None:
    """Returns where a project's files are, by what the first message that knows says."""
    for session in sorted((folder / "storage" / "session" / "message").glob("*")):
        for path in _json_files(session):
            where = _mapping(path).get("path")
            root = where.get("root") if isinstance(where, Mapping) else None
            if isinstance(root, str) and root:
                return root if Path(root).is_dir() else None
    return None


def _root_commit(worktree: str) -> str | None:
    """Returns the first commit of a repository, by which the first generation knows projects."""
    command = ["git", "-C", worktree, "rev-list", "--max-parents=0", "--all"]
    # A program that git itself runs is told a repository, which would be asked instead.
    environment = {name: value for name, value in os.environ.items() if name not in _REPOSITORY}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StorageUnavailableError(
            f"The command 'git' could not be run for the project '{worktree}' ({type(error).__name__}).",
            "Install git, which tells projects apart, and open the store again.",
        ) from error
    return min((line.strip() for line in done.stdout.splitlines() if line.strip()), default=None)


def _json_files(folder: Path) -> list[Path]:
    with translated(str(folder)):
        if not folder.is_dir():
            return []
        return sorted(path for path in folder.glob("*.json") if stat.S_ISREG(path.lstat().st_mode))


def _mapping(path: Path) -> Mapping[str, JSON]:
    with translated(str(path)):
        document = _parsed(path.read_bytes(), str(path))
    if not isinstance(document, Mapping):
        raise _damaged(str(path))
    return document


def _parsed(content: bytes, place: str) -> JSON:
    try:
        return from_bytes(content)
    except TooDeepError as error:
        raise StorageError(
            f"The file '{place}' cannot be migrated, because it is nested too deeply to be read.",
            "Make it flatter, and open the store again.",
        ) from error
    except ValueError as error:
        raise _damaged(place) from error


def _damaged(place: str) -> StorageDamagedError:
    return StorageDamagedError(
        f"The file '{place}' cannot be migrated, because it is not the JSON that belongs there.",
        "Repair it or move it away, and open the store again.",
    )
