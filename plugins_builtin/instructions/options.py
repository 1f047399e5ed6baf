"""What a person may configure about instructions. Reads none."""

from __future__ import annotations

from typing import Any

import attrs


def _not_negative(_instance: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if not value >= 0:
        raise ValueError("must not be negative", attribute)  # with the attribute, so that people are told its name


@attrs.frozen(kw_only=True)
class InstructionsOptions:
    """The options of the plugin.

    Attributes:
        files: More instructions: paths, patterns and addresses of the web, in order.
        file_limit: How many bytes one file may have.
        remote_limit: How many bytes may come from one address.
        refresh_seconds: How old a copy of what an address holds may become before it is asked again.
    """

    files: tuple[str, ...] = ()
    file_limit: int = attrs.field(default=1_048_576, validator=_not_negative)
    remote_limit: int = attrs.field(default=262_144, validator=_not_negative)
    refresh_seconds: float = attrs.field(default=300.0, validator=_not_negative)
