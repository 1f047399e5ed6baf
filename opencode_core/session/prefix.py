"""Measures what a request has in common with the one before it, so that a broken provider-cache prefix shows.

Each message is folded into the digest of everything before it. Measures nothing of any provider's wire format.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import attrs

from opencode_core.model.json import JSON, plain


@attrs.frozen(kw_only=True)
class Measured:
    """What is remembered of a request.

    Attributes:
        messages: How many messages it has.
        digest: The digest of the system text and all messages.
        prefix: The digest of the system text and as many messages as the request before had; empty for a first one, or
            when there are fewer now.
    """

    messages: int
    digest: str
    prefix: str = ""


def measure(system: str, messages: Sequence[JSON], before: Measured | None = None) -> Measured:
    """Measures a request; it continues the one before it exactly if its prefix is that one's digest."""
    digest = hashlib.sha256(system.encode("utf-8", "surrogatepass")).hexdigest()
    shared = digest if before is not None and before.messages == 0 else ""
    for number, message in enumerate(messages, 1):
        text = json.dumps(plain(message), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        digest = hashlib.sha256(f"{digest}\n{text}".encode()).hexdigest()
        if before is not None and before.messages == number:
            shared = digest
    return Measured(messages=len(messages), digest=digest, prefix=shared)
