"""Reads the index of a remote folder of skills. Refuses every skill that could reach beyond its own folder.

A stranger writes the index, and its names become paths on this disk and addresses on that server. So a name is accepted
only when it cannot mean anything but itself in either: whatever would have to be decoded, resolved or escaped first is
refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import attrs

MOST_SKILLS = 200
MOST_FILES = 100
MARK = ".opencode-skill.json"
"""The file beside those of a skill that says which version they are; no skill may bring one."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SEGMENT = re.compile(r"[A-Za-z0-9_.@+=,()\[\] ~-]{1,100}")
_LONGEST_PATH = 400


@attrs.frozen(kw_only=True)
class Listed:
    """One skill of an index.

    Attributes:
        name: Its name, and that of its folder.
        files: The files in that folder, relative to it, sorted.
        version: Changes when they do; None when the index does not say.
    """

    name: str
    files: tuple[str, ...]
    version: str | None = None

    @property
    def entry(self) -> str:
        """The file that holds its body."""
        return "SKILL.md" if "SKILL.md" in self.files else f"{self.name}.md"


@attrs.frozen(kw_only=True)
class Refusal:
    """A skill of an index that is not fetched: what it is called, as it may be shown, and why not."""

    name: str
    reason: str


@attrs.frozen(kw_only=True)
class Index:
    """What an index lists: the skills that may be fetched, by name, and those that are refused."""

    skills: Mapping[str, Listed]
    refused: tuple[Refusal, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The name of every skill that it lists, refused or not."""
        return frozenset((*self.skills, *(each.name for each in self.refused)))


class NotAnIndex(Exception):
    """What is no index; its text says why, to be read after "it"."""


class _Refused(Exception):
    """A skill that is not to be fetched; its text says why."""


def parse_index(content: bytes) -> Index:
    """Reads an index.

    Raises:
        NotAnIndex: It is not one.
    """
    entries = _entries(content)
    skills: dict[str, Listed] = {}
    refused: list[Refusal] = []
    taken: set[str] = set()
    for entry in entries:
        try:
            listed = _listed(entry)
            if listed.name.casefold() in taken:
                raise _Refused("its name is listed twice")
        except _Refused as error:
            refused.append(Refusal(name=_shown(entry), reason=str(error)))
        else:
            taken.add(listed.name.casefold())
            skills[listed.name] = listed
    return Index(skills=dict(sorted(skills.items())), refused=tuple(refused))


def _entries(content: bytes) -> Sequence[Any]:
    try:
        index = json.loads(content)
    except (ValueError, RecursionError):
        raise NotAnIndex("is not JSON") from None
    entries = index.get("skills") if isinstance(index, Mapping) else None
    if not isinstance(entries, list):
        raise NotAnIndex("has no list called 'skills'")
    if len(entries) > MOST_SKILLS:
        raise NotAnIndex(f"lists more than {MOST_SKILLS} skills")
    return entries


def _listed(entry: Any) -> Listed:
    if not isinstance(entry, Mapping):
        raise _Refused("it is not an object")
    name, files, version = entry.get("name"), entry.get("files"), entry.get("version")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _Refused("its name is not made of letters, digits, '.', '_' and '-', at most 64")
    if version is not None and (isinstance(version, bool) or not isinstance(version, str | int)):
        raise _Refused("its version is neither a text nor a number")
    if not isinstance(files, list) or not 0 < len(files) <= MOST_FILES:
        raise _Refused(f"its files are not a list of 1 to {MOST_FILES} paths")
    listed = Listed(name=name, files=_checked(files), version=None if version is None else str(version))
    if listed.entry not in listed.files:
        raise _Refused(f"its files hold neither 'SKILL.md' nor '{name}.md'")
    return listed


def _checked(files: Iterable[Any]) -> tuple[str, ...]:
    paths: set[str] = set()
    for path in files:
        if not isinstance(path, str) or not _is_plain(path):
            raise _Refused("one of its files is not a plain path inside its folder")
        if path.casefold() in paths:
            raise _Refused("one of its files is listed twice")
        paths.add(path.casefold())
    if any(str(parent) in paths for path in paths for parent in PurePosixPath(path).parents):
        raise _Refused("one of its files would have to be a folder, too")
    return tuple(sorted(files))


def _is_plain(path: str) -> bool:
    """Whether a path is relative, without detours, and reads the same on every system and in every address."""
    segments = path.split("/")
    return len(path) <= _LONGEST_PATH and segments[0].casefold() != MARK and all(map(_is_segment, segments))


def _is_segment(text: str) -> bool:
    # Windows drops dots and spaces at an end; and what ends with no dot is neither '.' nor '..'.
    return _SEGMENT.fullmatch(text) is not None and text == text.strip(" ").rstrip(".")


def _shown(entry: Any) -> str:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    if not isinstance(name, str):
        return "?"
    return "".join(char if char.isprintable() else "?" for char in name[:64])
