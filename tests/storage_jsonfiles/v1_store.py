"""Builds stores as the first generation left them on the disk, and looks at stores from outside."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

PROJECT = "4b0ea68d7af9a6031a7ffda7ad66e0cb83315750"
SESSION = "ses_68d7af9a6ffeKq3Vb2ZxLw01Tn"
USER = "msg_97285065a001aB3dE5fG7hI9jK"
ASSISTANT = "msg_97285065b001Zy9Xw7Vu5Ts3Rq"
CREATED = 1758067455000

TOKENS = {"input": 1200, "output": 45, "reasoning": 0, "cache": {"read": 800, "write": 0}}
DIFFS = [
    {"file": "src/ärger.ts", "before": "a\n", "after": "b\nc\n", "additions": 2, "deletions": 1},
    {"file": "README.md", "before": "", "after": "x\n", "additions": 1, "deletions": 0},
]

PARTS: list[dict[str, Any]] = [
    {"type": "text", "text": 'Größe \u2028 "quoted" \t tab \u0001 \U0001f600', "time": {"start": CREATED}},
    {"type": "reasoning", "text": "", "time": {"start": CREATED, "end": CREATED + 5}, "metadata": {"a": {}, "b": []}},
    {
        "type": "tool",
        "callID": "toolu_01",
        "tool": "read",
        "state": {
            "status": "completed",
            "input": {"filePath": "/home/me/a b.txt", "limit": 0.5},
            "output": "<file>\n00001| é\n</file>",
            "title": "a b.txt",
            "metadata": {"preview": None, "truncated": False},
            "time": {"start": CREATED, "end": CREATED + 12, "compacted": CREATED + 99},
            "attachments": [{"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"}],
        },
    },
    {"type": "file", "mime": "text/plain", "filename": "a.txt", "url": "file:///home/me/a.txt"},
    {"type": "snapshot", "snapshot": "0f1e2d"},
    {"type": "patch", "hash": "0f1e2d", "files": ["/home/me/a.txt"]},
    {"type": "agent", "name": "build", "source": {"value": "@build", "start": 0, "end": 6}},
    {"type": "compaction", "auto": True},
    {"type": "subtask", "prompt": "look", "description": "Looks", "agent": "general"},
    {"type": "retry", "attempt": 2, "error": {"name": "APIError", "data": {}}, "time": {"created": CREATED}},
    {"type": "step-start"},
    {"type": "step-finish", "reason": "stop", "tokens": TOKENS, "cost": 1.05e-7},
]


def documents() -> dict[str, Any]:
    """Return the documents of a store of version 2, by the path of their file."""
    parts = {
        f"part/{ASSISTANT}/prt_{number:02d}.json": {
            "id": f"prt_{number:02d}",
            "sessionID": SESSION,
            "messageID": ASSISTANT,
            **part,
        }
        for number, part in enumerate(PARTS)
    }
    return {
        f"project/{PROJECT}.json": {
            "id": PROJECT,
            "worktree": "/home/me/work",
            "vcs": "git",
            "time": {"created": CREATED, "initialized": CREATED + 3},
        },
        f"session/{PROJECT}/{SESSION}.json": session({"additions": 3, "deletions": 1, "files": 2}),
        f"message/{SESSION}/{USER}.json": {
            "id": USER,
            "role": "user",
            "sessionID": SESSION,
            "time": {"created": CREATED},
            "agent": "build",
            "model": {"providerID": "anthropic", "modelID": "claude-sonnet-4"},
        },
        f"message/{SESSION}/{ASSISTANT}.json": assistant("/home/me/work"),
        f"session_diff/{SESSION}.json": DIFFS,
        f"share/{SESSION}.json": {"id": SESSION[-8:], "secret": "s3cret", "url": "https://opncd.example/s/1"},
        **parts,
    }


def session(summary: dict[str, Any]) -> dict[str, Any]:
    """Return a session's document."""
    return {
        "id": SESSION,
        "version": "0.9.11",
        "projectID": PROJECT,
        "directory": "/home/me/work",
        "title": "Ein schöner Titel",
        "time": {"created": CREATED, "updated": CREATED + 60_000},
        "summary": summary,
    }


def assistant(root: str) -> dict[str, Any]:
    """Return an assistant message's document."""
    return {
        "id": ASSISTANT,
        "role": "assistant",
        "sessionID": SESSION,
        "parentID": USER,
        "time": {"created": CREATED, "completed": CREATED + 8},
        "path": {"cwd": root, "root": root},
        "cost": 0,
        "tokens": TOKENS,
        "modelID": "claude-sonnet-4",
        "providerID": "anthropic",
    }


def indented(document: Any) -> bytes:
    """Return the bytes that ``JSON.stringify(document, null, 2)`` gave for these documents."""
    return json.dumps(document, ensure_ascii=False, indent=2).replace("1.05e-07", "1.05e-7").encode()


def compact(document: Any) -> bytes:
    """Return the bytes that ``JSON.stringify(document)`` gave for these documents."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def build(root: Path, version: bytes | None = b"2") -> Path:
    """Write a store as the first generation did, and return its folder."""
    for name, document in documents().items():
        write(root / name, indented(document))
    if version is not None:
        write(root / "migration", version)
    return root


def build_oldest(data: Path) -> tuple[Path, str]:
    """Write the oldest layout beside where the store will be; return the store's folder and the project's id."""
    worktree = data.parent / "worktree"
    commit = new_repository(worktree)
    old = data / "project" / "home-me-work" / "storage" / "session"
    write(old / "info" / f"{SESSION}.json", indented(session({"additions": 0, "deletions": 0, "diffs": DIFFS})))
    for number, message in enumerate((documents()[f"message/{SESSION}/{USER}.json"], assistant(str(worktree)))):
        write(old / "message" / SESSION / f"{message['id']}.json", indented(message))
        write(old / "part" / SESSION / message["id"] / f"prt_{number}.json", indented({"id": f"prt_{number}"}))
    return data / "storage", commit


def new_repository(folder: Path) -> str:
    """Make a git repository with two commits, and return the first one's id."""
    folder.mkdir(parents=True)
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, env={**os.environ, **who, **alone}, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    first = git("rev-parse", "HEAD")
    git("commit", "-q", "--allow-empty", "-m", "second")
    return first


def write(path: Path, content: bytes) -> None:
    """Write a file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def contents(root: Path) -> dict[str, bytes]:
    """Return every file below a folder, without the journal and locks."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".opencode-core" not in path.parts
    }


def paths(root: Path) -> list[Path]:
    """Return everything that is below a folder."""
    return sorted(root.rglob("*"))


def url(root: Path, switches: str = "") -> str:
    """Return the URL of the store in a folder."""
    return f"jsonfiles://{root}{switches}"
