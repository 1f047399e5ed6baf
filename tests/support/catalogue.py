"""Reads the catalogue of behaviours. Never decides which of them a test shows."""

import re
from pathlib import Path

import attrs

PAGE = Path("docs", "behaviours.md")

_SECTION = re.compile(r"^## (?P<title>.+)$")
_ENTRY = re.compile(r"^- `(?P<id>[A-Z][A-Z0-9]*-\d+)` (?P<text>.+)$")


class BadCatalogue(Exception):
    """The page of behaviours cannot be used as a list; the message says which line, and why."""


@attrs.frozen(kw_only=True)
class Behaviour:
    """One numbered line of the catalogue."""

    id: str
    section: str
    text: str


def read_catalogue(root: Path) -> dict[str, Behaviour]:
    """Return the behaviours of the project at `root` by id, in the order of the page.

    Raises:
        BadCatalogue: The page is missing, or an id stands twice or before the first section.
    """
    page = root / PAGE
    try:
        lines = page.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as exc:
        raise BadCatalogue(f"'{page}' does not exist. It is the list of behaviours a test may name.") from exc
    return _parse(lines)


def _parse(lines: list[str]) -> dict[str, Behaviour]:
    section = ""
    found: dict[str, Behaviour] = {}
    for number, line in enumerate(lines, start=1):
        if heading := _SECTION.match(line):
            section = heading["title"]
        elif entry := _ENTRY.match(line):
            _refuse_misplaced(entry["id"], section, found, f"{PAGE}:{number}")
            found[entry["id"]] = Behaviour(id=entry["id"], section=section, text=entry["text"])
    return found


def _refuse_misplaced(id: str, section: str, found: dict[str, Behaviour], place: str) -> None:
    if not section:
        raise BadCatalogue(f"{place}: behaviour '{id}' stands before the first section. Move it down.")
    if id in found:
        raise BadCatalogue(f"{place}: behaviour '{id}' stands twice. Give the second its own number.")
