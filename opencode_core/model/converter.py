"""Makes the one converter between values and JSON: names and tagged unions. Knows no version and no store.

Sessions, messages and parts have the names of the first generation (``sessionID``, ``time.created``), so that its
programs can read them. Events have the names of their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from opencode_core.model import fault, message, part, prompt, session
from opencode_core.model.event.base import DurableEvent
from opencode_core.model.json import JSON


class Misfit(Exception):
    """Says what does not fit, in words that repeat nothing of what was stored."""


# How the first generation calls a field. `model` is an id where it is a text, and a choice where it is one.
_NAMES: Final = {
    "session": "sessionID",
    "message": "messageID",
    "part": "partID",
    "project": "projectID",
    "parent": "parentID",
    "call": "callID",
    "provider": "providerID",
    "workspace": "workspaceID",
    "tail_start": "tail_start_id",
    "client": "clientName",
    "result_metadata": "resultMetadata",
    "executed": "providerExecuted",
}
_OWN_NAMES: Final[dict[type, dict[str, str]]] = {
    session.ModelChoice: {"model": "modelID"},
    message.AssistantMessage: {"model": "modelID"},
    message.JsonSchemaFormat: {"retries": "retryCount"},
    fault.ProviderAuthFault: {"message": "message"},
    fault.ApiFault: {
        "message": "message",
        "status": "statusCode",
        "retryable": "isRetryable",
        "headers": "responseHeaders",
        "body": "responseBody",
    },
    fault.ContextOverflowFault: {"message": "message", "body": "responseBody"},
    fault.AbortedFault: {"message": "message"},
    fault.UnknownFault: {"message": "message"},
    fault.StructuredOutputFault: {"message": "message"},
}
_FAULTS: Final = {
    "MessageAbortedError": fault.AbortedFault,
    "ProviderAuthError": fault.ProviderAuthFault,
    "APIError": fault.ApiFault,
    "ContextOverflowError": fault.ContextOverflowFault,
    "MessageOutputLengthError": fault.OutputLengthFault,
    "StructuredOutputError": fault.StructuredOutputFault,
    "UnknownError": fault.UnknownFault,
}
_UNIONS: Final = (Union, UnionType)
_TAGGED: Final[tuple[tuple[Any, str, dict[str, type]], ...]] = (
    (part.Source, "type", {"file": part.FileSource, "symbol": part.SymbolSource, "resource": part.ResourceSource}),
    (
        part.ToolState,
        "status",
        {
            "pending": part.PendingTool,
            "running": part.RunningTool,
            "completed": part.CompletedTool,
            "error": part.FailedTool,
        },
    ),
    (message.OutputFormat, "type", {"text": message.TextFormat, "json_schema": message.JsonSchemaFormat}),
    (
        part.Part,
        "type",
        {
            "text": part.TextPart,
            "reasoning": part.ReasoningPart,
            "tool": part.ToolPart,
            "file": part.FilePart,
            "snapshot": part.SnapshotPart,
            "patch": part.PatchPart,
            "agent": part.AgentPart,
            "compaction": part.CompactionPart,
            "subtask": part.SubtaskPart,
            "retry": part.RetryPart,
            "step-start": part.StepStartPart,
            "step-finish": part.StepFinishPart,
        },
    ),
    (
        message.Message,
        "role",
        {
            "user": message.UserMessage,
            "assistant": message.AssistantMessage,
            "system": message.SystemMessage,
            "synthetic": message.SyntheticMessage,
            "shell": message.ShellMessage,
            "agent-switch": message.AgentSwitchMessage,
            "model-switch": message.ModelSwitchMessage,
            "compaction": message.CompactionMessage,
        },
    ),
)


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=False)
    for primitive in (str, int, bool):
        converter.register_structure_hook(primitive, _checked(primitive))
    converter.register_structure_hook(Decimal, _decimal)
    converter.register_unstructure_hook(Decimal, _number)
    converter.register_structure_hook_func(_is_literal, _literal)
    # A JSON value is an alias that names itself, which the converter cannot follow and need not.
    converter.register_structure_hook_func(_is_json, lambda value, _: value)
    converter.register_structure_hook_func(_is_json_object, _object)
    converter.register_unstructure_hook_func(_is_json, lambda value: value)
    converter.register_unstructure_hook_factory(
        lambda cls: isinstance(cls, type) and attrs.has(cls), lambda cls: _unstructure(cls, converter)
    )
    converter.register_structure_hook_factory(
        lambda cls: isinstance(cls, type) and attrs.has(cls), lambda cls: _structure(cls, converter)
    )
    _register_faults(converter)
    for union, tag, classes in _TAGGED:
        _register_union(converter, union, tag, classes)
    return converter


def _checked(primitive: type) -> Callable[[Any, Any], Any]:
    def check(value: Any, _: Any) -> Any:
        if value.__class__ is primitive:
            return value
        if primitive is int and value.__class__ is float and value.is_integer():  # as the first generation may write it
            return int(value)
        raise Misfit(f"a '{type(value).__name__}' is not a '{primitive.__name__}'")

    return check


def _decimal(number: Any, _: Any) -> Decimal:
    if number.__class__ in (int, float):
        return Decimal(str(number))
    raise Misfit(f"a '{type(number).__name__}' is not a number")


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def _is_literal(cls: Any) -> bool:
    return get_origin(cls) is Literal


def _literal(value: Any, cls: Any) -> Any:
    if value in get_args(cls):
        return value
    raise Misfit("something is none of the values that it can be")


def _is_json(cls: Any) -> bool:
    # A tuple of JSON values is none itself: what is read is a list, and has to become a tuple again.
    return get_origin(cls) is not tuple and "ForwardRef('bool | int | float" in repr(cls)


def _is_json_object(cls: Any) -> bool:
    """Whether this is a mapping of JSON values, or one or None."""
    members = [member for member in get_args(cls) if member is not type(None)] if get_origin(cls) in _UNIONS else [cls]
    return _is_json(cls) and all(get_origin(member) is Mapping for member in members)


def _object(value: Any, cls: Any) -> Any:
    if isinstance(value, Mapping) or (value is None and _may_be_none(cls)):
        return value
    raise Misfit(f"a '{type(value).__name__}' is not an object")


def _is_event(cls: type) -> bool:
    return issubclass(cls, DurableEvent) or cls.__module__.startswith(("opencode_core.model.event.", prompt.__name__))


def _unstructure(cls: type, converter: cattrs.Converter) -> Callable[[Any], dict[str, Any]]:
    overrides: dict[str, Any] = {
        field.name: override(rename=_name(cls, field), omit_if_default=_is_left_out(cls, field))
        for field in _fields(cls)
    }
    return make_dict_unstructure_fn(cls, converter, **overrides)


def _structure(cls: type, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    overrides: dict[str, Any] = {field.name: override(rename=_name(cls, field)) for field in _fields(cls)}
    return make_dict_structure_fn(cls, converter, _cattrs_detailed_validation=False, **overrides)


def _fields(cls: type) -> tuple[attrs.Attribute[Any], ...]:
    # The alias JSON names its parts, which a module that uses it need not have imported.
    attrs.resolve_types(cls, localns={"JSON": JSON, "Mapping": Mapping, "Sequence": Sequence})
    return tuple(attrs.fields(cls))


def _name(cls: type, field: attrs.Attribute[Any]) -> str:
    if _is_event(cls):
        return field.name
    return _OWN_NAMES.get(cls, {}).get(field.name) or _NAMES.get(field.name, field.name)


def _is_left_out(cls: type, field: attrs.Attribute[Any]) -> bool:
    """Events leave out what is as it is by default; rows only what is not there, as the first generation does."""
    return field.default is None if not _is_event(cls) else field.default is not attrs.NOTHING


def _register_faults(converter: cattrs.Converter) -> None:
    names = {cls: name for name, cls in _FAULTS.items()}
    plain = {cls: _unstructure(cls, converter) for cls in names}
    readers = {name: _structure(cls, converter) for name, cls in _FAULTS.items()}

    def read(document: Any, wanted: Any) -> Any:
        if document is None and _may_be_none(wanted):
            return None
        name = document["name"]
        if name not in readers:
            return fault.UnknownFault(message=str(document.get("data", {}).get("message", name)))
        return readers[name](document.get("data", {}), _FAULTS[name])

    def write(value: Any) -> dict[str, Any] | None:
        return None if value is None else {"name": names[type(value)], "data": plain[type(value)](value)}

    converter.register_structure_hook_func(lambda cls: _is_union(cls, fault.Fault), read)
    converter.register_unstructure_hook_func(lambda cls: _is_union(cls, fault.Fault), write)
    for cls in names:
        converter.register_unstructure_hook(cls, write)


def _register_union(converter: cattrs.Converter, union: Any, tag: str, classes: dict[str, type]) -> None:
    names = {cls: name for name, cls in classes.items()}
    # Made when they are first needed: by then the converter knows the other unions too, which these may hold.
    writer = cache(lambda cls: _unstructure(cls, converter))
    reader = cache(lambda cls: _structure(cls, converter))

    def read(document: Any, wanted: Any) -> Any:
        if document is None and _may_be_none(wanted):
            return None
        cls = classes.get(document[tag])
        if cls is None:
            raise Misfit(f"its '{tag}' is not known")
        return reader(cls)(document, cls)

    def write(value: Any) -> dict[str, Any] | None:
        cls = value.__class__
        return None if value is None else {tag: names[cls], **writer(cls)(value)}

    converter.register_structure_hook_func(lambda cls: _is_union(cls, union), read)
    converter.register_unstructure_hook_func(lambda cls: _is_union(cls, union), write)
    for cls in names:
        _fields(cls)
        converter.register_unstructure_hook(cls, write)


def _is_union(cls: Any, union: UnionType) -> bool:
    """Whether this is that union, or that union or None."""
    return {*get_args(cls)} - {type(None)} == set(get_args(union))


def _may_be_none(cls: Any) -> bool:
    return type(None) in get_args(cls)


_names_of: Callable[[Any], Mapping[str, str]] = cache(
    lambda cls: {field.name: _name(cls, field) for field in attrs.fields(cls)}
)


def json_names(cls: type) -> Mapping[str, str]:
    """Returns the names that the fields of a class have in JSON, by field."""
    return _names_of(cls)


CONVERTER: Final = _make_converter()
