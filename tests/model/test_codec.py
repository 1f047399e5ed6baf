"""Durable events become data and come back the same, whatever version wrote them; what does not fit is refused."""

import json
from decimal import Decimal
from itertools import permutations
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_core.errors import EventDecodeError, LogError, UnknownEventError
from opencode_core.model.codec import EVENTS, EventCodec
from opencode_core.model.event.base import DurableEvent, EventKind, Recorded, SessionEvent
from opencode_core.model.event.catalogue import SESSION_EVENTS
from opencode_core.model.event.conversation import StepEnded, ToolSucceeded
from opencode_core.model.event.session import PromptAdmitted
from opencode_core.model.prompt import Prompt
from opencode_core.model.session import ModelChoice
from opencode_core.storage.envelope import from_row, row_of
from tests.model.events.samples import all_of, any_of, bare, full

SECRET = "hunter2secret"
each_event = pytest.mark.parametrize("cls", SESSION_EVENTS, ids=[cls.kind.type for cls in SESSION_EVENTS])


@attrs.frozen(kw_only=True)
class FirstMeasured(DurableEvent):
    """The first shape: a length in centimetres."""

    kind: ClassVar = EventKind("measured", aggregate="thing")

    thing: str
    centimetres: int


@attrs.frozen(kw_only=True)
class SecondMeasured(DurableEvent):
    """The second: in millimetres."""

    kind: ClassVar = EventKind("measured", version=2, aggregate="thing")

    thing: str
    millimetres: int


@attrs.frozen(kw_only=True)
class ThirdMeasured(DurableEvent):
    """The third: with a unit."""

    kind: ClassVar = EventKind("measured", version=3, aggregate="thing")

    thing: str
    amount: int
    unit: str


UPCASTERS: dict[tuple[str, int], Any] = {
    ("measured", 1): lambda data: {"at": data["at"], "millimetres": data["centimetres"] * 10},
    ("measured", 2): lambda data: {"at": data["at"], "amount": data["millimetres"], "unit": "mm"},
}
VERSIONS: list[type[DurableEvent]] = [FirstMeasured, SecondMeasured, ThirdMeasured]


# Round trips


@settings(max_examples=200)
@given(event=st.one_of([any_of(cls) for cls in SESSION_EVENTS]))
def test_any_event_comes_back_the_same_through_json(event: SessionEvent) -> None:
    assert through_json(event) == event


@each_event
def test_every_kind_of_field_comes_back_the_same_through_json(cls: type[SessionEvent]) -> None:
    for event in all_of(cls):
        assert through_json(event) == event


@each_event
def test_only_what_must_be_said_is_stored_and_the_key_says_whose_it_is(cls: type[SessionEvent]) -> None:
    required = {field.name for field in attrs.fields(cls) if field.default is attrs.NOTHING}
    assert set(EVENTS.encode(bare(cls))) == required - {"session"}


def test_what_is_as_it_is_by_default_is_left_out_however_it_was_given() -> None:
    event = ToolSucceeded(session="s", at=1, message="m", part="p", output="", shown={}, title="", executed=None)
    assert EVENTS.encode(event) == {"at": 1, "message": "m", "part": "p", "output": ""}
    prompt = PromptAdmitted(session="s", at=1, message="m", prompt=Prompt(files=()), delivery="steer", parts=())
    assert EVENTS.encode(prompt) == {"at": 1, "message": "m", "prompt": {}}


def test_the_default_variant_and_none_are_the_same() -> None:
    stored: dict[str, Any] = {
        "at": 1,
        "message": "m",
        "model": {"providerID": "p", "modelID": "m", "variant": "default"},
    }
    event = EVENTS.decode("model.switched", 1, stored, "s")
    assert getattr(event, "model") == ModelChoice(provider="p", model="m")  # noqa: B009


def test_a_cost_is_exact_where_binary_numbers_are_not() -> None:
    third = StepEnded(session="s", at=1, message="m", part="p", finish="stop", cost=Decimal("0.1") + Decimal("0.2"))
    assert json.dumps(EVENTS.encode(third)["cost"]) == "0.3"
    assert through_json(third) == third


