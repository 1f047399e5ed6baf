"""Makes ids that sort by when they were made. Never says what came first: that is the sequence's word.

An id is a prefix, twelve hexadecimal digits of time and counter, and fourteen random characters. The digits are the low
48 bits of the milliseconds times 4,096, as in the first generation, so they begin again every 2.2 years.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

import attrs

from opencode_core.errors import InvalidKeyError

Kind: TypeAlias = Literal["session", "message", "part", "permission", "question", "user", "pty", "tool", "event"]

PREFIXES: Final[dict[Kind, str]] = {
    "session": "ses",
    "message": "msg",
    "part": "prt",
    "permission": "per",
    "question": "que",
    "user": "usr",
    "pty": "pty",
    "tool": "tool",
    "event": "evt",
}

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PER_MILLISECOND = 0x1000
_MASK = (1 << 48) - 1
_SPAN = (_MASK + 1) // _PER_MILLISECOND
_TOLERANCE = 24 * 60 * 60 * 1000


@attrs.define(eq=False, repr=False)
class Ids:
    """Makes ids for one process, strictly increasing, or decreasing, also when the clock goes back.

    Attributes:
        milliseconds: Tells the time since 1970.
        random: Makes the last fourteen characters.
    """

    milliseconds: Callable[[], int]
    random: Callable[[], str] = attrs.field(default=lambda: random_tail())
    _last: int = attrs.field(default=0, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def ascending(self, kind: Kind, given: str | None = None) -> str:
        """Returns a new id that sorts after every earlier one, or the given one if it is of that kind.

        Raises:
            InvalidKeyError: The given id is of another kind.
        """
        return self._make(kind, self._next()) if given is None else check_id(kind, given)

    def descending(self, kind: Kind, given: str | None = None) -> str:
        """Returns a new id that sorts before every earlier one, or the given one if it is of that kind.

        Raises:
            InvalidKeyError: The given id is of another kind.
        """
        return self._make(kind, ~self._next()) if given is None else check_id(kind, given)

    def _next(self) -> int:
        with self._lock:
            # The counter counts from 1 in each millisecond; when it is full, the next millisecond is borrowed.
            self._last = max(self._last + 1, self.milliseconds() * _PER_MILLISECOND + 1)
            return self._last

    def _make(self, kind: Kind, number: int) -> str:
        return f"{PREFIXES[kind]}_{number & _MASK:012x}{self.random()}"


def random_tail() -> str:
    """Returns fourteen characters that nobody can guess."""
    # One call for all of them: eleven bytes are more than 62 to the 14th.
    number = int.from_bytes(secrets.token_bytes(11), "big")
    digits = []
    for _ in range(14):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(digits)


def check_id(kind: Kind, given: str) -> str:
    """Returns an id of that kind unchanged.

    Raises:
        InvalidKeyError: It is of another kind.
    """
    if not given.startswith(f"{PREFIXES[kind]}_") or len(given) <= len(PREFIXES[kind]) + 1:
        raise InvalidKeyError(f"'{given}' is not the id of a {kind}.", f"It must start with '{PREFIXES[kind]}_'.")
    return given


def milliseconds_of(id: str, *, now: int) -> int:
    """Returns when an ascending id was made, in milliseconds since 1970.

    Args:
        id: An ascending id; a descending one gives nonsense.
        now: The time it is read, which tells the 2.2 years apart in which the digits repeat.

    Raises:
        InvalidKeyError: It is not an id.
    """
    digits = id.partition("_")[2][:12]
    try:
        low = int(digits, 16) // _PER_MILLISECOND
    except ValueError:
        low = -1
    if low < 0 or len(digits) != 12:
        raise InvalidKeyError(f"'{id}' is not an id with a time in it.", "Pass an ascending id, unchanged.")
    latest = now + _TOLERANCE
    return latest - (latest - low) % _SPAN
