"""Says which watched paths changed, as soon as they settle. Reloads nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

import anyio

DEBOUNCE_MS = 50


async def changes(paths: Callable[[], frozenset[Path]]) -> AsyncIterator[frozenset[Path]]:
    """Yields the watched paths that something happened to, in batches, for ever.

    Args:
        paths: The files and folders to watch; asked again after each batch, since plugins come and go.
    """
    import watchfiles

    while True:
        watched = paths()
        roots = _roots(watched)
        if not roots:
            await anyio.sleep_forever()
        async for batch in watchfiles.awatch(*roots, watch_filter=None, debounce=DEBOUNCE_MS, step=DEBOUNCE_MS):
            touched = _touched(watched, (Path(path) for _change, path in batch))
            if touched:
                yield touched
            if paths() != watched:
                break


def _roots(watched: Iterable[Path]) -> list[Path]:
    """Returns the folders to listen in: editors replace files, so a file is watched through its folder."""
    roots = {path if path.is_dir() else path.parent for path in watched}
    return sorted(root for root in roots if root.is_dir())


def _touched(watched: Iterable[Path], changed: Iterable[Path]) -> frozenset[Path]:
    seen = [path for path in changed if "__pycache__" not in path.parts]
    return frozenset(
        path
        for path in watched
        if any(each == path or (each.is_relative_to(path) and each.suffix == ".py") for each in seen)
    )
