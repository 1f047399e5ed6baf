"""Tells the model which git branch is checked out. Reads git's own files as data, and never runs git."""

from __future__ import annotations

from collections.abc import Iterator

from plugin_sdk import ContextSource, Location, PluginManifest, context_source, hookimpl

opencode_plugin = PluginManifest(api=1, description="Tells the model the current git branch.")


@context_source("git-branch/head", required=False)
def branch(location: Location) -> str | None:
    """The current git branch."""
    git = location.root / ".git"
    if git.is_file():  # a worktree or a submodule: the file says where the folder is
        git = location.root / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    if not git.exists():
        return None
    head = (git / "HEAD").read_text(encoding="utf-8").strip()
    name = head.removeprefix("ref: refs/heads/")
    return name if name != head else f"none (at commit {head[:7]})"


@hookimpl
def opencode_context_sources(location: Location) -> Iterator[ContextSource[str]]:
    """Contributes the branch, in every Location: a folder may become a repository while a session runs."""
    yield branch(location)
