"""Why a message or an attempt failed, as it is stored. Raises nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs


@attrs.frozen(kw_only=True)
class AbortedFault:
    """Somebody stopped it."""

    message: str = ""


@attrs.frozen(kw_only=True)
class ProviderAuthFault:
    """The provider did not accept who asked."""

    provider: str
    message: str = ""


@attrs.frozen(kw_only=True)
class ApiFault:
    """The provider answered with an error."""

    message: str
    status: int | None = None
    retryable: bool = False
    headers: Mapping[str, str] | None = None
    body: str | None = None
    metadata: Mapping[str, str] | None = None


@attrs.frozen(kw_only=True)
class ContextOverflowFault:
    """The request was larger than the model can take."""

    message: str = ""
    body: str | None = None


@attrs.frozen(kw_only=True)
class OutputLengthFault:
    """The answer was cut because it reached the model's limit."""


@attrs.frozen(kw_only=True)
class StructuredOutputFault:
    """The answer did not fit the schema that was asked for, also after the retries."""

    message: str
    retries: int = 0


@attrs.frozen(kw_only=True)
class UnknownFault:
    """Anything else."""

    message: str = ""


Fault: TypeAlias = (
    AbortedFault
    | ProviderAuthFault
    | ApiFault
    | ContextOverflowFault
    | OutputLengthFault
    | StructuredOutputFault
    | UnknownFault
)
