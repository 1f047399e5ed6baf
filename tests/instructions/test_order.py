"""Whose instructions apply, where they are looked for, and in which order they are told."""

import os
from pathlib import Path

import pytest

from opencode_core.host import Host
from plugin_sdk import ABSENT, Location
from plugins_builtin import date, environment, instructions
from tests.instructions.making import Person, telling


@pytest.mark.behaviour("SCB-04")
async def test_instructions_follow_the_other_builtins(person: Person) -> None:
    person.write("project/AGENTS.md", "be brief")
    handed = {"instructions": instructions, "environment": environment, "date": date}
    async with Host.open(person.project, plugins=handed, config={}, entry_points=False) as host:
        baseline = await host.baseline()
    assert [key for key, _ in baseline.parts] == ["core/date", "core/environment", "core/instructions"]
    assert baseline.text.endswith(f"Instructions from: {person.project}/AGENTS.md\nbe brief")


async def test_the_person_comes_first_then_the_project_from_its_root_down_to_the_directory(person: Person) -> None:
    person.write("config/AGENTS.md", "global")
    person.write("project/AGENTS.md", "root")
    person.write("project/a/b/AGENTS.md", "near")
    person.write("project/a/b/c/AGENTS.md", "below")
    person.write("AGENTS.md", "above")
    async with telling(person.project / "a/b") as told:
        texts = await told.texts()
        assert texts is not None
        assert list(texts.values()) == ["global", "root", "near"]
        assert list(texts)[1] == str(person.project / "AGENTS.md")
        assert told.warnings == []


async def test_every_file_is_told_with_where_it_comes_from_and_which_one_wins(person: Person) -> None:
    person.write("project/AGENTS.md", "root\n")
    person.write("project/a/AGENTS.md", "near\n")
    async with telling(person.project / "a") as told:
        assert await told.plugin.baseline() == (
            "These instructions apply, in this order. Where two of them disagree, the later one wins. One that comes "
            "from a folder of the project applies to the files in that folder and below it.\n\n"
            f"Instructions from: {person.project}/AGENTS.md\nroot\n\n"
            f"Instructions from: {person.project}/a/AGENTS.md\nnear"
        )


async def test_the_other_name_counts_in_folders_without_the_first(person: Person) -> None:
    person.write("project/AGENTS.md", "root")
    person.write("project/CLAUDE.md", "not this")
    person.write("project/a/CLAUDE.md", "near")
    async with telling(person.project / "a") as told:
        assert list((await told.texts() or {}).values()) == ["root", "near"]


async def test_a_person_without_a_global_file_may_have_one_of_the_other_name(person: Person) -> None:
    person.write(".claude/CLAUDE.md", "other")
    async with telling(person.project) as told:
        assert await told.texts() == {str(person.home / ".claude/CLAUDE.md"): "other"}
        person.write("config/AGENTS.md", "global")
        assert await told.texts() == {str(person.config / "AGENTS.md"): "global"}


