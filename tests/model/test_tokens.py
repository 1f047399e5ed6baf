"""Estimating tokens: a quarter of the characters, whatever they are."""

import pytest

from opencode_core.model.tokens import estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 0), ("ab", 1), ("abcde", 1), ("abcdef", 2), ("é世🙂!", 1), ("x" * 4001, 1000)]
)
def test_a_token_is_about_four_characters_and_halves_are_rounded_up(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens
