"""What a provider adapter offers: one request in, a stream of events out. Knows no session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from opencode_core.model.provider import ProviderRequest, StreamEvent


@runtime_checkable
class ProviderAdapter(Protocol):
    """Speaks one wire protocol.

    Laws: cancelling the iteration closes the connection at once; no secret reaches an error or a log.
    """

    @property
    def name(self) -> str:
        """What catalog entries call it, such as ``anthropic``."""
        ...

    def stream(self, request: ProviderRequest) -> AsyncIterator[StreamEvent]:
        """Sends the request and yields what comes back, in order."""
        ...
