"""Shows what a first baseline would be made of, and what keeps it from being made. Begins no epoch."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from opencode_core.context.epoch import Begin, decide
from opencode_core.context.standing import Standing
from opencode_core.errors import SourceFaultError
from opencode_core.model.context import Baseline, Observation

SourceState: TypeAlias = Literal["told", "unavailable", "faulty", "absent"]


@attrs.frozen(kw_only=True)
class SourcePreview:
    """What one source would tell, or why it tells nothing.

    Attributes:
        key: The source.
        owner: Who contributes it; empty when that is not known.
        state: Whether it is told, unavailable, cannot be rendered or encoded, or has nothing to tell.
        required: Whether a first baseline waits for it; None for one that has nothing to tell.
        text: What it tells.
        reason: Why it is unavailable, or what is wrong with it.
    """

    key: str
    owner: str
    state: SourceState
    required: bool | None = None
    text: str = ""
    reason: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether it has something to tell and cannot."""
        return self.state in ("unavailable", "faulty")


@attrs.frozen(kw_only=True)
class Preview:
    """A first baseline, as it would be now.

    Attributes:
        text: The exact text; as far as it goes, when it is blocked.
        sources: Every source: in the order of the text, then those that have nothing to tell.
    """

    text: str
    sources: tuple[SourcePreview, ...]

    @property
    def missing(self) -> tuple[SourcePreview, ...]:
        """The sources that have something to tell and cannot."""
        return tuple(each for each in self.sources if each.is_missing)

    @property
    def blocked(self) -> tuple[str, ...]:
        """The keys of those that a first turn would wait for."""
        return tuple(each.key for each in self.missing if each.required)


def preview(observation: Observation) -> Preview:
    """Renders a first baseline as far as it goes; one source that fails hides no other."""
    baseline, faults = _rendered(observation)
    texts = dict(baseline.parts)
    sources = [
        SourcePreview(
            key=source.key,
            owner=observation.owners.get(source.key, ""),
            state="told" if source.key in texts else "faulty" if source.key in faults else "unavailable",
            required=source.required,
            text=texts.get(source.key, ""),
            reason="" if source.key in texts else faults.get(source.key) or observation.reasons.get(source.key, ""),
        )
        for source in observation.sources
    ]
    absent = sorted(key for key in observation.owners if key not in observation.values)
    sources += [SourcePreview(key=key, owner=observation.owners[key], state="absent") for key in absent]
    return Preview(text=baseline.text, sources=tuple(sources))


def _rendered(observation: Observation) -> tuple[Baseline, dict[str, str]]:
    """Renders everything that can be, as if nothing were required, and says what is wrong with what cannot."""
    faults: dict[str, str] = {}

    def on_fault(fault: SourceFaultError, _owner: str) -> None:
        faults[fault.key] = fault.problem

    lenient = attrs.evolve(
        observation, sources=tuple(attrs.evolve(source, required=False) for source in observation.sources)
    )
    step = decide(Standing(epoch=None), lenient, on_fault=on_fault)
    assert isinstance(step, Begin)
    return step.baseline, faults
