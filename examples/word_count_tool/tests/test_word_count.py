"""The model counts what is in the project, is told why it cannot count the rest, and nothing stays behind."""

from pathlib import Path

import pytest

import opencode_word_count
from plugin_sdk import ToolFailure
from plugin_sdk.testing import load_plugin


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "poem.txt").write_text("A rose is a rose is a rose.")
    (folder / "image.png").write_bytes(b"\x89PNG\xff")
    (tmp_path / "secret.txt").write_text("outside")
    return folder


async def test_words_are_counted(project: Path) -> None:
    async with load_plugin(opencode_word_count, directory=project) as plugin:
        output = await plugin.call("word_count", path="poem.txt")
    assert output.text.startswith("8 words, 3 different. Most frequent: a (3), rose (3), is (2).")
    assert output.structured == {"total": 8, "different": 3}


async def test_an_option_says_how_many_words_are_shown(project: Path) -> None:
    async with load_plugin(opencode_word_count, directory=project, options={"top": 1}) as plugin:
        output = await plugin.call("word_count", path="poem.txt")
    assert "Most frequent: a (3). All" in output.text


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("novel.txt", "no file 'novel.txt'"),
        ("../secret.txt", "outside of the project"),
        ("image.png", "not a text file"),
        (None, "Say which file"),
    ],
)
async def test_the_model_is_told_why_a_file_cannot_be_counted(project: Path, path: str | None, reason: str) -> None:
    async with load_plugin(opencode_word_count, directory=project) as plugin:
        with pytest.raises(ToolFailure, match=reason):
            await plugin.call("word_count", path=path)


async def test_the_tables_are_removed_when_the_location_closes(project: Path) -> None:
    async with load_plugin(opencode_word_count, directory=project) as plugin:
        tools = plugin.tools
        output = await plugin.call("word_count", path="poem.txt")
        table = Path(output.text.rpartition(" ")[2])
        assert lines(table) == ["a\t3", "rose\t3", "is\t2"]
    assert not table.parent.exists()
    del tools  # held until here: what nobody holds, Python would have removed by itself


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
