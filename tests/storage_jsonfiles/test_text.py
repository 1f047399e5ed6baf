"""Files are written byte for byte as the first generation wrote them."""

import json
import math
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin_sdk.storage import JSON, InvalidDocumentError
from plugin_sdk.storage.documents import DEEPEST
from plugins_builtin.storage_jsonfiles.text import from_bytes, to_bytes

SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=[]) | st.sampled_from('\u2028\u2029\x00\x7f"\\/\b'))
VALUES = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)

# Numbers as JavaScript prints them, taken from Node.js.
NUMBERS = [
    (1.0, "1"),
    (-0.0, "0"),
    (0.1, "0.1"),
    (-1.5, "-1.5"),
    (100.0, "100"),
    (1e20, "100000000000000000000"),
    (1e21, "1e+21"),
    (-1.5e300, "-1.5e+300"),
    (0.000001, "0.000001"),
    (1.25e-6, "0.00000125"),
    (1e-7, "1e-7"),
    (1.05e-7, "1.05e-7"),
    (5e-324, "5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
    (9007199254740992.0, "9007199254740992"),
    (2**53 + 1, "9007199254740993"),
    (10**30, "1" + "0" * 30),
]


@pytest.mark.parametrize(("number", "text"), NUMBERS)
def test_a_number_is_written_as_javascript_prints_it(number: float, text: str) -> None:
    assert to_bytes(number) == text.encode()


def test_a_document_has_the_form_of_the_first_generation() -> None:
    document: JSON = {
        "z": [1, {"e": {}, "l": []}],
        "ü\u2028": 'a"\\/\b\f\n\r\t\x01\x1f\x7f',
        "s": "\ud800",
        "n": None,
        "t": True,
    }

    assert to_bytes(document) == (
        b'{\n  "z": [\n    1,\n    {\n      "e": {},\n      "l": []\n    }\n  ],\n  "\xc3\xbc\xe2\x80\xa8": '
        b'"a\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f",\n  "s": "\\ud800",\n  "n": null,\n  "t": true\n}'
    )


def test_two_surrogates_that_make_a_pair_are_written_as_one_character() -> None:
    assert to_bytes("\ud83d\ude00\ude00") == '"\U0001f600\\ude00"'.encode()


@given(VALUES)
def test_what_is_read_equals_what_was_written_and_is_written_again_in_the_same_bytes(value: JSON) -> None:
    for compact in (False, True):
        content = to_bytes([value], compact=compact)
        read = from_bytes(content)

        assert read == json.loads(json.dumps([value]))
        assert to_bytes(read, compact=compact) == content


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_node_would_have_written_the_same_bytes() -> None:
    @given(st.lists(VALUES, min_size=30, max_size=60))
    def same(values: list[JSON]) -> None:
        whole = [value for value in values if _is_exact_in_javascript(value)]
        mine = [to_bytes([value]).decode() for value in whole]
        assert _through_node(mine) == mine

    from hypothesis import settings

    settings(max_examples=15, deadline=None)(same)()


def nested(depth: int) -> JSON:
    document: JSON = 1
    for number in range(depth):
        document = {"a": document} if number % 2 else [document]
    return document


def test_what_every_reader_can_read_is_the_deepest_that_is_written() -> None:
    assert from_bytes(to_bytes(nested(DEEPEST))) == nested(DEEPEST)
    with pytest.raises(InvalidDocumentError, match="inside each other"):
        to_bytes(nested(DEEPEST + 1))


def test_what_the_first_generation_nested_more_deeply_is_migrated_all_the_same() -> None:
    assert from_bytes(to_bytes(nested(DEEPEST + 100), compact=True)) == nested(DEEPEST + 100)


def test_what_is_not_json_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    for bad in (None, math.nan, math.inf, {1: 2}, b"bytes", {"a": {1, 2}}, object(), loop):
        with pytest.raises(InvalidDocumentError):
            to_bytes(bad)  # type: ignore[arg-type]
    for text in (b"", b"{", b"NaN", b"\xff", b"[" * 100_000):
        with pytest.raises(ValueError):  # noqa: PT011
            from_bytes(text)


def _is_exact_in_javascript(value: object) -> bool:
    """Whether JavaScript keeps a value's numbers as they are, and the order of its keys."""
    if isinstance(value, dict):
        return all(not key.isdigit() and key != "__proto__" and _is_exact_in_javascript(value[key]) for key in value)
    if isinstance(value, list):
        return all(map(_is_exact_in_javascript, value))
    return not isinstance(value, int | float) or abs(value) < 2**53 or abs(value) >= 1e21


def _through_node(texts: list[str]) -> list[str]:
    script = (
        "const texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "console.log(JSON.stringify(texts.map((text) => JSON.stringify(JSON.parse(text), null, 2))))"
    )
    done = subprocess.run(["node", "-e", script], input=json.dumps(texts).encode(), capture_output=True, check=True)
    result: list[str] = json.loads(done.stdout)
    return result
