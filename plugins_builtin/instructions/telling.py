"""What instructions are, and the words in which the model is told of them. Finds none."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from plugin_sdk import JSON

_PRECEDENCE = (
    "Where two of them disagree, the later one wins. One that comes from a folder of the project applies to the files "
    "in that folder and below it."
)


@attrs.frozen(kw_only=True)
class Instruction:
    """The instructions of one file or address.

    Attributes:
        origin: Where they come from, as the model and people see it.
        text: What they say.
    """

    origin: str
    text: str


@attrs.frozen(kw_only=True)
class Instructions:
    """Everything that the model is instructed to do, in order: what comes later wins."""

    parts: tuple[Instruction, ...]


def encode(instructions: Instructions) -> JSON:
    """Returns what is stored and compared."""
    return [{"from": each.origin, "text": each.text} for each in instructions.parts]


def decode(stored: JSON) -> Instructions:
    """Returns what was stored.

    Raises:
        ValueError: It is not what `encode` makes.
    """
    if not isinstance(stored, list):
        raise ValueError("instructions are stored as a list")
    return Instructions(parts=tuple(_decoded(each) for each in stored))


def baseline(instructions: Instructions) -> str:
    """Renders them for a model that knows none."""
    return f"These instructions apply, in this order. {_PRECEDENCE}\n\n{_listed(instructions)}"


def update(_before: Instructions, now: Instructions) -> str:
    """Renders them for a model that knows others."""
    return (
        "The instructions have changed. These are all that apply now, in this order; they replace all instructions "
        f"from files and addresses that you were given before. {_PRECEDENCE}\n\n{_listed(now)}"
    )


def removed(_before: Instructions) -> str:
    """Says that none are left."""
    return "The instructions from files and addresses that you were given before no longer apply."


def _decoded(part: JSON) -> Instruction:
    match part:
        case {"from": str(origin), "text": str(text)} if isinstance(part, Mapping) and len(part) == 2:
            return Instruction(origin=origin, text=text)
    raise ValueError("instructions are stored with where they come from, and their text")


def _listed(instructions: Instructions) -> str:
    return "\n\n".join(f"Instructions from: {each.origin}\n{each.text.rstrip()}" for each in instructions.parts)
