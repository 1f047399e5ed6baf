"""Copies of remote skills on disk are complete or not there, whoever replaces them, fails or dies meanwhile."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from plugins_builtin.skills import copies
from plugins_builtin.skills.index import Listed
from tests.skills.making import skill_text, write


def install(root: Path, body: str, version: str = "1") -> None:
    copies.install(
        root,
        Listed(name="one", files=("SKILL.md",), version=version),
        {"SKILL.md": skill_text(name="one", body=body).encode()},
        0.0,
    )


def body_of(root: Path) -> str:
    return (copies.find_copies(root)["one"].path / "SKILL.md").read_text().splitlines()[-1]


def test_a_copy_that_cannot_take_its_place_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "Old.")
    rename = os.rename

    def fail(source: Path, target: Path) -> None:
        if ".new-" in str(source):
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="No space"):
        install(tmp_path, "New.", "2")
    assert body_of(tmp_path) == "Old."
    assert os.listdir(tmp_path) == ["one"]


def test_a_process_that_dies_between_two_renames_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "Old.")
    os.rename(tmp_path / "one", tmp_path / ".one.old-123")
    assert body_of(tmp_path) == "Old."
    install(tmp_path, "New.", "2")
    assert body_of(tmp_path) == "New."


def test_what_dead_processes_left_is_removed_after_an_hour_but_not_the_only_copy(tmp_path: Path) -> None:
    install(tmp_path, "One.")
    for name in (".one.new-1", ".one.old-2", ".one.gone-3", ".two.old-4"):
        write(tmp_path / name / "SKILL.md")
    now = (tmp_path / ".one.new-1").stat().st_mtime
    copies.tidy(tmp_path, now + 3_000)
    assert len(os.listdir(tmp_path)) == 5
    copies.tidy(tmp_path, now + 4_000)
    assert sorted(os.listdir(tmp_path)) == [".two.old-4", "one"]


def test_a_copy_without_a_mark_or_of_another_name_is_none_and_hides_no_other(tmp_path: Path) -> None:
    install(tmp_path, "One.")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    write(tmp_path / "three/SKILL.md")
    write(tmp_path / "four/.opencode-skill.json", "no JSON")
    write(tmp_path / "file")
    assert list(copies.find_copies(tmp_path)) == ["one"]


def test_a_copy_that_is_replaced_while_it_is_looked_for_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "Old.")
    look = copies._copy

    def replaced(folder: Path) -> copies.Copy | None:
        monkeypatch.setattr(copies, "_copy", look)
        os.rename(tmp_path / "one", tmp_path / ".one.old-1")
        return look(folder)

    monkeypatch.setattr(copies, "_copy", replaced)
    assert body_of(tmp_path) == "Old."


def test_many_who_replace_a_copy_at_once_leave_a_complete_one(tmp_path: Path) -> None:
    def replace(number: int) -> None:
        for _ in range(20):
            install(tmp_path, f"{number}.", str(number))

    threads = [threading.Thread(target=replace, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert body_of(tmp_path) == f"{copies.find_copies(tmp_path)['one'].listed.version}."
    assert os.listdir(tmp_path) == ["one"]
