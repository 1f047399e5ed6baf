"""Says what became of each source between what the model was told before and what it is told now. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opencode_core.context.told import ChangeKind, SourceTold
from opencode_core.model.context import Snapshot, SnapshotEntry, Texts
from opencode_core.model.event.session import TextSection
from opencode_core.model.json import same


def told_by_baseline(parts: Texts, snapshot: Snapshot, before: Snapshot) -> tuple[SourceTold, ...]:
    """Returns what each source has to do with a baseline: those in it in order, then those that are gone."""
    return _told(parts, {*snapshot, *before}, before, snapshot)


def told_by_update(parts: Texts, changed: Snapshot, removed: Iterable[str], before: Snapshot) -> tuple[SourceTold, ...]:
    """Returns what each source has to do with a system message, in the order of its text."""
    return _told(parts, {*changed, *removed}, before, changed)


def parts_of(text: str, sections: Iterable[TextSection]) -> Texts:
    """Returns which source rendered which text, from where it stands."""
    return tuple((each.key, text[max(each.start, 0) : max(each.end, 0)]) for each in sections)


def _told(parts: Texts, concerned: set[str], before: Snapshot, after: Snapshot) -> tuple[SourceTold, ...]:
    texts: dict[str, str] = {}
    for key, text in parts:
        texts[key] = texts.get(key, "") + text
    keys = [*texts, *sorted(concerned - texts.keys())]
    return tuple(_source(key, texts, before.get(key), after.get(key)) for key in keys)


def _source(
    key: str, texts: Mapping[str, str], before: SnapshotEntry | None, after: SnapshotEntry | None
) -> SourceTold:
    return SourceTold(key=key, change=_change(before, after), before=before, after=after, text=texts.get(key, ""))


def _change(before: SnapshotEntry | None, after: SnapshotEntry | None) -> ChangeKind:
    if after is None:
        return "removed"
    if before is None:
        return "new"
    return "unchanged" if same(before.value, after.value) else "changed"
