"""Writes JSON byte for byte as the first generation did, and reads any JSON. Knows no file.

The form is that of JavaScript's ``JSON.stringify(value, null, 2)``: two spaces, nothing escaped that need not be,
numbers in their shortest form, no line end at the end.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring as _quoted
from typing import Any

from plugin_sdk.storage import DEEPEST, JSON, InvalidDocumentError

_EXACT = 1 << 53
_LONGEST_INDENT = len("\n") + len("  ") * DEEPEST
_LONGEST_INTEGER = 21
_SURROGATES = re.compile("[\ud800-\udfff]")


def to_bytes(document: JSON, *, compact: bool = False) -> bytes:
    """Returns the content of a document's file.

    Args:
        document: Any JSON value but null.
        compact: Without line ends and spaces, as the first generation's own migrations wrote.

    Raises:
        InvalidDocumentError: It is null, not JSON, or nested too deeply for every reader; the last not when compact,
            because what the first generation wrote must not be lost.
    """
    if document is None:
        raise InvalidDocumentError("A document is null, which means that there is none.", "Delete it instead.")
    try:
        text = _text_of(document, compact=compact)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidDocumentError(
            f"A document is not JSON: {error}.", "Use texts, finite numbers, booleans, lists and mappings of texts."
        ) from error
    try:
        return text.encode()
    except UnicodeEncodeError:  # lone surrogates, which JSON can only spell; two that make a pair are one character
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def from_bytes(content: bytes) -> JSON:
    """Returns the document that a file holds.

    Raises:
        TooDeepError: It is nested too deeply for where this was called.
        ValueError: It is not JSON in UTF-8.
    """
    try:
        document: JSON = _DECODER.decode(content.decode())
    except RecursionError as error:
        raise TooDeepError from error
    return document


class TooDeepError(ValueError):
    """JSON is nested too deeply to be read, which says nothing about whether it is whole."""


def number_text(number: float) -> str:
    """Returns a number as JavaScript prints it, unless reading that would give another number.

    Raises:
        ValueError: It is not finite.
    """
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    mantissa, _, power = float.__repr__(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits.strip("0"):
        return "0"
    # The number is 0.DIGITS times ten to the point.
    point = len(whole) + int(power or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    sign = "-" if number < 0 else ""
    if abs(number) >= _EXACT and point <= _LONGEST_INTEGER and int(digits.ljust(point, "0")) != abs(number):
        return sign + _exponential(digits, point)  # an integer of these digits would be read as another number
    return sign + _positional(digits, point)


def _positional(digits: str, point: int) -> str:
    if len(digits) <= point <= _LONGEST_INTEGER:
        return digits.ljust(point, "0")
    if 0 < point <= _LONGEST_INTEGER:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    return _exponential(digits, point)


def _exponential(digits: str, point: int) -> str:
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{mantissa}e{point - 1:+d}"


def _text_of(document: JSON, *, compact: bool) -> str:
    out: list[str] = []
    if compact:
        _write_compact(document, out)
    else:
        _write_indented(document, "\n", out)
    return "".join(out)


def _write_indented(value: object, line: str, out: list[str]) -> None:
    scalar = _SCALARS.get(type(value))
    if scalar is not None:
        out.append(scalar(value))
        return
    inner = line + "  "
    opening, members, closing = _shape(value)
    if opening is None:
        out.append(_scalar(value))
        return
    if len(inner) > _LONGEST_INDENT:
        raise ValueError(f"more than {DEEPEST} lists and mappings stand inside each other")
    before = opening + inner
    for name, member in members:
        out.append(before if name is None else f"{before}{name}: ")
        _write_indented(member, inner, out)
        before = "," + inner
    out.append(line + closing if before[0] == "," else opening + closing)


def _write_compact(value: object, out: list[str]) -> None:
    opening, members, closing = _shape(value)
    if opening is None:
        out.append(_scalar(value))
        return
    before = opening
    for name, member in members:
        out.append(before if name is None else f"{before}{name}:")
        _write_compact(member, out)
        before = ","
    out.append(closing if before == "," else opening + closing)


def _shape(value: object) -> tuple[str | None, Iterable[tuple[str | None, object]], str]:
    if isinstance(value, Mapping):
        return "{", ((_key(name), member) for name, member in value.items()), "}"
    if _is_list(value):
        return "[", ((None, member) for member in value), "]"  # type: ignore[attr-defined]
    return None, (), ""


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a '{type(key).__name__}' is the key of a mapping")
    return _quoted(key)


def _scalar(value: object) -> str:
    for kind, scalar in _SCALARS.items():
        if isinstance(value, kind):
            return scalar(value)
    raise TypeError(f"a '{type(value).__name__}' is not a JSON value")


def _refuse(constant: str) -> None:
    raise ValueError(f"'{constant}' is not a JSON value")


_SCALARS: dict[type, Callable[[Any], str]] = {
    str: _quoted,
    bool: lambda value: "true" if value else "false",
    int: int.__repr__,
    float: number_text,
    type(None): lambda _: "null",
}
_DECODER = json.JSONDecoder(parse_constant=_refuse)
