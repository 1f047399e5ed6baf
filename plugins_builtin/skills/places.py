"""Says where skills are looked for, in order. Looks into none of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import attrs

from plugin_sdk import HostFacts, Location
from plugins_builtin.skills.descending import CONFIGURATION

FOLDERS = ("skill", "skills")
"""What a configuration directory calls its folders of skills."""


@attrs.frozen(kw_only=True)
class Folder:
    """A folder with skills in it, which need not exist.

    Attributes:
        path: Where it is.
        inside: What neither it nor anything in it may lead out of; None when it may lead anywhere.
        holder: The project folder whose configuration it belongs to; empty when the person named it.
    """

    path: Path
    inside: Path | None = None
    holder: str = ""


@attrs.frozen(kw_only=True)
class Address:
    """The address of a web server's folder with skills in it; ends with a slash, and may hold a secret."""

    url: str = attrs.field(repr=False)


Place: TypeAlias = Folder | Address
Warn: TypeAlias = Callable[[str, str], None]


def list_places(location: Location, host: HostFacts, entries: Iterable[str], warn: Warn) -> tuple[Place, ...]:
    """Returns where skills are looked for, each place once, where it was first named; what is later has priority.

    Args:
        location: Where sessions run.
        host: Whose configuration directory counts, and whose home ``~/`` is.
        entries: The configured places: folders, relative to the Location, and addresses.
        warn: Is told of an entry that is neither.
    """
    places: list[Place] = [Folder(path=host.config_dir / name) for name in FOLDERS]
    places += [
        Folder(path=folder / CONFIGURATION / name, inside=location.root, holder=str(folder))
        for folder in location.folders
        for name in FOLDERS
    ]
    places += [place for entry in entries for place in _named(entry, location, host, warn)]
    return tuple(dict.fromkeys(places))


def _named(entry: str, location: Location, host: HostFacts, warn: Warn) -> Iterator[Place]:
    if re.match(r"https?://", entry, re.IGNORECASE):
        yield Address(url=entry.partition("#")[0].partition("?")[0].rstrip("/") + "/")
        return
    path = _path(entry, location, host)
    if path is None:
        problem = "An entry of the key 'skills' is neither a folder nor an http or https address."
        warn(problem, "Write a path, or an address that begins with https://.")
        return
    # What lies in the project is the project's: a link in it could otherwise show the model any file of the person.
    yield Folder(path=path, inside=location.root if path.is_relative_to(location.root) else None)


def _path(entry: str, location: Location, host: HostFacts) -> Path | None:
    if not entry.strip() or "\0" in entry or re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", entry):
        return None
    if entry.startswith("~/") and host.home is None:
        return None
    return Path(os.path.normpath(host.located(entry, location.directory)))
