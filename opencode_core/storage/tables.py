"""Names the tables of the log. The rows of sessions are named in `opencode_core.model.rows`."""

from __future__ import annotations

from typing import Final

EVENTS: Final = "event"  # (aggregate, sequence): one event
EVENT_IDS: Final = "event_id"  # (event id,): whose, and where; only of ids that do not prove it themselves
HEADS: Final = "head"  # (aggregate,): the last sequence, and the owner if there is one
STORE: Final = "store"  # (name,): what is known of the store itself
