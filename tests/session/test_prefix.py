"""Measuring requests: a prefix is the digest of the request before exactly if nothing that was sent changed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_core.session.prefix import measure

MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "system"]), "content": st.text(max_size=3)})
)


@given(st.text(max_size=5), MESSAGES, MESSAGES)
def test_a_request_that_only_adds_messages_continues_the_one_before(system: str, sent: Any, added: Any) -> None:
    before = measure(system, sent)
    after = measure(system, [*sent, *added], before)
    assert (after.prefix, after.messages) == (before.digest, len(sent) + len(added))


@given(st.text(max_size=5), MESSAGES, MESSAGES, st.text(max_size=5), MESSAGES)
def test_a_request_that_changes_anything_before_does_not(
    system: str, sent: Any, added: Any, other: str, changed: Any
) -> None:
    before = measure(system, sent)
    now = [*changed, *sent[len(changed) :]][: len(sent)]
    after = measure(other, [*now, *added], before)
    assert (after.prefix == before.digest) == (other == system and now == sent)


def test_a_shorter_request_has_no_prefix_of_the_one_before() -> None:
    before = measure("system", [{"role": "user"}, {"role": "user"}])
    assert measure("system", [{"role": "user"}], before).prefix == ""


def test_the_first_request_has_no_prefix() -> None:
    assert measure("system", [{"role": "user"}]).prefix == ""


@pytest.mark.parametrize("one", [["ab", "c"], ["a", "bc"], ["abc"], ['a","b', "c"]])
def test_where_one_message_ends_is_part_of_the_digest(one: list[str]) -> None:
    others = [["ab", "c"], ["a", "bc"], ["abc"], ['a","b', "c"]]
    others.remove(one)
    assert measure("", list(one)).digest not in {measure("", list(other)).digest for other in others}
