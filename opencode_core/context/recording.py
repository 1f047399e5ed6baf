"""Records what became of a Context Epoch, inside the caller's transaction. Decides nothing.

The snapshot and the Mid-Conversation System Message advance together, with whatever else is recorded there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from opencode_core.context.epoch import Admit, Begin
from opencode_core.context.reconcile import SEPARATOR
from opencode_core.context.standing import Reason
from opencode_core.model.context import Texts
from opencode_core.model.event.session import ContextAdmitted, EpochStarted, SessionMoved, TextSection
from opencode_core.storage.tables import EVENTS
from opencode_core.storage.writer import Writer


def record(writer: Writer, session: str, step: Begin | Admit, *, at: int, message: str) -> None:
    """Appends what was decided; the snapshot advances with it.

    Args:
        writer: The transaction.
        session: The session.
        step: What was decided.
        at: The time.
        message: The id that a system message gets.
    """
    match step:
        case Begin(baseline=baseline, reason=reason):
            # Whatever was told before now is in the baseline, in its newest form.
            writer.append(
                EpochStarted(
                    session=session,
                    at=at,
                    baseline=baseline.text,
                    sections=sections_of(baseline.parts),
                    snapshot=baseline.snapshot,
                    since=writer.head(session),
                    reason=_why_none(writer, session) if reason == "first" else reason,
                )
            )
        case Admit(updated=updated):
            writer.append(
                ContextAdmitted(
                    session=session,
                    at=at,
                    message=message,
                    text=updated.text,
                    sections=sections_of(updated.parts),
                    changed=updated.changed,
                    removed=updated.removed,
                )
            )


def sections_of(parts: Texts) -> tuple[TextSection, ...]:
    """Returns which stretch of the joined text each source rendered."""
    sections: list[TextSection] = []
    start = 0
    for key, text in parts:
        sections.append(TextSection(key=key, start=start, end=start + len(text)))
        start += len(text) + len(SEPARATOR)
    return tuple(sections)


def _why_none(writer: Writer, session: str) -> Reason:
    """Returns why a session has no epoch: it never had one, it moved, or what the model was told was taken back."""
    for _, row in writer.rows.scan(EVENTS, (session,), reverse=True):
        match str(cast("Mapping[str, Any]", row).get("type")).partition("/")[0]:
            case SessionMoved.kind.type:
                return "moved"
            case EpochStarted.kind.type:
                return "retracted"
    return "first"
