"""Makes ids that sort by when they were made. Never says what came first: that is the sequence's word.

An id is a prefix, twelve hexadecimal digits of time and counter, and fourteen random characters. The digits are the low
48 bits of the milliseconds times 4,096, as in the first generation, so they begin again every 2.2 years.
"""

from __future__ import annotations

import hashlib
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

_ALPHABET = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# A byte for a character; that the first eight characters are a little more likely costs a third of a bit in all.
_SPELLING = bytes(_ALPHABET[byte % 62] for byte in range(256))
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

    def placed(self, aggregate: str, sequence: int) -> str:
        """Returns the id of an event, which proves its place: at any other, `is_placed` does not recognise it."""
        digits = f"{self._next() & _MASK:012x}"
        proof = _proof(digits, aggregate, sequence)
        return f"evt_{digits}{proof}{_seal(digits + proof)}"

    def _next(self) -> int:
        with self._lock:
            # The counter counts from 1 in each millisecond; when it is full, the next millisecond is borrowed.
            self._last = max(self._last + 1, self.milliseconds() * _PER_MILLISECOND + 1)
            return self._last

    def _make(self, kind: Kind, number: int) -> str:
        return f"{PREFIXES[kind]}_{number & _MASK:012x}{self.random()}"


def random_tail() -> str:
    """Returns fourteen characters that nobody can guess."""
    return _spelled(secrets.token_bytes(14))


def is_placed(id: str, aggregate: str, sequence: int) -> bool | None:
    """Returns whether an event id proves that it belongs at a place; None when it proves nothing, being from elsewhere.

    So no index is needed to know that an id made here is used once: at another place it is not accepted.
    """
    digits, proof, seal = id[4:16], id[16:26], id[26:]
    if not id.startswith("evt_") or _seal(digits + proof) != seal:
        return None
    return _proof(digits, aggregate, sequence) == proof


def _proof(digits: str, aggregate: str, sequence: int) -> str:
    place = f"{digits}/{sequence}/{aggregate}".encode("utf-8", "surrogatepass")
    return _spelled(hashlib.blake2b(place, digest_size=10).digest())


def _seal(text: str) -> str:
    return _spelled(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4, person=b"event").digest())


def _spelled(noise: bytes) -> str:
    return noise.translate(_SPELLING).decode()


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
