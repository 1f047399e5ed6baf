"""Turns keys into the names of folders and files, and back. Touches no file.

A text that is safe everywhere stands as it is, as all of the first generation's do; what is not safe in it is
written ``%XX`` byte by byte, and the empty text is ``%``. A number is ``@12``. A name that grew too long ends in
``%`` and is continued one folder deeper by a name that begins with ``~``. A table's folder is named as the table is,
but for the one table whose name the first generation gave to the file with the number of the layout.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

from plugin_sdk.storage import InvalidKeyError, Key, check_table

SUFFIX = ".json"
VERSION_FILE = "migration"
LONGEST = 200

_UNSAFE = re.compile(r"[^A-Za-z0-9_.\-+=,@~!#$&'()\[\]{};^` ]|^[.@~ ]|[. ]\Z")
_PLAIN = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST}}}")
_EMPTY = "%"
_MORE = "%"
_CONTINUED = "~"
_ESCAPED_TABLE = "%6Digration"
_NUMBER = re.compile(r"@(0|-?[1-9][0-9]{0,18})")


def path_of_key(table: str, key: Key) -> tuple[str, ...]:
    """Returns the folders from the root of the store, and at the end the name of the file."""
    folders = [name for part in key[:-1] for name in names_of(part, folder=True)]
    *more, last = names_of(key[-1], folder=False)
    return (folder_of(table), *folders, *more, last + SUFFIX)


def path_of_prefix(table: str, prefix: Key) -> tuple[str, ...]:
    """Returns the folders from the root of the store in which all longer keys that begin with the prefix are."""
    return (folder_of(table), *(name for part in prefix for name in names_of(part, folder=True)))


def folder_of(table: str) -> str:
    """Returns the name of a table's folder."""
    return _ESCAPED_TABLE if table == VERSION_FILE else table


def table_in(folder: str) -> str | None:
    """Returns the table whose folder has a name, or None when no table's has."""
    if folder == _ESCAPED_TABLE:
        return VERSION_FILE
    try:
        return check_table(folder) if folder != VERSION_FILE else None
    except InvalidKeyError:
        return None


def names_of(part: str | int, *, folder: bool) -> tuple[str, ...]:
    """Returns the name of one part of a key; more than one when it is long."""
    if isinstance(part, int):
        return (f"@{part}",)
    if not part:
        return (_EMPTY,)
    name = _UNSAFE.sub(_escaped, part)
    if folder and name.endswith(SUFFIX):
        name = f"{name[: -len(SUFFIX)]}%2E{SUFFIX[1:]}"
    if len(name) <= LONGEST:
        return (name,)
    first, *rest = _pieces(name)
    pieces = [first, *(_CONTINUED + piece for piece in rest)]
    return (*(piece + _MORE for piece in pieces[:-1]), pieces[-1])


def part_of(names: Sequence[str], *, folder: bool) -> str | int | None:
    """Returns the part of a key that these names stand for, or None when no key is named so."""
    if len(names) == 1 and _PLAIN.fullmatch(names[0]):
        return names[0]  # nearly all are like this
    part = _decoded(names)
    # The check keeps two names from meaning one key.
    return part if part is not None and names_of(part, folder=folder) == tuple(names) else None


def is_continued(name: str) -> bool:
    """Whether a folder's name is only the beginning of a longer one."""
    return name.endswith(_MORE) and name != _EMPTY


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def _pieces(name: str) -> list[str]:
    pieces: list[str] = []
    piece = ""
    for unit in re.findall(r"%[0-9A-F]{2}|[^%]", name):
        if len(piece) + len(unit) > LONGEST:
            pieces.append(piece)
            piece = ""
        piece += unit
    return [*pieces, piece]


def _decoded(names: Sequence[str]) -> str | int | None:
    if (number := _NUMBER.fullmatch(names[0])) and len(names) == 1:
        return int(number[1])
    if tuple(names) == (_EMPTY,):
        return ""
    whole = "".join(
        name.removeprefix(_CONTINUED if at else "").removesuffix(_MORE if at < len(names) - 1 else "")
        for at, name in enumerate(names)
    )
    try:
        return unquote_to_bytes(whole).decode()
    except UnicodeDecodeError:
        return None
