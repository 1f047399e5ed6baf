"""Where skills are looked for: which places, in which order, each once, and what may not be named."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from plugin_sdk import HostFacts, Location
from plugins_builtin.skills.places import Address, Folder, Place, list_places
from tests.skills.making import bodies, opened, skill_text, warnings, write

HERE = Location(directory=Path("/project/part"), root=Path("/project"), is_git=True)


def places(*entries: str, home: str | None = "/home/me", said: list[str] | None = None) -> tuple[Place, ...]:
    """Return where is looked beside the six folders that are always looked into."""
    found = all_places(*entries, home=home, said=said)
    return found[6:]


def all_places(*entries: str, home: str | None = "/home/me", said: list[str] | None = None) -> tuple[Place, ...]:
    facts = HostFacts(
        environ={"HOME": home} if home else {},
        config_dir=Path("/config"),
        data_dir=Path("/data"),
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
    )
    said = [] if said is None else said
    return list_places(HERE, facts, entries, lambda problem, _remedy: said.append(problem))


def shown(place: Place) -> str:
    return place.url if isinstance(place, Address) else str(place.path)


@pytest.mark.behaviour("SK-07")
def test_configuration_folders_come_first_and_entries_after_them_in_order() -> None:
    entries = ("skills", "../shared", "~/mine", "/opt/skills", "https://example.org/skills", "HTTP://example.org/a/")
    assert [shown(each) for each in all_places(*entries)] == [
        "/config/skill",
        "/config/skills",
        "/project/.opencode/skill",
        "/project/.opencode/skills",
        "/project/part/.opencode/skill",
        "/project/part/.opencode/skills",
        "/project/part/skills",
        "/project/shared",
        "/home/me/mine",
        "/opt/skills",
        "https://example.org/skills/",
        "HTTP://example.org/a/",
    ]


@pytest.mark.behaviour("SK-01")
def test_a_place_that_is_named_twice_is_kept_once_where_it_was_first() -> None:
    entries = ("b", "https://example.org/s", "a", "./b", "x/../b", "https://example.org/s/", "/project/part/a")
    assert [shown(each) for each in places(*entries)] == [
        "/project/part/b",
        "https://example.org/s/",
        "/project/part/a",
    ]


@pytest.mark.parametrize("entry", ["", "  ", "ftp://example.org", "file:///etc", "a\0b"])
def test_an_entry_that_is_neither_a_folder_nor_an_address_is_left_out_with_a_warning(entry: str) -> None:
    said: list[str] = []
    assert places(entry, "a", said=said) == (Folder(path=Path("/project/part/a"), inside=Path("/project")),)
    assert said == ["An entry of the key 'skills' is neither a folder nor an http or https address."]


def test_a_home_that_is_not_known_leaves_an_entry_out() -> None:
    said: list[str] = []
    assert places("~/mine", home=None, said=said) == ()
    assert len(said) == 1


def test_what_lies_in_the_project_may_not_lead_out_of_it_and_the_rest_may() -> None:
    inside = [each.inside for each in places("skills", "../x", "/opt", "../../x") if isinstance(each, Folder)]
    assert inside == [Path("/project"), Path("/project"), None, None]


def test_an_address_shows_no_secret_in_a_representation() -> None:
    assert "hunter2" not in repr(places("https://me:hunter2@example.org/skills"))


async def test_the_top_level_key_names_places_and_the_options_add_some(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name / f"{name}.md", name)
    config = {"skills": ["one"], "plugins": {"skills": {"sources": ["two"]}}}
    async with opened(tmp_path, config=config) as host:
        assert await bodies(host) == {"one": "one", "two": "two"}


@pytest.mark.behaviour("SK-02", "SK-07")
async def test_of_two_skills_of_one_name_the_one_of_the_later_place_is_in_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "project/.git").mkdir(parents=True)
    part = tmp_path / "project/part"
    folders = [
        tmp_path / "config/skill",
        tmp_path / "config/skills",
        tmp_path / "project/.opencode/skill",
        tmp_path / "project/.opencode/skills",
        part / ".opencode/skill",
        part / ".opencode/skills",
        part / "more",
        tmp_path / "home/mine",
        tmp_path / "absolute",
    ]
    config = {"skills": ["more", "~/mine", str(tmp_path / "absolute")]}
    part.mkdir()
    seen = []
    async with opened(part, config=config, config_dir=tmp_path / "config") as host:
        for folder in folders:
            write(folder / "same.md", skill_text(body=str(folder)))
            seen.append((await bodies(host))["same"])
    assert seen == [str(folder) for folder in folders]


async def test_an_entry_that_is_wrong_is_a_warning_of_the_plugin(tmp_path: Path) -> None:
    async with opened(tmp_path, config={"skills": ["ftp://example.org/"]}) as host:
        assert warnings(host) == ["An entry of the key 'skills' is neither a folder nor an http or https address."]
