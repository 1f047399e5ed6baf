"""Tells the model which git branch is checked out. Reads ``.git/HEAD`` as data, and never runs git."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from plugin_sdk import UNAVAILABLE, ContextSource, Location, PluginManifest, Unavailable, hookimpl

opencode_plugin = PluginManifest(api=1, description="Tells the model the current git branch.")


@hookimpl
def opencode_context_sources(location: Location) -> Iterator[ContextSource[str]]:
    """Contributes the branch, in a project that is a git working tree."""
    if not location.is_git:
        return

    async def load() -> str | Unavailable:
        return read_head(location.root / ".git")

    yield ContextSource(
        key="git-branch/head",
        load=load,
        baseline=lambda head: f"The current git branch is {head}.",
        update=lambda before, now: f"The git branch changed from {before} to {now}.",
        removed=lambda _head: "The current git branch is no longer tracked: ask git before relying on it.",
    )


def read_head(git: Path) -> str | Unavailable:
    """Returns the branch, or the commit when none is checked out; UNAVAILABLE when git's files cannot be read."""
    try:
        if git.is_file():  # a worktree or a submodule: the file says where the folder is
            git = git.parent / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return UNAVAILABLE
    branch = head.removeprefix("ref: refs/heads/")
    return branch if branch != head else f"none (at commit {head[:7]})"
