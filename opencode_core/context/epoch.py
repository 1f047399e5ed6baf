"""Decides what the Context Epoch of a session needs after an observation. Pure: observes and records nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, assert_never

import attrs

from opencode_core.context.reconcile import initialize, reconcile, replace
from opencode_core.context.standing import Reason, Standing
from opencode_core.errors import SourceFaultError
from opencode_core.model.context import Baseline, Observation, ReplacementBlocked, ReplacementReady, Unchanged, Updated


@attrs.frozen(kw_only=True)
class Begin:
    """A new epoch begins with this baseline."""

    baseline: Baseline
    reason: Reason
    because: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Admit:
    """The model is told what changed."""

    updated: Updated


@attrs.frozen(kw_only=True)
class Stay:
    """The model is told nothing new.

    Attributes:
        blocked: The sources that keep a fresh baseline from being made; empty when none is needed.
    """

    blocked: tuple[str, ...] = ()


Step: TypeAlias = Begin | Admit | Stay
OnSourceFault: TypeAlias = Callable[[SourceFaultError, str], None]
"""Is told what failed, and who contributes the source; empty when that is not known."""


def _ignore(_fault: SourceFaultError, _owner: str) -> None:
    return None


def decide(standing: Standing, observation: Observation, *, on_fault: OnSourceFault = _ignore) -> Step:
    """Returns what the epoch needs after an observation.

    A source that cannot be rendered or encoded counts as unavailable, and everybody else goes on.

    Raises:
        InitializationBlockedError: There is no epoch yet, and required sources are unavailable.
    """
    while True:
        try:
            return _decide(standing, observation)
        except SourceFaultError as fault:
            if fault.key not in observation.values or fault.key in observation.unavailable:
                raise  # it would never end
            on_fault(fault, observation.owners.get(fault.key, ""))
            observation = observation.without(fault.key, fault.problem)


def _decide(standing: Standing, observation: Observation) -> Step:
    epoch = standing.epoch
    if epoch is None:
        return Begin(baseline=initialize(observation), reason="first")
    blocked: tuple[str, ...] = ()
    if standing.is_due:
        replaced = replace(observation, epoch.snapshot)
        if isinstance(replaced, ReplacementReady):
            return Begin(baseline=replaced.baseline, reason="compaction")
        blocked = replaced.keys  # the old baseline stays in effect, and so do changes to it
    match reconcile(observation, epoch.snapshot):
        case Updated() as updated:
            return Admit(updated=updated)
        case ReplacementReady(baseline=baseline, because=because):
            return Begin(baseline=baseline, reason="incompatible", because=because)
        case ReplacementBlocked(keys=keys):
            return Stay(blocked=blocked or keys)
        case Unchanged():
            return Stay(blocked=blocked)
        case never:
            assert_never(never)
