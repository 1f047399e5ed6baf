"""The head of a skill file is read as text, forgives what people usually write, and cannot do any harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin_sdk import Skill
from plugins_builtin.skills.markdown import NotASkill, parse_skill


def parse(text: str, name: str = "file") -> Skill:
    return parse_skill(text, name=name, directory="/place", is_folder=False)


def refusal(text: str, name: str = "file") -> str:
    with pytest.raises(NotASkill) as caught:
        parse(text, name)
    return str(caught.value)


def test_the_head_names_and_describes_and_the_rest_is_the_body() -> None:
    skill = parse("---\nname: a\ndescription: What it is for.\nslash: yes\nlicense: MIT\n---\n\n# Title\n\nText.\n")
    assert skill == Skill(
        name="a", description="What it is for.", body="# Title\n\nText.", directory="/place", slash=True
    )


@pytest.mark.parametrize(
    "text", ["\ufeff---\nname: a\n---\nbody", "---\r\nname: a\r\n---\r\nbody\r\n", "\n\n---\nname: a\n---\nbody"]
)
def test_marks_and_line_ends_of_other_systems_do_not_matter(text: str) -> None:
    assert (parse(text).name, parse(text).body) == ("a", "body")


def test_rules_between_paragraphs_are_no_head() -> None:
    text = "First.\n\n---\n\nSecond.\n\n---\n\nThird."
    assert parse(text).body == text


def test_a_rule_in_the_body_belongs_to_the_body() -> None:
    assert parse("---\nname: a\n---\none\n\n---\n\ntwo").body == "one\n\n---\n\ntwo"


@pytest.mark.parametrize("value", ["123", "2024-01-01", "true", "null", "1e3", "0x1f"])
def test_a_value_stays_the_text_it_is(value: str) -> None:
    skill = parse(f"---\nname: {value}\ndescription: {value}\n---\n")
    assert (skill.name, skill.description) == (value, value)


def test_a_description_with_colons_and_no_quotes_is_read_as_it_is_written() -> None:
    skill = parse('---\nname: a\ndescription: Use when: it rains: "always"\n---\n')
    assert skill.description == 'Use when: it rains: "always"'


def test_a_description_over_several_lines_is_read() -> None:
    assert parse("---\nname: a\ndescription: >-\n  one\n  two\n---\n").description == "one two"


def test_an_empty_head_says_nothing() -> None:
    assert parse("---\n---\nbody").body == "body"


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("---\nname: a\n", "file", "a head that never ends"),
        ("---\nname: [\n---\n", "file", "not YAML"),
        ("---\n- name\n---\n", "file", "not a list of names with values"),
        ("---\nname: [a]\n---\n", "file", "a 'name' that is not a text"),
        ("---\nname: a\ndescription: {a: b}\n---\n", "file", "a 'description' that is not a text"),
        ("body", "", "no 'name'"),
        ("---\nname: a b\n---\n", "", "white space"),
        ("---\nname: /a\n---\n", "", "white space, with a slash"),
        ('---\nname: "a\\u202e"\n---\n', "", "white space"),
        (f"---\nname: {'a' * 101}\n---\n", "", "more than 100"),
        (f"---\nname: a\nx: {'a' * 8_192}\n---\n", "", "more than 8,192"),
    ],
)
def test_what_is_no_skill_says_why(text: str, name: str, reason: str) -> None:
    assert reason in refusal(text, name)


@pytest.mark.parametrize(
    ("piece", "reason"),
    [("[", "100 brackets"), ("{a: ", "100 brackets"), ("- ", "nested too deeply"), ("? ", "nested too deeply")],
)
def test_a_head_that_is_nested_without_end_is_refused_and_ends_no_process(piece: str, reason: str) -> None:
    assert reason in refusal(f"---\n{piece * (8_000 // len(piece))}\n---\n")


def test_aliases_that_would_grow_without_bounds_are_not_joined() -> None:
    levels = "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 11))
    assert parse(f"---\nname: a\na0: &a0 {{x: y}}\n{levels}---\n").name == "a"


def test_nothing_in_a_head_is_executed() -> None:
    assert "not a text" in refusal("---\nname: !!python/object/apply:os.system [exit 1]\n---\n")


@given(st.text(max_size=200), st.text(max_size=200))
def test_whatever_is_in_a_file_it_is_a_skill_or_says_why_not(head: str, body: str) -> None:
    try:
        name = parse(f"---\n{head}\n---\n{body}").name
    except NotASkill:
        return
    assert name.split() == [name]
