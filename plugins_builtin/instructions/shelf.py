"""Keeps copies of what addresses hold, in files of the person's own. Fetches nothing.

A copy that is damaged counts as none. A file is replaced as a whole, so that nobody ever reads half of one.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs

from plugin_sdk.http import without_secrets

_LAYOUT = 1
_LONGEST_ETAG = 1_024


def _sendable(etag: str) -> str:
    return etag if etag.isascii() and etag.isprintable() and len(etag) <= _LONGEST_ETAG else ""


@attrs.frozen(kw_only=True)
class Copy:
    """What an address held.

    Attributes:
        text: The content.
        etag: The server's name of that version; empty when it gave none, or none that can be sent back to it.
        fetched: When the server last said that this is what it holds.
    """

    text: str
    etag: str = attrs.field(default="", converter=_sendable)
    fetched: datetime


@attrs.frozen(kw_only=True)
class Shelf:
    """The copies in a folder.

    Attributes:
        folder: The folder; made when it is first needed.
        limit: How many bytes the content of a copy may have.
    """

    folder: Path
    limit: int

    def path(self, url: str) -> Path:
        """Returns where the copy of an address is, or would be."""
        return self.folder / f"{_digest(url)}.json"

    def get(self, url: str) -> Copy | None:
        """Returns the copy of an address; None when there is none that is whole."""
        try:
            with open(self.path(url), "rb") as file:
                # As JSON, a byte takes six at most.
                stored = file.read(6 * self.limit + 65_536)
            return self._copy(url, json.loads(stored))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def put(self, url: str, copy: Copy) -> None:
        """Keeps a copy, for nobody but the person to read.

        Raises:
            OSError: It cannot be kept.
        """
        document = {
            "layout": _LAYOUT,
            "address": _digest(url),
            "url": without_secrets(url),  # for people who look into the folder
            "etag": copy.etag,
            "fetched": copy.fetched.isoformat(),
            "digest": _digest(copy.text),
            "text": copy.text,
        }
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chmod(self.folder, 0o700)
        descriptor, fresh = tempfile.mkstemp(dir=self.folder, prefix=".new-")
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                json.dump(document, file)
            os.replace(fresh, self.path(url))
        except BaseException:
            with suppress(OSError):
                os.unlink(fresh)
            raise

    def drop(self, url: str) -> None:
        """Forgets the copy of an address.

        Raises:
            OSError: It cannot be removed.
        """
        self.path(url).unlink(missing_ok=True)

    def _copy(self, url: str, document: Any) -> Copy | None:
        if not isinstance(document, Mapping) or document["layout"] != _LAYOUT or document["address"] != _digest(url):
            return None
        text, etag = document["text"], document["etag"]
        fetched = datetime.fromisoformat(document["fetched"])
        if not isinstance(text, str) or not isinstance(etag, str) or fetched.tzinfo is None:
            return None
        if _digest(text) != document["digest"] or len(text.encode()) > self.limit:
            return None
        return Copy(text=text, etag=etag, fetched=fetched)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
