"""Files and patterns that people configure as instructions."""

import errno
import inspect
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from plugins_builtin.instructions.globbing import PROBLEMS, Matches, expand
from tests.instructions.making import Person, telling

pytestmark = pytest.mark.behaviour("BX-08")


async def test_configured_files_follow_all_others_in_the_order_of_the_entries(person: Person) -> None:
    person.write("config/AGENTS.md", "global")
    person.write("project/AGENTS.md", "root")
    person.write("project/a/AGENTS.md", "nested")
    for name in ("z.md", "docs/2.md", "docs/1.md"):
        person.write(f"project/{name}", name)
    person.write("own.md", "own")
    absolute = person.write("shared/all.md", "absolute")
    entries = ["z.md", "docs/*.md", "~/own.md", str(absolute)]
    async with telling(person.project, files=entries) as told:
        texts = await told.texts(person.project / "a")
        assert list((texts or {}).values()) == [
            "global", "root", "nested", "z.md", "docs/1.md", "docs/2.md", "own", "absolute",
        ]  # fmt: skip
        assert told.warnings == []


async def test_a_relative_entry_is_looked_for_from_the_root_down_to_the_directory(person: Person) -> None:
    person.write("docs/rules.md", "above the root")
    for folder in ("", "a/b/", "a/b/c/"):
        person.write(f"project/{folder}docs/rules.md", folder or "root")
    async with telling(person.project / "a/b", files=["./docs/rules.md"]) as told:
        assert await told.texts() == {
            str(person.project / "docs/rules.md"): "root",
            str(person.project / "a/b/docs/rules.md"): "a/b/",
        }


async def test_a_pattern_is_looked_for_from_the_root_down_to_the_directory(person: Person) -> None:
    person.write("project/rules/one.md", "one")
    person.write("project/a/rules/two.md", "two")
    async with telling(person.project / "a", files=["rules/*.md"]) as told:
        assert list((await told.texts() or {}).values()) == ["one", "two"]


async def test_a_changed_set_of_matches_is_seen_at_the_next_boundary(person: Person) -> None:
    person.write("project/rules/one.md", "one")
    async with telling(person.project, files=["rules/**/*.md"]) as told:
        assert list((await told.texts() or {}).values()) == ["one"]
        person.write("project/rules/in/two.md", "two")
        assert list((await told.texts() or {}).values()) == ["two", "one"]
        (person.project / "rules/one.md").unlink()
        assert list((await told.texts() or {}).values()) == ["two"]


@pytest.mark.parametrize(
    "entry", ["gone.md", "*.none", "~/gone.md", "/gone/rules.md", "", "a\0b", "\ud800", "file:///a"]
)
async def test_an_entry_that_names_nothing_is_said_once_and_harms_nobody(person: Person, entry: str) -> None:
    root = person.write("project/AGENTS.md", "root")
    async with telling(person.project, files=[entry]) as told:
        for _ in range(2):
            assert await told.texts() == {str(root): "root"}
        assert len(told.warnings) == 1
        assert "name no file" in told.warnings[0]


@pytest.mark.parametrize("entry", ["../secret.md", "link.md", "linked/secret.md", "../*.md", "linked/*.md", "*.md"])
async def test_a_relative_entry_may_not_lead_out_of_the_project(person: Person, entry: str) -> None:
    secret = person.write("secret.md", "secret")
    (person.project / "link.md").symlink_to(secret)
    (person.project / "linked").symlink_to(person.home)
    async with telling(person.project, files=[entry]) as told:
        assert await told.texts() == {}
        assert len(told.warnings) == 1
        assert "it leads out of the project" in told.warnings[0]


async def test_a_relative_entry_may_lead_up_and_back_into_the_project(person: Person) -> None:
    rules = person.write("project/rules.md", "rules")
    (person.project / "a").mkdir()
    async with telling(person.project / "a", files=["a/../rules.md"]) as told:
        assert await told.texts() == {str(rules): "rules"}


async def test_an_entry_that_names_a_folder_is_left_out(person: Person) -> None:
    person.write("project/docs/rules.md", "rules")
    async with telling(person.project, files=["docs"]) as told:
        assert await told.texts() == {}
        assert told.warnings == [f"The instructions in '{person.project}/docs' are left out: it is a folder."]


