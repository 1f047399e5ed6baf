"""The JSON that the context commands print, for programs. Leaves nothing out, and shortens nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from opencode_core.cli.context.looking import Now, Seen, words
from opencode_core.cli.context.warned import warning_documents
from opencode_core.context.told import (
    EndTold,
    EpochTold,
    Extent,
    MessageTold,
    SourceTold,
    TurnTold,
    extent_of,
    messages_in,
    turns_in,
)
from opencode_core.model.context import SnapshotEntry

if TYPE_CHECKING:
    from opencode_core.cli.context.preview import Previewed
    from opencode_core.context.preview import SourcePreview
    from opencode_core.model.session import ModelChoice

STEPS = {"Begin": "begin", "Admit": "admit", "Stay": "stay"}


def preview_document(previewed: Previewed) -> dict[str, Any]:
    """Returns a preview; there is no digest of a baseline that would not be made."""
    preview = previewed.preview
    extent = extent_of(preview.text)
    return {
        "directory": previewed.directory,
        "agent": {"name": previewed.agent, "defined": previewed.is_defined},
        "complete": not preview.missing,
        "blocked": list(preview.blocked),
        **_extent(extent),
        "digest": None if preview.blocked else extent.digest,
        "text": preview.text,
        "sources": [_preview_source(each) for each in preview.sources],
        "warnings": warning_documents(previewed.warnings),
    }


def session_document(seen: Seen) -> dict[str, Any]:
    """Returns everything about one session."""
    session, explanation = seen.session, seen.explanation
    return {
        "session": {
            "id": session.id,
            "title": session.title,
            "directory": session.directory,
            "agent": session.agent,
            "model": _model(session.model),
        },
        "store": seen.store,
        "head": explanation.head,
        "origin": explanation.origin or None,
        "epochs": [_epoch(each) for each in explanation.epochs],
        "outside": {
            "messages": [_message(each) for each in messages_in(explanation.outside)],
            "turns": [_turn(each) for each in turns_in(explanation.outside)],
        },
        "snapshot": {key: _entry(entry) for key, entry in sorted(explanation.snapshot.items())},
        "now": _now(seen.now),
    }


def _preview_source(source: SourcePreview) -> dict[str, Any]:
    return {
        "key": source.key,
        "owner": source.owner or None,
        "state": source.state,
        "required": source.required,
        "reason": source.reason or None,
        **_extent(extent_of(source.text)),
        "text": source.text,
    }


def _epoch(epoch: EpochTold) -> dict[str, Any]:
    return {
        "number": epoch.number,
        "sequence": epoch.sequence,
        "at": epoch.at,
        "reason": epoch.reason,
        "since": epoch.since,
        **_extent(extent_of(epoch.baseline)),
        "digest": extent_of(epoch.baseline).digest,
        "text": epoch.baseline,
        "sources": [_source(each) for each in epoch.sources],
        "messages": [_message(each) for each in epoch.messages],
        "turns": [_turn(each) for each in epoch.turns],
        "end": None if epoch.end is None else _end(epoch.end),
    }


def _end(end: EndTold) -> dict[str, Any]:
    return {
        "kind": end.kind,
        "sequence": end.sequence,
        "at": end.at,
        "reason": end.reason or None,
        "directory": end.directory or None,
        "messages": list(end.messages),
    }


def _message(message: MessageTold) -> dict[str, Any]:
    return {
        "id": message.id,
        "sequence": message.sequence,
        "at": message.at,
        "after_turn": message.after,
        "sent_with_turn": message.sent,
        "retracted_at": message.retracted,
        **_extent(extent_of(message.text)),
        "digest": extent_of(message.text).digest,
        "text": message.text,
        "sources": [_source(each) for each in message.sources],
    }


def _turn(turn: TurnTold) -> dict[str, Any]:
    fields = attrs.asdict(turn, recurse=False)
    fields["model"] = _model(turn.model)
    fields["cuts"] = [attrs.asdict(each) for each in turn.cuts]
    for name in ("digest", "prefix", "expected", "outcome"):
        fields[name] = fields[name] or None
    return fields


def _now(now: Now) -> dict[str, Any]:
    extent = extent_of(now.text)
    problem, remedy = (None, None) if now.error is None else words(now.error)
    return {
        "agent": now.agent or None,
        "prompts": now.prompts,
        "step": None if now.step is None else STEPS[type(now.step).__name__],
        "reason": now.reason or None,
        "because": list(getattr(now.step, "because", ())),
        "blocked": list(getattr(now.step, "blocked", ())),
        **_extent(extent),
        "digest": extent.digest if now.text else None,
        "text": now.text,
        "sources": [_source(each, now.owners) for each in now.sources],
        "unavailable": [attrs.asdict(each) for each in now.missing],
        "problem": problem,
        "remedy": remedy,
        "warnings": warning_documents(now.warnings),
    }


def _source(source: SourceTold, owners: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {
        "key": source.key,
        **({} if owners is None else {"owner": owners.get(source.key)}),
        "change": source.change,
        "before": _entry(source.before),
        "after": _entry(source.after),
        **_extent(extent_of(source.text)),
        "text": source.text,
    }


def _entry(entry: SnapshotEntry | None) -> dict[str, Any] | None:
    return None if entry is None else {"value": entry.value, "removed": entry.removed}


def _extent(extent: Extent) -> dict[str, Any]:
    return {"bytes": extent.bytes, "tokens": extent.tokens}


def _model(model: ModelChoice | None) -> dict[str, Any] | None:
    return None if model is None else {"provider": model.provider, "model": model.model, "variant": model.variant}
