"""The index of a server is a stranger's: nothing in it reaches beyond the folder of its skill."""

import json
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins_builtin.skills.index import Index, Listed, NotAnIndex, parse_index
from tests.skills.serving import asked, client, entry, publish, put, written
from tests.support.http_server import serving

BAD_NAMES = [
    "..",
    ".",
    "../up",
    "/abs",
    "a/b",
    "a\\b",
    "%2e%2e",
    "C:",
    "a b",
    "a\0",
    "",
    "a\n",
    ".hidden",
    "é",
    "a" * 65,
]
TRAVERSING = [
    "../up.md",
    "a/../../up.md",
    "..",
    "./a.md",
    "a//b.md",
    "a/",
    "..\\up.md",
    "a\\..\\..\\up.md",
    "%2e%2e/up.md",
    "%2E%2E%2Fup.md",
    "a/%00.md",
    "a\0.md",
    "a\n.md",
    "a/...",
    "a. /b.md",
    " a.md",
    "",
]
ABSOLUTE = ["/etc/passwd", "//etc/passwd", "C:/x.md", "C:\\x.md", "c:x.md", "\\\\server\\x.md", "~\\x", "/"]
ELSEWHERE = [
    "https://evil.example/x.md",
    "http://127.0.0.1:1/x.md",
    "//evil.example/x.md",
    "HTTPS:evil.example/x.md",
    "file:///etc/passwd",
    "data:text/plain,x",
    "?x.md",
    "a.md#b",
    "a.md?b",
]


def parse(*entries: Any) -> Index:
    return parse_index(json.dumps({"skills": entries}).encode())


@pytest.mark.behaviour("SD-01")
async def test_of_a_skill_whose_name_leads_elsewhere_nothing_is_fetched_or_written(tmp_path: Path) -> None:
    with serving() as server:
        publish(server, *(entry(name, "SKILL.md") for name in BAD_NAMES))
        fetcher = client(server, tmp_path / "data")
        assert await fetcher.bodies() == {}
        assert asked(server) == ["index.json"]
    assert written(tmp_path) == []
    assert all("was refused: its name is not made of" in each for each in fetcher.scope.warnings)


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param(TRAVERSING, id="traversing", marks=pytest.mark.behaviour("SD-02")),
        pytest.param(ABSOLUTE, id="absolute", marks=pytest.mark.behaviour("SD-03")),
        pytest.param(ELSEWHERE, id="elsewhere", marks=pytest.mark.behaviour("SD-04")),
    ],
)
async def test_a_skill_with_a_file_that_leads_elsewhere_is_refused_before_any_fetch(
    tmp_path: Path, paths: list[str]
) -> None:
    bad = [entry(f"bad{number}", "SKILL.md", path) for number, path in enumerate(paths)]
    with serving() as server:
        publish(server, *bad, entry("good", "SKILL.md"))
        put(server, {"good/SKILL.md": b"---\nname: good\n---\nGood."})
        put(server, {f"bad{number}/SKILL.md": b"---\nname: bad\n---\nBad." for number in range(len(bad))})
        fetcher = client(server, tmp_path / "data")
        assert await fetcher.bodies() == {"good": "Good."}
        assert asked(server) == ["good/SKILL.md", "index.json"]
    assert list(fetcher.files()) == ["good/SKILL.md"]
    assert len(fetcher.scope.warnings) == len(paths)
    assert all("not a plain path inside its folder" in each for each in fetcher.scope.warnings)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("text", "it is not an object"),
        ({"files": ["SKILL.md"]}, "its name is not made of"),
        ({"name": 7, "files": ["SKILL.md"]}, "its name is not made of"),
        ({"name": "a"}, "its files are not a list"),
        ({"name": "a", "files": []}, "its files are not a list"),
        ({"name": "a", "files": "SKILL.md"}, "its files are not a list"),
        ({"name": "a", "files": ["SKILL.md"] * 101}, "its files are not a list"),
        ({"name": "a", "files": [7]}, "not a plain path"),
        ({"name": "a", "files": ["b.md"]}, "neither 'SKILL.md' nor 'a.md'"),
        ({"name": "a", "files": ["x/SKILL.md"]}, "neither 'SKILL.md' nor 'a.md'"),
        ({"name": "a", "files": ["SKILL.md", "skill.md"]}, "listed twice"),
        ({"name": "a", "files": ["SKILL.md", "b", "b/c"]}, "have to be a folder"),
        ({"name": "a", "files": ["SKILL.md", ".opencode-skill.json"]}, "not a plain path"),
        ({"name": "a", "files": ["SKILL.md", ".OPENCODE-skill.json/x"]}, "not a plain path"),
        ({"name": "a", "files": ["SKILL.md"], "version": [1]}, "its version"),
        ({"name": "a", "files": ["SKILL.md"], "version": True}, "its version"),
    ],
)
def test_a_skill_that_is_not_listed_as_it_should_be_is_refused(line: object, reason: str) -> None:
    index = parse(line, entry("good"))
    assert list(index.skills) == ["good"]
    assert reason in index.refused[0].reason


def test_of_two_skills_whose_names_a_disk_may_confuse_the_first_counts() -> None:
    index = parse(entry("Same", "SKILL.md"), entry("same", "SKILL.md"))
    assert (list(index.skills), [each.name for each in index.refused]) == (["Same"], ["same"])


def test_a_skill_is_listed_with_its_files_and_its_version() -> None:
    index = parse(entry("b", "b.md", "x/y.txt", version=3), entry("a", "z.txt", "SKILL.md"))
    assert index.skills == {
        "a": Listed(name="a", files=("SKILL.md", "z.txt")),
        "b": Listed(name="b", files=("b.md", "x/y.txt"), version="3"),
    }
    assert [each.entry for each in index.skills.values()] == ["SKILL.md", "b.md"]


@pytest.mark.parametrize(
    "content",
    [b"", b"no", b"[]", b"{}", b'{"skills": {}}', b"\xff", b"[" * 100_000, json.dumps({"skills": [{}] * 201}).encode()],
)
def test_what_is_no_index_is_refused_as_a_whole(content: bytes) -> None:
    with pytest.raises(NotAnIndex):
        parse_index(content)


def test_a_name_that_is_refused_is_shown_without_what_a_terminal_would_obey() -> None:
    assert parse(entry("\x1b[2J\n" + "x" * 500)).refused[0].name == "?[2J?" + "x" * 59


HOSTILE = st.lists(st.sampled_from([*"ab./\\%:?#~ \0é", "..", "%2e", "%2f"]), max_size=8).map("".join)


@given(HOSTILE, st.lists(HOSTILE, max_size=3))
def test_whatever_an_index_says_what_is_accepted_stays_in_its_folder(name: str, files: list[str]) -> None:
    base = "https://example.org/skills/"
    for listed in parse(entry(name, "SKILL.md", *files)).skills.values():
        for path in listed.files:
            url = urljoin(base, quote(f"{listed.name}/{path}"))
            assert url.startswith(f"{base}{listed.name}/")
            assert ".." not in PurePosixPath(listed.name, path).parts
            assert not PurePosixPath(path).is_absolute()