async def test_an_entry_below_the_home_needs_a_home(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    person.write("own.md", "own")
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("USERPROFILE", raising=False)
    async with telling(person.project, files=["~/own.md"]) as told:
        assert await told.texts() == {}
        assert "name no file" in told.warnings[0]


async def test_the_flag_that_leaves_the_project_out_leaves_what_the_person_configured(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.write("project/AGENTS.md", "root")
    rules = person.write("project/rules.md", "rules")
    monkeypatch.setenv("OPENCODE_DISABLE_PROJECT_CONFIG", "1")
    async with telling(person.project, files=["rules.md"]) as told:
        assert await told.texts() == {str(rules): "rules"}


async def test_a_pattern_with_too_many_matches_is_cut_off_in_order_with_a_warning(person: Person) -> None:
    for number in range(101):
        person.write(f"project/rules/{number:03}.md", str(number))
    async with telling(person.project, files=["rules/*.md"]) as told:
        assert list((await told.texts() or {}).values()) == [str(number) for number in range(100)]
        assert told.warnings == ["The configured instructions 'rules/*.md' name too many files; some are left out."]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path in ("a.md", "b.txt", "in/c.md", "in/deep/d.md", ".dot/e.md", "in/.hidden.md", "in/[x].md"):
        file = tmp_path / "tree" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (tmp_path / "tree/folder.md").mkdir()
    (tmp_path / "tree/linked").symlink_to(tmp_path / "tree/in")
    (tmp_path / "tree/in/deep/up").symlink_to(tmp_path / "tree")
    os.mkfifo(tmp_path / "tree/pipe.md")
    return tmp_path / "tree"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.md", ["a.md"]),
        ("?.*", ["a.md", "b.txt"]),
        ("[ab].*", ["a.md", "b.txt"]),
        ("*/*.md", ["in/[x].md", "in/c.md"]),
        ("**/*.md", ["a.md", "in/[x].md", "in/c.md", "in/deep/d.md"]),
        ("**/**/d.md", ["in/deep/d.md"]),
        ("**", ["a.md", "b.txt", "in/[x].md", "in/c.md", "in/deep/d.md"]),
        ("in/**/c.md", ["in/c.md"]),
        (".d*/*.md", [".dot/e.md"]),
        (".dot/*", [".dot/e.md"]),
        ("in/.*", ["in/.hidden.md"]),
        ("./in//*.md", ["in/[x].md", "in/c.md"]),
        ("in/[[]x].md", ["in/[x].md"]),
        ("*/deep/d.md", ["in/deep/d.md"]),
        ("gone/*", []),
        ("a.md/*", []),
        ("[", []),
    ],
)
def test_a_pattern_names_files_in_order_without_following_links_to_folders(
    tree: Path, pattern: str, names: list[str]
) -> None:
    expected = Matches(paths=tuple(str(tree / name) for name in names))
    assert expand(pattern, str(tree)) == expected
    if not pattern.startswith("."):
        assert expand(str(tree / pattern), "/nowhere") == expected


def test_a_pattern_looks_at_a_bounded_number_of_names(tree: Path) -> None:
    assert not expand("**/*.md", str(tree), entries=5).is_complete
    assert expand("**/*.md", str(tree), entries=100).is_complete


def test_a_pattern_finds_its_way_through_folders_deeper_than_the_stack(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 200)
    deep.mkdir(parents=True)
    (deep / "rules.md").touch()
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    try:
        matches = expand("**/rules.md", str(tmp_path))
    finally:
        sys.setrecursionlimit(before)
    assert matches.paths == (str(deep / "rules.md"),)


def failing(monkeypatch: pytest.MonkeyPatch, function: str, part: str, number: int) -> None:
    """Have the system refuse to say anything about paths that end like this."""
    works = getattr(os, function)

    def fails(path: Any, *args: Any, **kwargs: Any) -> Any:
        if str(path).endswith(part):
            raise OSError(number, os.strerror(number))
        return works(path, *args, **kwargs)

    monkeypatch.setattr(os, function, fails)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.ESTALE, errno.ENOTCONN])
@pytest.mark.parametrize(("function", "part"), [("scandir", "rules"), ("stat", "one.md")])
@pytest.mark.parametrize("entry", ["rules/*.md", "*/one.md", "**/one.md"])
async def test_a_pattern_that_cannot_be_looked_up_now_takes_nothing_back(
    person: Person, monkeypatch: pytest.MonkeyPatch, entry: str, function: str, part: str, number: int
) -> None:
    person.write("project/rules/one.md", "one")
    async with telling(person.project, files=[entry]) as told:
        before = await told.texts()
        if function == "scandir" and entry == "*/one.md":
            part = "project"
        with monkeypatch.context() as context:
            failing(context, function, part, number)
            assert await told.texts() is None
        assert list((before or {}).values()) == ["one"]
        assert await told.texts() == before


async def test_a_folder_that_a_pattern_may_not_look_into_is_left_out_and_said(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.write("project/rules/one.md", "one")
    person.write("project/rules/closed/two.md", "two")
    failing(monkeypatch, "scandir", "closed", errno.EACCES)
    async with telling(person.project, files=["rules/**/*.md"]) as told:
        assert list((await told.texts() or {}).values()) == ["one"]
        folder = person.project / "rules/closed"
        assert told.warnings == [f"The instructions in '{folder}' are left out: it may not be read."]


def test_a_pattern_tells_of_few_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(15):
        (tmp_path / f"{number}-closed").mkdir()
    failing(monkeypatch, "scandir", "closed", errno.EACCES)
    assert len(expand("**/*.md", str(tmp_path)).problems) == PROBLEMS


def test_what_is_gone_or_not_of_the_kind_is_no_problem_of_a_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "gone").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    failing(monkeypatch, "scandir", "gone", errno.ENOENT)
    assert expand("**/*/*", str(tmp_path)) == Matches(paths=())
    assert expand("file/*", str(tmp_path)) == Matches(paths=())
    assert expand("d*", str(tmp_path)) == Matches(paths=())


def test_a_link_in_a_circle_is_a_problem_of_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "circle.md").symlink_to("circle.md")
    [problem] = expand("*.md", str(tmp_path)).problems
    assert "leads round in a circle" in problem.text
