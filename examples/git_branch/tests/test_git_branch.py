"""The model knows the branch, hears when it changes, and is told nothing that could not be read."""

from pathlib import Path

import pytest

import opencode_git_branch
from plugin_sdk import UNAVAILABLE
from plugin_sdk.testing import load_plugin


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return tmp_path


async def test_the_model_is_told_the_branch(project: Path) -> None:
    async with load_plugin(opencode_git_branch, directory=project) as plugin:
        assert await plugin.baseline() == "The current git branch is main."


async def test_the_model_is_told_when_the_branch_changes(project: Path) -> None:
    async with load_plugin(opencode_git_branch, directory=project) as plugin:
        source = (await plugin.sources())["git-branch/head"]
        before = await source.load()
        (project / ".git" / "HEAD").write_text("ref: refs/heads/feature/login\n")
        now = await source.load()
        assert source.update(before, now) == "The git branch changed from main to feature/login."


async def test_outside_of_git_there_is_nothing_to_tell(tmp_path: Path) -> None:
    async with load_plugin(opencode_git_branch, directory=tmp_path) as plugin:
        assert await plugin.sources() == {}


def test_without_a_branch_the_commit_is_told(project: Path) -> None:
    (project / ".git" / "HEAD").write_text("1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d\n")
    assert opencode_git_branch.read_head(project / ".git") == "none (at commit 1a2b3c4)"


def test_a_worktree_is_followed_to_its_folder(project: Path) -> None:
    (project / "worktree").mkdir()
    (project / "worktree" / ".git").write_text("gitdir: ../.git\n")
    assert opencode_git_branch.read_head(project / "worktree" / ".git") == "main"


def test_what_cannot_be_read_is_unavailable(tmp_path: Path) -> None:
    assert opencode_git_branch.read_head(tmp_path / ".git") is UNAVAILABLE