def test_a_whole_number_may_be_written_with_a_point() -> None:
    event = EVENTS.decode("session.touched", 1, {"at": 5.0}, "s")
    assert repr(event.at) == "5"


# Versions


@pytest.mark.behaviour("EV-03")
def test_the_version_stands_beside_the_type_and_not_in_it() -> None:
    codec = EventCodec(VERSIONS, UPCASTERS)
    event = ThirdMeasured(thing="t", at=1, amount=2, unit="m")
    row = row_of(Recorded(aggregate="t", sequence=0, id="evt_1", event=event), codec)
    assert row["type"] == "measured/3"
    read = from_row("t", 0, row, codec).event.kind
    assert (read.type, read.version) == ("measured", 3)


@pytest.mark.behaviour("EV-04")
@pytest.mark.parametrize("order", list(permutations(VERSIONS)))
def test_the_highest_version_is_the_one_in_use_in_whatever_order_they_were_declared(order: Any) -> None:
    codec = EventCodec(order, UPCASTERS)
    assert codec.latest("measured") is ThirdMeasured


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (1, {"at": 1, "centimetres": 5}),
        (2, {"at": 1, "millimetres": 50}),
        (3, {"at": 1, "amount": 50, "unit": "mm"}),
    ],
)
def test_an_older_version_is_brought_up_step_by_step(version: int, data: Any) -> None:
    before = json.dumps(data)
    event = EventCodec(VERSIONS, UPCASTERS).decode("measured", version, data, "t")
    assert event == ThirdMeasured(thing="t", at=1, amount=50, unit="mm")
    assert json.dumps(data) == before


def test_an_older_class_is_not_written_any_more() -> None:
    with pytest.raises(UnknownEventError, match=r"'FirstMeasured' \('measured', version 1\) is not known"):
        EventCodec(VERSIONS, UPCASTERS).encode(FirstMeasured(thing="t", at=1, centimetres=1))


def test_a_class_that_the_codec_was_not_given_is_not_written() -> None:
    with pytest.raises(UnknownEventError, match="'ThirdMeasured'"):
        EVENTS.encode(ThirdMeasured(thing="t", at=1, amount=1, unit="m"))


def test_a_version_without_its_upcaster_is_a_typed_error() -> None:
    with pytest.raises(EventDecodeError, match=r"'measured' \(version 1\)"):
        EventCodec(VERSIONS, {}).decode("measured", 1, {"at": 1, "centimetres": 1}, "t")


def test_no_two_events_have_one_type() -> None:
    assert len({cls.kind.type for cls in SESSION_EVENTS}) == len(SESSION_EVENTS)


# What does not fit


@pytest.mark.behaviour("EV-30")
def test_an_unknown_type_is_refused_by_its_name() -> None:
    with pytest.raises(UnknownEventError, match=r"No event has the type 'nobody.knows'. Install the plugin"):
        EVENTS.decode("nobody.knows", 1, {"at": 1}, "s")


@pytest.mark.parametrize("version", [2, 99, 0, -1])
def test_a_version_that_was_never_known_is_refused_with_the_newest(version: int) -> None:
    with pytest.raises(UnknownEventError, match=rf"version {version}, but 1 is the newest"):
        EVENTS.decode("session.touched", version, {"at": 1}, "s")


@each_event
def test_a_field_of_another_kind_is_refused_and_never_repeated(cls: type[SessionEvent]) -> None:
    whole = through_text(EVENTS.encode(full(cls)))
    for name in whole:
        for wrong in ({"type": SECRET, "name": {SECRET: 1}}, [SECRET], -1.5, {SECRET: SECRET}, SECRET):
            refused(cls.kind.type, {**whole, name: wrong})


