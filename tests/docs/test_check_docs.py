"""The checker of the documentation finds what is wrong, says where, and is silent about what is right."""

from pathlib import Path

import pytest

from tests.docs.check_docs import main, problems

ROOT = Path(__file__).parents[2]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    write(tmp_path, "docs/index.md", "# Start\n\n[guide](guide.md)\n")
    write(tmp_path, "docs/guide.md", "# Guide\n\n## First steps\n")
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")


def complaints(root: Path) -> list[str]:
    return [str(problem) for problem in problems(root)]


def test_the_documentation_of_this_project_is_sound() -> None:
    assert complaints(ROOT) == []


def test_a_sound_site_has_no_problems(site: Path) -> None:
    write(
        site,
        "README.md",
        "[guide](docs/guide.md#first-steps) [self](#top) [out](https://example.org/x#y)\n"
        "\n# Top\n\n![pic](docs/guide.md)\n\n"
        '[ref][1] [titled](docs/guide.md "Guide") [folder](docs/)\n\n[1]: docs/index.md\n',
    )
    assert complaints(site) == []


def test_a_link_to_a_missing_file_is_named_with_file_and_line(site: Path) -> None:
    write(site, "README.md", "# Read\n\nsee [it](docs/gone.md)\n")
    assert complaints(site) == ["README.md:3: link 'docs/gone.md' leads to a file that does not exist"]


def test_a_reference_to_a_missing_file_is_found(site: Path) -> None:
    write(site, "CHANGELOG.md", "[it][1]\n\n[1]: docs/gone.md\n")
    assert complaints(site) == ["CHANGELOG.md:3: link 'docs/gone.md' leads to a file that does not exist"]


def test_a_link_to_a_missing_anchor_is_found_in_another_page(site: Path) -> None:
    write(site, "CONTRIBUTING.md", "[it](docs/guide.md#last)\n")
    assert complaints(site) == [
        "CONTRIBUTING.md:1: link 'docs/guide.md#last' leads to an anchor that 'docs/guide.md' does not have"
    ]


def test_a_link_to_a_missing_anchor_is_found_in_the_same_page(site: Path) -> None:
    write(site, "README.md", "[it](#nowhere)\n")
    assert complaints(site) == ["README.md:1: link '#nowhere' leads to an anchor that 'README.md' does not have"]


@pytest.mark.parametrize("target", ["../../secret.md", "/etc/hosts"])
def test_a_link_out_of_the_repository_is_refused(site: Path, target: str) -> None:
    write(site, "docs/guide.md", f"[it]({target})\n")
    assert complaints(site) == [f"docs/guide.md:1: link '{target}' leads out of the repository"]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("## The `plugins list` command", "the-plugins-list-command"),
        ("## What's new, *really*?", "whats-new-really"),
        ("## See [the guide](guide.md)", "see-the-guide"),
        ("## `opencode_context_sources(location)`", "opencode_context_sourceslocation"),
        ('<a id="exact"></a>', "exact"),
    ],
)
def test_an_anchor_is_spelled_as_github_spells_it(site: Path, heading: str, anchor: str) -> None:
    write(site, "docs/guide.md", f"{heading}\n\n[it](#{anchor})\n")
    assert complaints(site) == []


def test_the_second_heading_of_a_name_gets_a_number(site: Path) -> None:
    write(site, "docs/guide.md", "# Again\n# Again\n[it](#again-1)\n[no](#again-2)\n")
    assert len(complaints(site)) == 1


def test_links_and_headings_inside_code_are_not_read(site: Path) -> None:
    write(
        site,
        "docs/guide.md",
        "`[it](gone.md)`\n\n```text\n[it](gone.md)\n# Not a heading\n```\n\n[no](#not-a-heading)\n",
    )
    assert [line.split(":")[1] for line in complaints(site)] == ["8"]


def test_python_that_does_not_parse_is_named_with_its_own_line(site: Path) -> None:
    write(site, "docs/guide.md", "# Guide\n\n```python\nfine = 1\nbroken = = 2\n```\n")
    assert complaints(site) == ["docs/guide.md:5: this Python does not parse: invalid syntax"]


@pytest.mark.filterwarnings("ignore")
def test_python_with_a_bad_escape_is_found(site: Path) -> None:
    write(site, "docs/guide.md", '```python\npattern = "\\d"\n```\n')
    assert len(complaints(site)) == 1
    assert complaints(site)[0].startswith("docs/guide.md:2: this Python does not parse")


def test_python_inside_a_list_is_read_without_its_indent(site: Path) -> None:
    write(site, "docs/guide.md", "- a step\n\n  ```python\n  for x in ():\n      print(x)\n  ```\n")
    assert complaints(site) == []


def test_other_languages_are_not_parsed(site: Path) -> None:
    write(site, "docs/guide.md", "```console\n$ make run = =\n```\n\n~~~\n= =\n~~~\n")
    assert complaints(site) == []


def test_a_block_that_is_never_closed_is_found(site: Path) -> None:
    write(site, "docs/guide.md", "# Guide\n\n```python\nfine = 1\n")
    assert complaints(site) == ["docs/guide.md:3: this fenced block is never closed"]


def test_a_page_that_nothing_links_to_is_found(site: Path) -> None:
    write(site, "docs/reference/lost.md", "# Lost\n")
    write(site, "README.md", "[a link from outside docs does not count](docs/reference/lost.md)\n")
    assert complaints(site) == ["docs/reference/lost.md:1: no way of links leads here from 'docs/index.md'"]


def test_a_page_is_reached_over_other_pages(site: Path) -> None:
    write(site, "docs/guide.md", "[more](reference/more.md)\n")
    write(site, "docs/reference/more.md", "[back](../index.md)\n")
    assert complaints(site) == []


def test_a_site_without_an_index_is_refused(site: Path) -> None:
    (site / "docs/index.md").unlink()
    assert complaints(site) == ["docs/index.md:1: this page must exist: the others are reached from it"]


def test_the_script_prints_its_problems_and_fails(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(site, "README.md", "[it](docs/gone.md)\n")
    assert main(site) == 1
    assert capsys.readouterr().out == "README.md:1: link 'docs/gone.md' leads to a file that does not exist\n"


def test_the_script_succeeds_on_a_sound_site(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(site) == 0
    assert capsys.readouterr().out == "Documentation: 2 pages, nothing wrong.\n"


def test_a_generated_page_that_is_stale_is_found_with_the_command_that_mends_it(site: Path) -> None:
    write(site, "docs/generate.py", "")
    found = complaints(site)
    assert [each.split(":")[0] for each in found] == [
        "docs/reference/errors.md",
        "docs/reference/events.md",
        "docs/reference/hooks.md",
        "docs/reference/sdk.md",
        "docs/reference/sessions.md",
        "docs/reference/storage.md",
    ]
    assert all("run `make docs`" in each for each in found)
