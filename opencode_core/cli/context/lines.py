"""Tells people about one session, line by line. Prints nothing itself."""

from __future__ import annotations

from collections.abc import Iterator

import click

from opencode_core.cli.context.epochs import epoch_lines, told_lines
from opencode_core.cli.context.looking import Seen
from opencode_core.cli.context.now import now_lines
from opencode_core.cli.context.sources import Style
from opencode_core.cli.context.values import value
from opencode_core.cli.text import columns, counted, one_line
from opencode_core.context.told import Explanation
from opencode_core.model.context import Snapshot


def session_lines(seen: Seen, *, full: bool, room: int, debug: bool) -> Iterator[str]:
    """Yields what a session was told, epoch by epoch, then what it would be told now."""
    style, explanation = Style(room=room, full=full), seen.explanation
    yield from _head(seen)
    for epoch in explanation.epochs:
        yield ""
        yield from epoch_lines(epoch, style)
    if explanation.outside:
        yield ""
        yield click.style("Outside of any epoch, which should not be", fg="red", bold=True)
        yield from told_lines(explanation.outside, style)
    yield ""
    yield from _snapshot(explanation, style)
    yield ""
    yield from now_lines(seen.now, seen.session.directory, style, debug=debug)


def _head(seen: Seen) -> Iterator[str]:
    session, explanation = seen.session, seen.explanation
    yield click.style(f"Session {one_line(session.id)}", bold=True)
    model = session.model
    rows = [
        ("title", session.title),
        ("directory", session.directory),
        ("agent", session.agent or "-"),
        ("model", "-" if model is None else f"{model.provider}/{model.model}"),
        ("store", seen.store),
        ("log", _counts(explanation)),
    ]
    yield from columns(rows, indent="  ")
    if not explanation.epochs:
        yield f"It has no Context Epoch: {_why_none(explanation)}"


def _counts(explanation: Explanation) -> str:
    epochs = explanation.epochs
    turns = {turn.number for epoch in epochs for turn in epoch.turns}
    messages = sum(len(epoch.messages) for epoch in epochs)
    broken = sum(turn.stable is False for epoch in epochs for turn in epoch.turns)
    counts = [
        counted(explanation.head + 1, "event"),
        counted(len(epochs), "epoch"),
        counted(len(turns), "turn"),
        counted(messages, "system message"),
        *([f"the prefix broke {counted(broken, 'time')}"] if broken else []),
    ]
    return ", ".join(counts)


def _why_none(explanation: Explanation) -> str:
    match explanation.origin:
        case "created":
            return "no turn was started yet."
        case "imported":
            return "it came from elsewhere, and no turn was started here."
        case _:
            return "it is of the first generation, and was never continued here."


def _snapshot(explanation: Explanation, style: Style) -> Iterator[str]:
    snapshot: Snapshot = explanation.snapshot
    stands = bool(explanation.epochs) and explanation.epochs[-1].end is None
    what = f"what the model was last told of {counted(len(snapshot), 'source')}" if stands else "none: no epoch stands"
    yield click.style("Snapshot", bold=True) + f"  {what}"
    for key in sorted(snapshot):
        name = f"  {one_line(key)}  "
        yield name + value(snapshot[key], style.room - len(name))
