"""Finds the files that people configured as instructions. Opens none, and fetches nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

import attrs

from plugin_sdk.text import shown
from plugins_builtin.instructions.globbing import expand, is_pattern
from plugins_builtin.instructions.problems import Problem
from plugins_builtin.instructions.scanning import Found, first_of, names_below


@attrs.frozen(kw_only=True)
class Bounded:
    """A file that was found, and the folder that it may not leave; None for no such bound."""

    found: Found
    inside: str | None = None


@attrs.frozen(kw_only=True)
class Configured:
    """What the entries name, in their order, and what is wrong with them."""

    files: tuple[Bounded, ...]
    problems: tuple[Problem, ...]


def is_address(entry: str) -> bool:
    """Whether an entry is an address of the web rather than a path."""
    return entry.lower().startswith(("http://", "https://"))


def find_configured(entries: Sequence[str], *, root: str, directory: str, home: str) -> Configured:
    """Returns the files that entries name.

    Args:
        entries: Paths and patterns. A relative one is looked for in every folder from the root down to the directory,
            and may not lead out of the project; one with ``~/`` begins at the person's home.
        root: The project's root, canonical.
        directory: The working directory, canonical.
        home: The person's home; empty when it is not known.

    Raises:
        PassingError: It cannot be told now.
    """
    files: list[Bounded] = []
    problems: list[Problem] = []
    for entry in entries:
        path = os.path.join(home, entry[2:]) if home and entry.startswith("~/") else entry
        folders = [""] if os.path.isabs(path) else _folders(root, directory)
        inside = None if os.path.isabs(path) else root
        found, troubles = _find(path, folders if _can_exist(path) else [])
        files += [Bounded(found=each, inside=inside) for each in found]
        problems += troubles
        if not found and not troubles:
            problems.append(_nothing(entry))
    return Configured(files=tuple(files), problems=tuple(problems))


def _can_exist(path: str) -> bool:
    try:
        return bool(path) and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _folders(root: str, directory: str) -> list[str]:
    """Returns every folder from the root down to the directory."""
    names = names_below(root, directory)
    if names is None:
        return []
    return [os.path.join(root, *names[:depth]) for depth in range(len(names) + 1)]


def _find(path: str, folders: Sequence[str]) -> tuple[list[Found], list[Problem]]:
    found: list[Found] = []
    problems: list[Problem] = []
    for folder in folders:
        names: tuple[str, ...] = (path,)
        if is_pattern(path):
            matches = expand(path, folder)
            names = matches.paths
            problems += matches.problems
            if not matches.is_complete:
                problems.append(_too_many(path))
        for name in names:
            seen = first_of((name,), partial(os.path.join, folder))
            if isinstance(seen, Problem):
                problems.append(seen)
            elif seen is not None:
                found.append(seen)
    return found, problems


def _nothing(entry: str) -> Problem:
    return Problem(
        text=f"The configured instructions '{shown(entry)}' name no file.",
        remedy="Correct the entry under 'instructions', or remove it.",
    )


def _too_many(entry: str) -> Problem:
    return Problem(
        text=f"The configured instructions '{shown(entry)}' name too many files; some are left out.",
        remedy="Name fewer under 'instructions', in a folder that holds little else.",
    )