@each_event
def test_a_missing_field_is_refused_by_its_name(cls: type[SessionEvent]) -> None:
    data = EVENTS.encode(bare(cls))
    for name in data:
        left = {other: value for other, value in data.items() if other != name}
        with pytest.raises(EventDecodeError, match=rf"'{cls.kind.type}' \(version 1\) do not fit: '{name}' is missing"):
            EVENTS.decode(cls.kind.type, 1, left, "s")


@pytest.mark.parametrize(
    ("type", "data", "why"),
    [
        ("session.touched", {"at": SECRET}, "a 'str' is not a 'int'"),
        ("session.touched", {"at": True}, "a 'bool' is not a 'int'"),
        ("session.touched", {"at": 1.5}, "a 'float' is not a 'int'"),
        ("session.touched", {"at": 1, "metadata": [SECRET]}, "a 'list' is not an object"),
        ("session.imported", {"at": 1, "document": SECRET}, "a 'str' is not an object"),
        ("session.imported", {"at": 1, "document": None}, "a 'NoneType' is not an object"),
        ("message.imported", {"at": 1, "message": "m", "document": {}, "parts": [SECRET]}, "a 'str' is not an object"),
        ("prompt.admitted", {"at": 1, "message": "m", "prompt": {}, "delivery": SECRET}, "none of the values"),
        ("step.ended", {"at": 1, "message": "m", "part": "p", "finish": "", "cost": "1"}, "a 'str' is not a number"),
        ("prompt.admitted", {"at": 1, "message": "m", "prompt": {"format": {"type": SECRET}}}, "'type' is not known"),
    ],
)
def test_what_is_wrong_is_said_without_what_was_stored(type: str, data: Any, why: str) -> None:
    with pytest.raises(EventDecodeError, match=why) as caught:
        EVENTS.decode(type, 1, data, "s")
    assert SECRET not in told(caught.value)


@pytest.mark.parametrize("data", [None, [], SECRET, 5])
def test_data_that_are_no_object_are_refused(data: Any) -> None:
    with pytest.raises(EventDecodeError) as caught:
        EVENTS.decode("session.touched", 1, data, "s")
    assert SECRET not in told(caught.value)


@pytest.mark.parametrize(
    "row",
    [
        None,
        SECRET,
        {},
        {"id": "e", "type": "session.touched", "data": {"at": 1}},
        {"id": "e", "type": f"session.touched/{SECRET}", "data": {"at": 1}},
        {"id": "e", "type": 5, "data": {"at": 1}},
        {"id": "e", "type": "session.touched/1"},
        {"id": "e", "type": "session.touched/1", "data": {"at": 1}, "location": SECRET},
        {"id": "e", "type": "session.touched/1", "data": {"at": 1}, "location": {"directory": 5}},
    ],
)
def test_a_row_that_is_no_event_is_refused_with_its_place(row: Any) -> None:
    with pytest.raises(EventDecodeError, match="The event 7 of 'ses_1' is not one") as caught:
        from_row("ses_1", 7, row, EVENTS)
    assert SECRET not in str(caught.value)


def test_a_field_that_is_not_known_is_passed_over() -> None:
    event = EVENTS.decode("session.touched", 1, {"at": 1, "future": 2}, "s")
    assert EVENTS.encode(event) == {"at": 1}


def through_json(event: DurableEvent) -> DurableEvent:
    session = getattr(event, event.kind.aggregate)
    return EVENTS.decode(event.kind.type, event.kind.version, through_text(EVENTS.encode(event)), session)


def through_text(document: Any) -> Any:
    return json.loads(json.dumps(document))


def refused(type: str, data: Any) -> None:
    """Decodes data; when they do not fit, the error is a typed one that keeps them to itself."""
    try:
        event = EVENTS.decode(type, 1, data, "s")
    except LogError as error:
        words = told(error)
    else:
        words = ""
        assert through_json(event) == event
    assert SECRET not in words


def told(error: BaseException | None) -> str:
    """Returns what a log would show of an error: its own words and those of its causes."""
    return "" if error is None else f"{error} {told(error.__cause__)}"
