"""The source keeps every law of context sources, and knows what git's files say."""

from pathlib import Path

import pytest

import opencode_git_branch
from plugin_sdk.testing import ContextSourceContract, load_plugin

KEY = "git-branch/head"


def check_out(project: Path, head: str = "ref: refs/heads/main") -> None:
    """Leave a project as git would, with something checked out."""
    (project / ".git").mkdir(exist_ok=True)
    (project / ".git" / "HEAD").write_text(f"{head}\n")


class TestBranch(ContextSourceContract, plugin=opencode_git_branch, key=KEY):
    def prepare(self, directory: Path) -> None:
        check_out(directory)

    def change(self, directory: Path) -> None:
        check_out(directory, "ref: refs/heads/feature/login")

    def take_away(self, directory: Path) -> None:
        (directory / ".git").rename(directory / "moved.git")


async def test_the_model_is_told_the_branch(tmp_path: Path) -> None:
    check_out(tmp_path)
    async with load_plugin(opencode_git_branch, directory=tmp_path) as plugin:
        assert await plugin.baseline() == "The current git branch: main"


async def test_outside_of_git_there_is_nothing_to_tell(tmp_path: Path) -> None:
    async with load_plugin(opencode_git_branch, directory=tmp_path) as plugin:
        assert await plugin.baseline() == ""


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("ref: refs/heads/feature/login", "feature/login"),
        ("1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d", "none (at commit 1a2b3c4)"),
    ],
)
async def test_a_branch_or_else_a_commit_is_told(tmp_path: Path, head: str, told: str) -> None:
    check_out(tmp_path, head)
    async with load_plugin(opencode_git_branch, directory=tmp_path) as plugin:
        assert await plugin.baseline() == f"The current git branch: {told}"


async def test_a_worktree_is_followed_to_its_folder(tmp_path: Path) -> None:
    check_out(tmp_path)
    (tmp_path / "worktree").mkdir()
    (tmp_path / "worktree" / ".git").write_text("gitdir: ../.git\n")
    async with load_plugin(opencode_git_branch, directory=tmp_path / "worktree") as plugin:
        assert await plugin.baseline() == "The current git branch: main"


async def test_what_cannot_be_read_is_not_told_and_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    async with load_plugin(opencode_git_branch, directory=tmp_path) as plugin:
        assert await plugin.baseline() == ""
        [diagnostic] = plugin.status.diagnostics
        assert f"'{KEY}'" in diagnostic.problem
