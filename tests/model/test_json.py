"""JSON values: what a store would give back, and what counts as the same."""

import json
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_core.model.json import plain, same

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(-2, 2).map(lambda value: round(value, 1))
    | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=5,
)


@given(VALUES)
def test_a_plain_value_is_what_a_store_gives_back(value: Any) -> None:
    assert same(plain(value), plain(json.loads(json.dumps(value))))


@given(VALUES, VALUES)
def test_two_values_are_the_same_exactly_if_their_sorted_text_is(one: Any, other: Any) -> None:
    one, other = plain(one), plain(other)
    assert same(one, other) == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


def test_tuples_mappings_and_whole_numbers_become_plain() -> None:
    value = MappingProxyType({"a": (1, 2.0), "b": OrderedDict(c=True)})
    made = plain(value)
    assert json.dumps(made) == '{"a": [1, 2], "b": {"c": true}}'


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object(), {1: 2}, [object()], 1j])
def test_what_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        plain(value)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": float("-inf")}])
def test_numbers_that_json_does_not_have_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON does not have"):
        plain(value)