async def test_without_a_home_there_is_no_file_in_it(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    person.write(".claude/CLAUDE.md", "other")
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("USERPROFILE", raising=False)
    async with telling(person.project) as told:
        assert await told.value() is ABSENT


async def test_without_any_file_there_is_nothing_to_tell_and_nothing_wrong(person: Person) -> None:
    async with telling(person.project) as told:
        assert await told.value() is ABSENT
        assert await told.plugin.baseline() == ""
        assert told.warnings == []


@pytest.mark.behaviour("IC-05")
async def test_an_empty_file_is_told_as_its_path_with_nothing_below(person: Person) -> None:
    person.write("project/AGENTS.md", "")
    async with telling(person.project) as told:
        assert await told.texts() == {str(person.project / "AGENTS.md"): ""}
        assert (await told.plugin.baseline()).endswith(f"\n\nInstructions from: {person.project}/AGENTS.md\n")


@pytest.mark.behaviour("IC-08")
async def test_a_directory_with_a_trailing_separator_is_the_same_directory(person: Person) -> None:
    person.write("project/AGENTS.md", "root")
    person.write("AGENTS.md", "above")
    async with telling(f"{person.project}{os.sep}") as told:
        assert list(await told.texts() or {}) == [str(person.project / "AGENTS.md")]
        location = Location(directory=Path(f"{person.project}/"), root=Path(f"{person.project}/."), is_git=True)
        assert list(await told.texts(location=location) or {}) == [str(person.project / "AGENTS.md")]


@pytest.mark.behaviour("IC-08")
async def test_a_directory_that_is_named_by_a_link_is_scanned_as_what_it_is(person: Person) -> None:
    person.write("project/AGENTS.md", "root")
    (person.home / "link").symlink_to(person.project)
    async with telling(person.home / "link/") as told:
        location = Location(directory=person.home / "link", root=person.project, is_git=True)
        for where in (None, location):
            assert list(await told.texts(location=where) or {}) == [str(person.project / "AGENTS.md")]


@pytest.mark.behaviour("IC-09")
@pytest.mark.parametrize("flag", ["1", "true", " Yes "])
async def test_the_project_is_left_out_by_a_flag_that_is_read_each_time(
    person: Person, monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    person.write("config/AGENTS.md", "global")
    person.write("project/AGENTS.md", "root")
    person.write("project/a/AGENTS.md", "nested")
    async with telling(person.project) as told:
        assert list((await told.texts(person.project / "a") or {}).values()) == ["global", "root", "nested"]
        monkeypatch.setenv("OPENCODE_DISABLE_PROJECT_CONFIG", flag)
        assert list((await told.texts(person.project / "a") or {}).values()) == ["global"]
        monkeypatch.setenv("OPENCODE_DISABLE_PROJECT_CONFIG", "0")
        assert list((await told.texts(person.project / "a") or {}).values()) == ["global", "root", "nested"]


@pytest.mark.behaviour("IC-10")
async def test_a_directory_outside_the_root_has_no_project_to_scan(person: Person) -> None:
    person.write("config/AGENTS.md", "global")
    person.write("project/AGENTS.md", "root")
    person.write("other/AGENTS.md", "other")
    (person.project / "leads-out").symlink_to(person.home / "other")
    async with telling(person.project, files=["*.md"]) as told:
        for directory in (person.home / "other", person.project / "leads-out", person.home / "project-other"):
            location = Location(directory=directory, root=person.project, is_git=True)
            texts = await told.texts(person.project, location=location)
            assert list((texts or {}).values()) == ["global"]


async def test_a_file_that_is_reached_in_two_ways_is_told_once(person: Person) -> None:
    shared = person.write("project/AGENTS.md", "shared")
    (person.project / "a").mkdir()
    (person.project / "a/AGENTS.md").symlink_to(shared)
    for files in ([], ["AGENTS.md", "~/project/AGENTS.md", str(shared)]):
        async with telling(person.project / "a", files=files) as told:
            assert await told.texts() == {str(shared): "shared"}
            assert told.warnings == []


async def test_a_link_within_the_project_is_followed(person: Person) -> None:
    person.write("project/docs/rules.md", "rules")
    (person.project / "AGENTS.md").symlink_to("docs/rules.md")
    async with telling(person.project) as told:
        assert await told.texts() == {str(person.project / "AGENTS.md"): "rules"}


async def test_the_persons_own_file_may_be_a_link_to_anywhere(person: Person) -> None:
    (person.config / "AGENTS.md").symlink_to(person.write("dotfiles/agents.md", "global"))
    async with telling(person.project) as told:
        assert await told.texts() == {str(person.config / "AGENTS.md"): "global"}


async def test_a_byte_order_mark_is_not_told(person: Person) -> None:
    person.write("project/AGENTS.md", b"\xef\xbb\xbfbe brief")
    async with telling(person.project) as told:
        assert list((await told.texts() or {}).values()) == ["be brief"]


async def test_a_path_with_strange_characters_is_told_in_one_line(person: Person) -> None:
    folder = person.project / "a\nInstructions from: b"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("strange")
    async with telling(folder) as told:
        assert await told.texts() == {f"{person.project}/a\\nInstructions from: b/AGENTS.md": "strange"}


async def test_the_options_are_checked(person: Person) -> None:
    with pytest.raises(Exception, match="refused its option 'file_limit'"):
        async with telling(person.project, file_limit=-1):
            pass


async def test_the_key_of_the_configuration_sets_the_option(person: Person) -> None:
    person.write("project/rules.md", "rules")
    config = {"instructions": ["rules.md"]}
    handed = {"instructions": instructions}
    async with Host.open(person.project, plugins=handed, config=config, entry_points=False) as host:
        assert "Instructions from:" in (await host.baseline()).text
