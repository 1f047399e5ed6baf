"""Reads a skill out of Markdown. The head is data, and all of it text: nothing in it is computed or expanded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from plugin_sdk import Skill

LONGEST_HEAD = 8_192
MOST_BRACKETS = 100
LONGEST_NAME = 100

_NAME = re.compile(r"[^\s/][^\s]*")
_PAIR = re.compile(r"(?P<key>[A-Za-z_][\w-]*):[ \t]+(?P<value>[^\s'\"\[{|>&*!%@`#].*)")


class NotASkill(Exception):
    """Markdown that is no skill; its text says why, to be read after "it"."""


def parse_skill(text: str, *, name: str, directory: str, is_folder: bool) -> Skill:
    """Returns the skill that a Markdown file holds.

    Args:
        text: The file.
        name: What it is called if its head does not say so; empty when the head must.
        directory: The folder it is in.
        is_folder: Whether the other files in that folder belong to it.

    Raises:
        NotASkill: Its head cannot be read, or does not name it as it should.
    """
    head, body = _split(text)
    return Skill(
        name=_checked_name(_text(head, "name") or name),
        body=body,
        description=_text(head, "description"),
        directory=directory,
        is_folder=is_folder,
        slash=_text(head, "slash").lower() in ("true", "yes", "on"),
    )


def _split(text: str) -> tuple[Mapping[str, Any], str]:
    from frontmatter.default_handlers import YAMLHandler

    handler, text = YAMLHandler(), text.removeprefix("\ufeff").strip()
    if not handler.detect(text):
        return {}, text
    try:
        head, body = handler.split(text)
    except ValueError:
        raise NotASkill("has a head that never ends") from None
    return _mapping(head), body.strip()


def _mapping(head: str) -> Mapping[str, Any]:
    if len(head) > LONGEST_HEAD:
        raise NotASkill(f"has a head of more than {LONGEST_HEAD:,} characters")
    if head.count("[") + head.count("{") > MOST_BRACKETS:  # the time to read them grows with their square
        raise NotASkill(f"has a head with more than {MOST_BRACKETS} brackets")
    try:
        values = _loaded(head)
    except RecursionError:
        raise NotASkill("has a head that is nested too deeply") from None
    except Exception:  # of the library's many errors, none is about anything but this text
        try:
            # Most people write `description: Use it when: ...` without quotes, which is not YAML.
            values = _loaded("\n".join(_with_blocks(head)))
        except Exception:
            raise NotASkill("has a head that is not YAML") from None
    if values in (None, ""):
        return {}
    if not isinstance(values, Mapping):
        raise NotASkill("has a head that is not a list of names with values")
    return values


def _loaded(head: str) -> Any:
    import yaml  # type: ignore[import-untyped]
    from frontmatter.default_handlers import YAMLHandler

    # Not the library's own loader, which is written in C: a head of many brackets overflows its stack and ends the
    # process. This one also leaves every value the text it is, and joins no aliases, which can grow without bounds.
    return YAMLHandler().load(head, Loader=yaml.BaseLoader)


def _with_blocks(head: str) -> Iterator[str]:
    for line in head.splitlines():
        pair = _PAIR.fullmatch(line.rstrip())
        if pair and ":" in pair["value"]:
            yield f"{pair['key']}: |-"
            yield f"  {pair['value']}"
        else:
            yield line


def _text(head: Mapping[str, Any], key: str) -> str:
    value = head.get(key, "")
    if not isinstance(value, str):
        raise NotASkill(f"has a '{key}' that is not a text")
    return value.strip()


def _checked_name(name: str) -> str:
    if not name:
        raise NotASkill("has no 'name' in its head")
    if len(name) > LONGEST_NAME or not name.isprintable() or not _NAME.fullmatch(name):
        raise NotASkill("has a name with white space, with a slash before it, or of more than 100 characters")
    return name
