from __future__ import annotations

import json
import math
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from opencode_core.errors import ConfigError, Place
from opencode_core.jsonc import parse
from opencode_core.model.json import JSON

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
COMMENTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=8)
BLANKS = st.lists(
    st.sampled_from(["", " ", "\t", "\n", "\r\n"])
    | COMMENTS.map(lambda words: f"//{words}\n")
    | COMMENTS.map(lambda words: f"/*{words.replace('*/', '')}\n*/"),
    max_size=2,
).map("".join)


def _error(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse(text, "opencode.json")
    return caught.value


def _unique(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def _finite(text: str) -> float:
    if math.isinf(float(text)):
        raise ValueError
    return float(text)


@st.composite
def _written(draw: st.DrawFn, value: JSON) -> str:
    """The text of a value, with blanks, comments and trailing commas anywhere they may be."""

    def text(value: JSON) -> str:
        match value:
            case dict():
                body = members([f"{text(key)}{draw(BLANKS)}:{text(item)}" for key, item in value.items()])
                plain = f"{{{body}}}"
            case list():
                plain = f"[{members([text(item) for item in value])}]"
            case _:
                plain = json.dumps(value, ensure_ascii=draw(st.booleans()))
        return f"{draw(BLANKS)}{plain}{draw(BLANKS)}"

    def members(items: list[str]) -> str:
        trailing = draw(st.sampled_from(["", ","])) if items else ""
        return draw(BLANKS) + ",".join(items) + trailing + draw(BLANKS)

    return text(value)


@given(st.data())
def test_any_value_survives_comments_and_trailing_commas(data: st.DataObject) -> None:
    value = data.draw(VALUES)

    assert parse(data.draw(_written(value)), "f") == value


@given(VALUES, st.sampled_from([None, 2]))
def test_plain_json_reads_as_the_standard_library_reads_it(value: JSON, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)

    assert parse(text, "f") == json.loads(text)


@given(st.text(alphabet='{}[]",:/*\\\n a1eN-.+u0'))
def test_any_text_is_a_value_or_an_error_with_a_place_inside_it(text: str) -> None:
    try:
        parse(text, "f")
        return
    except ConfigError as error:
        place = error.place

    lines = text.split("\n")
    assert place is not None
    assert place.line is not None
    assert place.line in range(1, len(lines) + 1)
    assert place.column in range(1, len(lines[place.line - 1]) + 2)


@given(VALUES, st.integers(0), st.sampled_from('{}[]":,1-.eN\\" '))
def test_a_character_too_many_is_refused_where_the_standard_library_refuses_it(
    value: JSON, at: int, character: str
) -> None:
    text = json.dumps(value)
    text = text[: at % len(text)] + character + text[at % len(text) :]
    assume("/" not in text)
    assume(not re.search(r",\s*[]}]", text))
    try:
        expected = json.loads(text, object_pairs_hook=_unique, parse_float=_finite)
    except ValueError:
        _error(text)
    else:
        assert parse(text, "f") == expected


@pytest.mark.behaviour("V1-25")
def test_comments_and_trailing_commas_are_allowed() -> None:
    text = """// first
    {
      /* a
         block */ "a": [1, 2,], // rest
      "b": {"c": null,},
    }"""

    assert parse(text, "f") == {"a": [1, 2], "b": {"c": None}}


def test_a_string_keeps_what_looks_like_a_comment_or_a_trailing_comma() -> None:
    assert parse(r'["http://x", "/* no */", ",]", "\"//", "\\"]', "f") == [
        "http://x",
        "/* no */",
        ",]",
        '"//',
        "\\",
    ]


def test_a_byte_order_mark_is_accepted_and_moves_no_column() -> None:
    assert parse("\ufeff{}", "f") == {}
    assert _error("\ufeff!").place == Place("opencode.json", 1, 1)


@pytest.mark.behaviour("V1-25")
@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("", 1, 1, "a value is missing"),
        ("\n  ", 2, 3, "a value is missing"),
        ("[1,\n 2\n 3]", 3, 2, "a ',' or ']' is missing"),
        ('{"a": 1\n "b": 2}', 2, 2, "a ',' or '}' is missing"),
        ('{"a": [1}', 1, 9, "a ',' or ']' is missing"),
        ("[,]", 1, 2, "a value is missing"),
        ("[1,,]", 1, 4, "a value is missing"),
        ("{,}", 1, 2, "a key in double quotes"),
        ("{a: 1}", 1, 2, "a key in double quotes"),
        ('{"a" 1}', 1, 6, "a ':' is missing"),
        ('{"a":\n}', 2, 1, "a value is missing"),
        ("['a']", 1, 2, "a value is missing, or is not one that JSON knows"),
        ("[01]", 1, 3, "a ',' or ']' is missing"),
        ("[\u00a01]", 1, 2, "a value is missing, or is not one that JSON knows"),
        ("{}\n{}", 2, 1, "something follows"),
        ('["a', 1, 2, "a string is never closed"),
        ('["a\nb"]', 1, 4, "a control character"),
        (r'["a\q"]', 1, 4, "an escape"),
        (r'["a\u12G4"]', 1, 4, "an escape"),
        ("[1, /* 2]", 1, 5, "a comment is never closed"),
        ("[1] / 2", 1, 5, "something follows"),
        ("/* a\n*/ // b\r\n !", 3, 2, "a value is missing"),
        ('{"a": "ü", "b": !}', 1, 17, "a value is missing"),
    ],
)
def test_an_error_says_what_is_wrong_and_exactly_where(text: str, line: int, column: int, problem: str) -> None:
    error = _error(text)

    assert error.place == Place("opencode.json", line, column)
    assert f"'opencode.json:{line}:{column}' is not valid: " in error.problem
    assert problem in error.problem
    assert error.remedy


def test_a_key_that_is_given_twice_is_an_error_at_its_second_place() -> None:
    error = _error('{"a": 1,\n "\\u0061": 2}')

    assert error.place == Place("opencode.json", 2, 2)
    assert "the key 'a' is given twice" in error.problem


def test_two_objects_may_have_the_same_key() -> None:
    assert parse('[{"a": 1}, {"a": {"a": 2}}]', "f") == [{"a": 1}, {"a": {"a": 2}}]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000])
def test_a_number_that_is_not_finite_or_too_long_is_refused(number: str) -> None:
    error = _error(f"[1,\n {number}]")

    assert error.place == Place("opencode.json", 2, 2)
    assert "a number is not finite or has too many digits" in error.problem


def test_nesting_is_bounded_and_says_where_it_went_too_deep() -> None:
    assert parse("[" * 100 + "]" * 100, "f")
    assert _error("[" * 102 + "]" * 102).place == Place("opencode.json", 1, 102)


@pytest.mark.parametrize("opening", ["[", '{"a":', "[[1],"])
def test_a_nesting_bomb_is_an_error_and_not_a_crash(opening: str) -> None:
    assert "nested more than 100 levels deep" in _error(opening * 100_000).problem


@pytest.mark.parametrize("unit", ["/*", "//", '"\\"', "/* */", " \n", "1,", "\\"])
def test_a_large_hostile_text_is_refused_without_reading_it_over_and_over(unit: str) -> None:
    assert _error("[!" + unit * 300_000).place == Place("opencode.json", 1, 2)
    assert _error("[" + unit * 300_000).place is not None


def test_an_error_does_not_quote_a_value() -> None:
    error = _error('{"key": "s3cret" "b": 1}')

    assert "s3cret" not in str(error)
