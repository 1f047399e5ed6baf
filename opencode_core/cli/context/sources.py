"""Tells people what one source had to do with a text. Knows nothing of epochs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import attrs

from opencode_core.cli.context.values import compared, gist, measured, short_digest, texts, wrapped
from opencode_core.cli.text import one_line
from opencode_core.context.told import SourceTold, extent_of


@attrs.frozen(kw_only=True)
class Style:
    """How much is shown: how wide a line may be, and whether texts are told in full."""

    room: int
    full: bool


def change_lines(source: SourceTold, style: Style, *, indent: str, owner: str = "") -> Iterator[str]:
    """Yields what a source was, what it is now, and what the model is told of that."""
    yield from _head(source, style, indent, [source.change], owner)
    before, after = compared(source.before, source.after, style.room - len(indent) - 10)
    yield f"{indent}  before  {before}"
    yield f"{indent}  after   {after}"
    yield from _told(source, style, indent)


def baseline_head(text: str, style: Style) -> Iterator[str]:
    """Yields how large a baseline is, and its digest."""
    extent = extent_of(text)
    cells = ["baseline", measured(extent), f"sha256 {short_digest(extent.digest)}"]
    return wrapped(cells, indent="  ", hanging="    ", room=style.room)


def baseline_lines(
    sources: Iterable[SourceTold],
    style: Style,
    *,
    indent: str,
    owners: Mapping[str, str] = MappingProxyType({}),
    is_first: bool = False,
) -> Iterator[str]:
    """Yields each source of a baseline; unless it is a first one, with what became of it since the one before."""
    for source in sources:
        owner = owners.get(source.key, "")
        if not is_first and source.change != "unchanged":
            yield from change_lines(source, style, indent=indent, owner=owner)
            continue
        yield from _head(source, style, indent, [] if is_first else [source.change], owner)
        if style.full:
            yield from _told(source, style, indent)


def _head(source: SourceTold, style: Style, indent: str, marks: list[str], owner: str) -> Iterator[str]:
    by = [f"of the plugin '{one_line(owner)}'"] if owner else []
    extent = [measured(extent_of(source.text))] if source.text else []
    cells = [one_line(source.key), *marks, *by, *extent]
    yield from wrapped(cells, indent=indent, hanging=f"{indent}  ", room=style.room)


def _told(source: SourceTold, style: Style, indent: str) -> Iterator[str]:
    if not source.text:
        return
    if style.full:
        yield f"{indent}  told"
        yield from texts(source.text, indent=f"{indent}    ")
    else:
        yield f"{indent}  told    {gist(source.text, style.room - len(indent) - 10)}"
