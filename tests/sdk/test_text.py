"""Texts of others, made safe to stand in a list that the model reads."""

from pathlib import Path

import pytest

from plugin_sdk.text import one_line, shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("  two\n- lines\t here ", "two - lines here"),
        ("red\x1b[31m\x00", "red[31m"),
        ("zero\u200bwidth\u2028line", "zerowidth line"),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_a_text_becomes_one_line_of_what_can_be_printed(text: str, expected: str) -> None:
    assert one_line(text) == expected


def test_a_long_text_is_cut_and_says_so() -> None:
    assert one_line("a" * 10, most=4) == "aaa…"
    assert one_line("a" * 4, most=4) == "aaaa"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a/b c", "/a/b c"),
        (Path("/a/é"), "/a/é"),
        ("/a\n- b\x1b]0;evil\x07", r"/a\n- b\x1b]0;evil\x07"),
        ("right\u202eleft\u2028", r"right\u202eleft\u2028"),
        ("not\udcffutf-8", "not?utf-8"),
    ],
)
def test_whatever_a_path_consists_of_it_is_shown_on_one_line(text: str | Path, expected: str) -> None:
    assert shown(text) == expected
