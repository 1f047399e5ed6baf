"""Reads JSON with comments and trailing commas, and says exactly where it is wrong. Never guesses."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import NoReturn

import attrs

from opencode_core.errors import ConfigError, Place
from opencode_core.model.json import JSON

__all__ = ["parse", "parse_object", "place_of"]

_DEEPEST = 100
_BLANK = re.compile(r"[ \t\r\n]+|//[^\r\n]*|/\*(?s:.*?)\*/")


def parse(text: str, file: str) -> JSON:
    """Reads one value, which may carry ``//`` and ``/* */`` comments, trailing commas and a byte order mark.

    Args:
        text: What to read.
        file: Where it comes from, for errors.

    Raises:
        ConfigError: It is not such a value, repeats a key, holds a number that is not finite, or is nested
            too deeply; with the line and column. Never quotes a value, which may be a secret.
    """
    return _Reader(text=text.removeprefix("\ufeff"), file=file).document()


def parse_object(text: str, file: str) -> Mapping[str, JSON]:
    """Reads as ``parse`` does, and requires an object at the top level.

    Raises:
        ConfigError: As ``parse``, or it is not an object.
    """
    reader = _Reader(text=text.removeprefix("\ufeff"), file=file)
    if reader.peek() != "{":
        reader.fail("it is not an object", "Put everything between '{' and '}'.")
    value = reader.document()
    assert isinstance(value, Mapping)
    return value


def place_of(text: str, at: int, file: str) -> Place:
    """The line and column of an offset, counted from 1."""
    return Place(file, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


@attrs.define(eq=False, kw_only=True)
class _Reader:
    """One pass over a text; ``at`` is where it has come to."""

    text: str
    file: str
    at: int = 0

    def document(self) -> JSON:
        value = self.value(0)
        if self.peek():
            self.fail("something follows the end of the value", "Remove it, or a bracket too many before it.")
        return value

    def value(self, depth: int) -> JSON:
        opening = self.peek()
        if depth > _DEEPEST:
            self.fail(f"it is nested more than {_DEEPEST} levels deep", "Make it flatter.")
        match opening:
            case "{":
                return self.members(depth + 1)
            case "[":
                return [self.value(depth + 1) for _ in self.items("]")]
            case _:
                return self.scalar()

    def members(self, depth: int) -> dict[str, JSON]:
        found: dict[str, JSON] = {}
        for _ in self.items("}"):
            key = self.key(found)
            if self.peek() != ":":
                self.fail("a ':' is missing after a key", "Write one.")
            self.at += 1
            found[key] = self.value(depth)
        return found

    def key(self, earlier: dict[str, JSON]) -> str:
        if self.peek() != '"':
            self.fail("a key in double quotes is missing", "Write one, or close the object.")
        start = self.at
        key = str(self.scalar())
        if key in earlier:
            self.at = start
            self.fail(f"the key '{key}' is given twice", "Remove one of the two.")
        return key

    def items(self, closing: str) -> Iterator[None]:
        """Stops at each item between two brackets; a comma may follow the last."""
        self.at += 1
        while self.peek() != closing:
            yield
            if self.peek() == ",":
                self.at += 1
            elif self.peek() != closing:
                self.fail(f"a ',' or '{closing}' is missing", "Write it, or check the brackets before.")
        self.at += 1

    def scalar(self) -> JSON:
        value: JSON
        try:
            value, self.at = _SCALARS.raw_decode(self.text, self.at)
        except json.JSONDecodeError as exc:
            self.fail_scalar(exc)
        except ValueError as exc:
            self.fail("a number is not finite or has too many digits", "Write another one, or a string.", exc)
        return value

    def peek(self) -> str:
        """The next character that is not blank or comment; empty at the end."""
        while blank := _BLANK.match(self.text, self.at):
            self.at = blank.end()
        return self.text[self.at : self.at + 1]

    def fail_scalar(self, exc: json.JSONDecodeError) -> NoReturn:
        if self.text[self.at : self.at + 1] != '"':
            self.fail("a value is missing, or is not one that JSON knows", "Write one.", exc)
        if exc.msg.startswith("Unterminated"):
            self.fail("a string is never closed", "Close it with a double quote.", exc)
        if exc.msg.startswith("Invalid control"):
            self.at = exc.pos
            self.fail("a string holds a control character", "Close the string, or write an escape.", exc)
        # Releases of Python differ in where they point inside an escape.
        self.at = self.text.rindex("\\", self.at, exc.pos + 1)
        self.fail("a string holds an escape that JSON does not know", "Write a backslash as two.", exc)

    def fail(self, what: str, remedy: str, cause: Exception | None = None) -> NoReturn:
        if self.text.startswith("/*", self.at):
            what, remedy = "a comment is never closed", "Close it with '*/'."
        place = place_of(self.text, self.at, self.file)
        raise ConfigError(f"'{place}' is not valid: {what}.", remedy, place=place) from cause


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


_SCALARS = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
