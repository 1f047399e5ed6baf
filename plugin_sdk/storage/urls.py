"""Reads storage URLs, and shows them without their secrets. Opens nothing.

A file store is named by ``scheme:///absolute/path`` or ``scheme:relative/path``; ``?name=value`` switches follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from opencode_core.errors import StorageUrlError
from opencode_core.storage.urls import shown

__all__ = ["path_of", "shown", "switches_of"]


def path_of(url: str) -> Path:
    """Returns the file or folder that a URL names; ``~`` is the person's home.

    Raises:
        StorageUrlError: It names none, or a host.
    """
    scheme, _, rest = url.partition(":")
    rest = rest.partition("?")[0]
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host:
            raise StorageUrlError(
                f"The storage URL '{shown(url)}' names a host, but a {scheme} store is a path.",
                f"Write three slashes before an absolute path, as in '{scheme}:///home/me/opencode.{scheme}'.",
            )
        rest = slash + path
    path = unquote(rest)
    if path in ("", "/") or "\0" in path:
        raise StorageUrlError(
            f"The storage URL '{shown(url)}' names no path.", f"Write it like '{scheme}:///home/me/opencode.{scheme}'."
        )
    if path.startswith("//"):  # four slashes before an absolute path are the custom elsewhere
        path = "/" + path.lstrip("/")
    if path.startswith("/~"):
        path = path[1:]
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise StorageUrlError(f"The home folder in '{shown(url)}' is not known.", "Write the whole path.") from error


def switches_of(url: str, *, known: Mapping[str, str]) -> dict[str, str]:
    """Returns what stands behind the question mark, over the known names and their defaults.

    Raises:
        StorageUrlError: A name is not known, or comes twice.
    """
    scheme = url.partition(":")[0]
    found: dict[str, str] = {}
    for name, value in parse_qsl(url.partition("?")[2].partition("#")[0], keep_blank_values=True):
        if name not in known or name in found:
            what = "has no switch" if name not in known else "has twice the switch"
            remedy = f"A {scheme} store knows: {', '.join(sorted(known))}." if known else "Leave it out."
            raise StorageUrlError(f"The storage URL '{shown(url)}' {what} '{name}'.", remedy)
        found[name] = value
    return {**known, **found}
