"""Tells people about one Context Epoch: its baseline, then system messages and turns in order, then its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import click

from opencode_core.cli.context.sources import Style, baseline_head, baseline_lines, change_lines
from opencode_core.cli.context.values import measured, moment, short_digest, wrapped
from opencode_core.cli.text import counted, one_line
from opencode_core.context.told import Cut, EndTold, EpochTold, MessageTold, Told, TurnTold, extent_of

REASONS: Final[Mapping[str, str]] = {
    "first": "the first of the session",
    "compaction": "after a compaction",
    "incompatible": "for a change that only a fresh baseline can tell",
    "moved": "after the session moved",
    "retracted": "after a system message was taken back",
}
"""Why an epoch begins, in words."""


def epoch_lines(epoch: EpochTold, style: Style) -> Iterator[str]:
    """Yields everything about one epoch."""
    began = f"#{epoch.sequence}", moment(epoch.at), REASONS.get(epoch.reason, one_line(epoch.reason))
    head = [click.style(f"Epoch {epoch.number}", bold=True), *began]
    yield from wrapped(head, indent="", hanging="  ", room=style.room)
    yield from baseline_head(epoch.baseline, style)
    yield from baseline_lines(epoch.sources, style, indent="    ", is_first=epoch.number == 1)
    yield from told_lines(epoch.told, style)
    yield from () if epoch.end is None else _end(epoch.end, style)


def told_lines(told: Iterable[Told], style: Style) -> Iterator[str]:
    """Yields system messages and turns, in order."""
    before: TurnTold | None = None
    for each in told:
        if isinstance(each, MessageTold):
            yield from _message(each, style)
        else:
            yield from _turn(each, before, style)
            before = each


def _message(message: MessageTold, style: Style) -> Iterator[str]:
    after = f"after turn {message.after}" if message.after else "before the first turn"
    sent = f", first sent with turn {message.sent}" if message.sent else ", not sent yet"
    if message.sent is None and message.retracted is not None:
        sent = ", never sent"
    cells = [
        click.style("system message", bold=True),
        f"#{message.sequence}",
        moment(message.at),
        after + sent,
        measured(extent_of(message.text)),
    ]
    if message.retracted is not None:
        cells.append(click.style(f"taken back at #{message.retracted}", fg="yellow"))
    yield from wrapped(cells, indent="  ", hanging="    ", room=style.room)
    for source in message.sources:
        yield from change_lines(source, style, indent="    ")


def _turn(turn: TurnTold, before: TurnTold | None, style: Style) -> Iterator[str]:
    attempt = f", attempt {turn.attempt}" if turn.attempt > 1 else ""
    cells = [
        click.style(f"turn {turn.number}{attempt}", bold=True),
        f"#{turn.sequence}",
        moment(turn.at),
        counted(turn.messages, "message"),
        _prefix(turn, before),
        f"digest {short_digest(turn.digest)}",
        *_asked(turn, before),
    ]
    if turn.outcome not in ("", "completed"):
        cells.append(click.style(one_line(turn.outcome), fg="yellow"))
    yield from wrapped(cells, indent="  ", hanging="    ", room=style.room)
    if turn.stable is False:
        yield from wrapped(_why_broken(turn, before), indent="    ", hanging="      ", room=style.room, gap=" ")


def _prefix(turn: TurnTold, before: TurnTold | None) -> str:
    digest = f"prefix {short_digest(turn.prefix)}"
    if turn.stable is None:
        return f"{digest}, {'the first of its epoch' if before is None else 'not measured'}"
    if turn.stable:
        return f"{digest}, " + click.style("stable", fg="green")
    return f"{digest}, " + click.style("BROKEN", fg="red", bold=True)


def _asked(turn: TurnTold, before: TurnTold | None) -> Iterator[str]:
    """Yields who was asked, where that is not the same as before."""
    if turn.agent and (before is None or turn.agent != before.agent):
        yield f"agent {one_line(turn.agent)}"
    if turn.model is not None and (before is None or turn.model != before.model):
        variant = f" ({one_line(turn.model.variant)})" if turn.model.variant else ""
        yield f"model {one_line(turn.model.provider)}/{one_line(turn.model.model)}{variant}"


def _why_broken(turn: TurnTold, before: TurnTold | None) -> Iterator[str]:
    """Yields it word by word."""
    number = "the one before" if before is None else f"turn {before.number}"
    yield click.style("THE PREFIX BROKE:", fg="red", bold=True)
    yield from f"it does not begin with what {number} sent, {short_digest(turn.expected)}.".split()
    yield from (f"Since then: {_counted_cuts(turn.cuts)}." if turn.cuts else "Nothing in the log says why.").split()


def _counted_cuts(cuts: Iterable[Cut]) -> str:
    places: dict[str, list[int]] = {}
    for each in cuts:
        places.setdefault(each.kind, []).append(each.sequence)
    return ", ".join(
        f"{kind} at #{found[0]}" + (f" and {len(found) - 1} more" if len(found) > 1 else "")
        for kind, found in places.items()
    )


def _end(end: EndTold, style: Style) -> Iterator[str]:
    cells = [click.style("ended", bold=True), f"#{end.sequence}", moment(end.at), _why_ended(end)]
    yield from wrapped(cells, indent="  ", hanging="    ", room=style.room)


def _why_ended(end: EndTold) -> str:
    if end.kind == "moved":
        return f"the session moved to '{one_line(end.directory)}'"
    if end.kind == "retracted":
        was = "was" if len(end.messages) == 1 else "were"
        how = "reverted" if end.reason == "revert" else "removed"
        return f"{counted(len(end.messages), 'system message')} that it had told {was} {how}"
    return f"replaced, {REASONS.get(end.reason, one_line(end.reason))}"
