"""The folders of a project are looked into, each once, however many and however deep."""

import os
import resource
from pathlib import Path
from typing import Any

import pytest

from plugin_sdk.threads import BoundedThreads
from plugins_builtin.instructions.problems import PassingError
from plugins_builtin.instructions.scanning import scan
from tests.instructions.making import Person, telling

BOTH = pytest.mark.parametrize("by_descriptor", [True, False])


def paths(root: Path, directory: Path, *visited: Path, by_descriptor: bool) -> list[str]:
    scanned = scan(str(root), str(directory), map(str, visited), by_descriptor=by_descriptor)
    assert scanned.problems == ()
    return [os.path.relpath(each.path, root) for each in scanned.found]


@BOTH
def test_what_is_found_does_not_depend_on_how_folders_are_entered(tmp_path: Path, by_descriptor: bool) -> None:
    for path in ("AGENTS.md", "a/b/AGENTS.md", "a/b/CLAUDE.md", "a/c/CLAUDE.md", "d/e/AGENTS.md", "d/f/AGENTS.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    visited = [tmp_path / "d/f", tmp_path / "a/c/gone", tmp_path / "d/e", tmp_path.parent]
    found = paths(tmp_path, tmp_path / "a/b", *visited, by_descriptor=by_descriptor)
    assert found == ["AGENTS.md", "a/b/AGENTS.md", "a/c/CLAUDE.md", "d/e/AGENTS.md", "d/f/AGENTS.md"]
    assert paths(tmp_path, tmp_path.parent, by_descriptor=by_descriptor) == []


@BOTH
def test_a_missing_folder_on_the_way_to_the_directory_is_a_failure(tmp_path: Path, by_descriptor: bool) -> None:
    with pytest.raises(PassingError, match="cannot be observed now"):
        paths(tmp_path, tmp_path / "gone/deeper", by_descriptor=by_descriptor)


def test_the_root_of_the_file_system_is_a_root_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").touch()
    scanned = scan("/", str(tmp_path), ())
    assert str(tmp_path / "AGENTS.md") in [each.path for each in scanned.found]


def test_scanning_keeps_no_descriptor_open_even_when_it_fails(tmp_path: Path) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "a/d").mkdir()
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    for _ in range(3):
        scan(str(tmp_path), str(tmp_path / "a/b/c"), [str(tmp_path / "a/d"), str(tmp_path / "a/b/gone")])
        with pytest.raises(PassingError):
            scan(str(tmp_path), str(tmp_path / "a/b/gone"), [str(tmp_path / "a/d")])
    after = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    assert after == before


def test_a_chain_of_folders_takes_one_descriptor_at_a_time(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 300)
    os.makedirs(deep)
    (deep / "AGENTS.md").touch()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(map(int, os.listdir("/proc/self/fd"))) if os.path.exists("/proc/self/fd") else 100
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 10, hard))
    try:
        found = scan(str(tmp_path), str(deep), ()).found
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [each.path for each in found] == [str(deep / "AGENTS.md")]


async def test_one_observation_takes_one_thread_however_many_folders(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = person.project.joinpath(*["d"] * 40)
    directory.mkdir(parents=True)
    near = directory / "AGENTS.md"
    near.write_text("near")
    root = person.write("project/AGENTS.md", "root")
    hops: list[object] = []
    run = BoundedThreads.run

    async def counted(threads: BoundedThreads, function: Any) -> Any:
        hops.append(function)
        return await run(threads, function)

    async with telling(directory) as told:
        monkeypatch.setattr(BoundedThreads, "run", counted)
        assert await told.texts(person.project / "other") == {str(root): "root", str(near): "near"}
        assert len(hops) == 1
