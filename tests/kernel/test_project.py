from __future__ import annotations

import os
from pathlib import Path

import pytest

from opencode_core.errors import ConfigError
from opencode_core.model.location import Location
from opencode_core.project import find_location


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


def test_the_root_is_the_nearest_ancestor_with_a_git_folder(directory: Path) -> None:
    (directory / ".git").mkdir()
    inner = directory / "inner"
    (inner / ".git").mkdir(parents=True)
    nested = inner / "src" / "deep"
    nested.mkdir(parents=True)

    assert find_location(nested) == Location(directory=nested, root=inner, is_git=True)


def test_the_git_file_of_a_worktree_marks_the_root(directory: Path) -> None:
    (directory / ".git").write_text("gitdir: /elsewhere")
    (directory / "src").mkdir()

    assert find_location(directory / "src").root == directory


def test_a_directory_outside_git_is_its_own_root(directory: Path) -> None:
    (directory / "src").mkdir()

    assert find_location(directory / "src") == Location(
        directory=directory / "src", root=directory / "src", is_git=False
    )


def test_a_link_to_a_directory_is_followed(directory: Path) -> None:
    (directory / "real").mkdir()
    (directory / "link").symlink_to("real")

    assert find_location(directory / "link").directory == directory / "real"


def test_a_relative_text_becomes_an_absolute_path(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory / "src").mkdir()
    monkeypatch.chdir(directory)

    assert find_location("src").directory == directory / "src"


def test_a_missing_directory_is_an_error_that_names_it(directory: Path) -> None:
    with pytest.raises(ConfigError, match=r"The directory '.*nowhere' does not exist\. Create it"):
        find_location(directory / "nowhere")


def test_a_file_is_not_a_directory(directory: Path) -> None:
    (directory / "file").touch()

    with pytest.raises(ConfigError, match=r"file' is not a directory\. Name one"):
        find_location(directory / "file")


def test_a_link_that_leads_to_itself_is_an_error(directory: Path) -> None:
    (directory / "loop").symlink_to("loop")

    with pytest.raises(ConfigError, match="cannot be reached"):
        find_location(directory / "loop")


def test_a_path_that_no_system_allows_is_an_error() -> None:
    with pytest.raises(ConfigError, match="cannot be reached"):
        find_location("a\0b")


def test_the_folders_go_from_the_root_down_to_the_directory(directory: Path) -> None:
    nested = directory / "a" / "b"

    assert Location(directory=nested, root=directory, is_git=True).folders == (
        directory,
        directory / "a",
        nested,
    )


def test_a_project_without_git_has_one_folder(directory: Path) -> None:
    assert find_location(directory).folders == (directory,)
