"""Makes and reads the opaque cursors of paged lists. Reads no store."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Literal, TypeAlias

import attrs

Direction: TypeAlias = Literal["next", "previous"]


@attrs.frozen(kw_only=True)
class Cursor:
    """Where a page begins: behind an anchor, in the direction of the list or against it.

    Attributes:
        anchor: The id of the item beside the page.
        direction: On which side of it the page is.
        reverse: Whether the list runs from the newest to the oldest.
    """

    anchor: str
    direction: Direction = "next"
    reverse: bool = True

    def __str__(self) -> str:
        text = json.dumps([self.anchor, self.direction == "next", self.reverse], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(text: str) -> Cursor | None:
    """Returns the cursor that a text stands for; None when it is not one."""
    try:
        padded = text + "=" * (-len(text) % 4)
        anchor, is_next, reverse = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, UnicodeError, TypeError):
        return None
    if not isinstance(anchor, str) or not isinstance(is_next, bool) or not isinstance(reverse, bool):
        return None
    return Cursor(anchor=anchor, direction="next" if is_next else "previous", reverse=reverse)
