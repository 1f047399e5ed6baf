"""The nouns: values that whoever made them cannot change afterwards, and names that follow their grammar."""

from types import MappingProxyType
from typing import Any

import attrs
import pytest

from opencode_core.errors import DuplicateKeyError, InvalidKeyError, OpencodeError, Place
from opencode_core.model.catalog import CatalogDraft, ModelInfo, ProviderInfo
from opencode_core.model.json import copied, frozen_copy
from opencode_core.model.keys import check_entry_name, check_plugin_name, check_source_key, check_tool_name
from opencode_core.model.provider import ProviderRequest
from opencode_core.model.tool import Tool, ToolCall, ToolOutput


async def execute(call: ToolCall) -> ToolOutput:
    return ToolOutput()


def inner(name: str, value: Any) -> Any:
    """One value of each kind, with the mapping in the field of that name."""
    makers: dict[str, Any] = {
        "arguments": lambda: ToolCall(id="1", name="t", arguments=value).arguments,
        "parameters": lambda: Tool(description="", execute=execute, parameters=value).parameters,
        "metadata": lambda: ToolOutput(metadata=value).metadata,
        "structured": lambda: ToolOutput(structured=value).structured,
        "request": lambda: ProviderRequest(provider="p", model="m", system="", parameters=value).parameters,
        "provider options": lambda: ProviderInfo(id="p", options=value).options,
        "model options": lambda: ModelInfo(provider="p", id="m", options=value).options,
    }
    return makers[name]()


FIELDS = ["arguments", "parameters", "metadata", "structured", "request", "provider options", "model options"]


@pytest.mark.parametrize("name", FIELDS)
def test_a_mapping_is_copied_when_a_value_is_made_of_it(name: str) -> None:
    given: dict[str, Any] = {"list": [1], "mapping": {"a": 1}}
    kept = inner(name, given)
    given["list"].append(2)
    given["mapping"]["a"] = 2
    given["new"] = []
    assert kept == {"list": [1], "mapping": {"a": 1}}


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "structured"])
def test_a_mapping_inside_a_value_cannot_be_assigned_to(name: str) -> None:
    with pytest.raises(TypeError):
        inner(name, {"a": 1})["a"] = 2


def test_the_arguments_of_a_call_can_be_part_of_its_output() -> None:
    call = ToolCall(id="1", name="t", arguments={"a": [1]})
    output = ToolOutput(structured=call.arguments, metadata={"of": call.arguments})
    assert (output.structured, output.metadata) == ({"a": [1]}, {"of": {"a": [1]}})


def test_a_copy_is_equal_and_shares_nothing_that_can_change() -> None:
    value: Any = {"a": [{"b": (1, [2])}], "c": None, "d": "text", "e": MappingProxyType({"f": 1.5})}
    copy = copied(value)
    assert copy == value
    value["a"][0]["b"][1].append(3)
    assert copy != value


def test_a_frozen_copy_is_equal_to_what_it_was_made_of() -> None:
    assert frozen_copy({"a": 1}) == {"a": 1}
    assert attrs.evolve(ToolCall(id="1", name="t", arguments={"a": 1})) == ToolCall(
        id="1", name="t", arguments={"a": 1}
    )


# Names


@pytest.mark.parametrize("name", ["a", "Read", "web_search", "apply-patch", "a" + "b" * 63])
def test_a_tool_name_is_a_letter_and_at_most_63_more(name: str) -> None:
    assert check_tool_name(name) == name


@pytest.mark.parametrize("name", ["", "_a", "1a", "a b", "é", "a" * 65, "a\n", None])
def test_what_is_not_a_tool_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidKeyError, match=r"is not a tool name. Use a letter"):
        check_tool_name(name)


@pytest.mark.parametrize("name", ["", "Acme", "-acme", "a b", "a/b", "a" * 65, None])
def test_what_is_not_a_plugin_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidKeyError, match=r"is not a plugin name. Use lower-case"):
        check_plugin_name(name)


@pytest.mark.parametrize("name", ["", " ", "a b", "/a", "a\tb", None])
def test_what_is_not_an_entry_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidKeyError, match=r"is not a name. Use at least one character"):
        check_entry_name(name)


def test_names_that_are_fine_are_returned_unchanged() -> None:
    assert [check_plugin_name("acme.x-1"), check_entry_name("git:commit"), check_source_key("a/b")] == [
        "acme.x-1",
        "git:commit",
        "a/b",
    ]


# The catalog's draft


def test_a_draft_adds_changes_and_removes_and_finishes_sorted() -> None:
    draft = CatalogDraft()
    draft.provider("b", url="http://b")
    draft.provider("a")
    draft.provider("b", name="B")
    draft.model("b", "two")
    draft.model("b", "one", context_limit=8)
    draft.model("b", "one", output_limit=4)
    draft.model("a", "gone")
    draft.remove_provider("a")
    draft.remove_model("b", "two")
    draft.remove_model("b", "never there")
    catalog = draft.finish()
    assert catalog.providers == (ProviderInfo(id="b", name="B", url="http://b"),)
    assert catalog.models == (ModelInfo(provider="b", id="one", context_limit=8, output_limit=4),)


def test_a_model_of_an_unknown_provider_is_refused_with_what_to_call_first() -> None:
    with pytest.raises(InvalidKeyError, match=r"Call catalog.provider\('x'\) first"):
        CatalogDraft().model("x", "m")


def test_a_finished_catalog_does_not_change_with_its_draft() -> None:
    draft = CatalogDraft()
    options: dict[str, Any] = {"a": 1}
    draft.provider("p", options=options)
    catalog = draft.finish()
    options["a"] = 2
    draft.provider("q")
    assert catalog.providers == (ProviderInfo(id="p", options={"a": 1}),)


# Errors


def test_an_error_says_what_happened_and_then_what_to_do() -> None:
    assert str(OpencodeError("It broke.", "Mend it.")) == "It broke. Mend it."
    assert str(OpencodeError("It broke.")) == "It broke."


@pytest.mark.parametrize(
    ("owners", "said"),
    [
        (("a", "b"), "by both 'a' and 'b'. Rename one of them, or block one of the two plugins."),
        (("a", "a"), "twice by 'a'. Rename one of them."),
        (("", ""), "twice. Rename one of them."),
    ],
)
def test_a_duplicate_names_the_owners_that_are_known(owners: tuple[str, str], said: str) -> None:
    assert str(DuplicateKeyError("k", owners)) == f"The key 'k' is contributed {said}"


def test_a_place_is_written_as_far_as_it_is_known() -> None:
    assert [str(Place("f.py")), str(Place("f.py", 3)), str(Place("f.py", 3, 7))] == ["f.py", "f.py:3", "f.py:3:7"]
