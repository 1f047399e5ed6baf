"""What a child says that it did, and what is known of it afterwards. Reads no store.

A line is JSON: what happened, and to what. It is written in one go, only after the store has returned.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable
from typing import Any

import attrs

from opencode_core.model.codec import EVENTS as CODEC
from opencode_core.model.event.base import Recorded
from opencode_core.model.json import JSON
from opencode_core.storage.envelope import row_of

STDOUT = 1


def say(what: str, *about: JSON) -> None:
    """Tells the parent something, at once and whole."""
    line = (json.dumps([what, *about]) + "\n").encode()
    while line:
        line = line[os.write(STDOUT, line) :]


def say_recorded(recorded: Iterable[Recorded]) -> None:
    """Acknowledges what was appended."""
    say("appended", [[each.aggregate, each.sequence, each.id, check_of(row_of(each, CODEC))] for each in recorded])


def check_of(row: JSON) -> int:
    """Returns a number that is another one when the content is."""
    return zlib.crc32(json.dumps(row, sort_keys=True).encode())


@attrs.define
class Ledger:
    """Everything that was acknowledged and not taken back.

    Attributes:
        events: The id and the check of each event, by its log and its sequence.
        leaving: Logs that somebody began to remove.
        gone: Logs that are removed.
        counted: How many acknowledgements there were.
    """

    events: dict[str, dict[int, tuple[str, int]]] = attrs.field(factory=dict)
    leaving: set[str] = attrs.field(factory=set)
    gone: set[str] = attrs.field(factory=set)
    counted: int = 0

    def note(self, line: bytes) -> str:
        """Takes a line to the books and returns what kind it is; the rest of a killed child's last line is no line."""
        if not line.endswith(b"\n"):
            return ""
        what, *about = json.loads(line)
        if what == "appended":
            self._appended(about[0])
        elif what == "removing":
            self.leaving.add(about[0])
        elif what == "removed":
            self.gone.add(about[0])
            self.counted += 1
        return str(what)

    def settle(self, there: Iterable[str]) -> None:
        """Finds out what became of the removals that nobody acknowledged, now that the child is dead."""
        self.gone |= self.leaving - set(there)
        self.leaving.clear()
        for log in self.gone:
            self.events.pop(log, None)

    def _appended(self, events: list[list[Any]]) -> None:
        for log, sequence, id, check in events:
            self.events.setdefault(log, {})[sequence] = id, check
            self.counted += 1
