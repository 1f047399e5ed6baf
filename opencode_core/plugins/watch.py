"""Says which Python files changed below the watched paths, as soon as they settle. Reloads nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import anyio
import anyio.abc
import anyio.lowlevel
import attrs

DEBOUNCE_MS = 50

Paths: TypeAlias = frozenset[Path]
Stamp: TypeAlias = tuple[int, int, int] | None


@attrs.define(eq=False, kw_only=True)
class Watcher:
    """Watches paths that come and go.

    The operating system is asked to watch anew whenever they do; what was changed in between is found by comparing.

    Attributes:
        paths: The files and folders to watch.
        on_change: Gets the Python files that something happened to: written, replaced, new or gone.
        moved: Waits until ``paths`` may say something else.
    """

    paths: Callable[[], Paths]
    on_change: Callable[[Paths], Awaitable[object]]
    moved: Callable[[], Awaitable[None]]
    _seen: dict[Path, Stamp] = attrs.field(factory=dict, init=False)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Watches for ever; has started once no change can be missed any more."""
        self._look_at(self.paths())
        while True:
            watched, stop = self.paths(), anyio.Event()
            async with anyio.create_task_group() as group:
                group.start_soon(self._stop_when_moved, watched, stop)
                group.start_soon(self._listen, watched, stop)
                for _ in range(3):  # the first step of the listener registers with the operating system
                    await anyio.lowlevel.checkpoint()
                task_status.started()
                task_status = anyio.TASK_STATUS_IGNORED
                await self._tell(self._missed(watched))

    async def _stop_when_moved(self, watched: Paths, stop: anyio.Event) -> None:
        try:
            while (now := self.paths()) == watched:
                await self.moved()
            self._look_at(now)
        finally:
            stop.set()  # also when cancelled: the listener's thread looks at nothing else

    async def _listen(self, watched: Paths, stop: anyio.Event) -> None:
        import watchfiles

        roots = _roots(watched)
        if not roots:
            await stop.wait()
            return
        async for batch in watchfiles.awatch(
            *roots, watch_filter=None, debounce=DEBOUNCE_MS, step=DEBOUNCE_MS, stop_event=stop
        ):
            await self._tell(_touched(watched, (Path(path) for _change, path in batch)))

    async def _tell(self, changed: Paths) -> None:
        self._seen.update((path, _stamp(path)) for path in changed if path.suffix == ".py")
        if changed:
            await self.on_change(changed)

    def _look_at(self, paths: Paths) -> None:
        self._seen = {path: self._seen.get(path, stamp) for path, stamp in _stamps(paths)}

    def _missed(self, watched: Paths) -> Paths:
        now = dict(_stamps(watched))
        return frozenset(path for path in {*now, *self._seen} if now.get(path) != self._seen.get(path))


def _roots(watched: Iterable[Path]) -> list[Path]:
    """Returns the folders to listen in: editors replace files, so a file is watched through its folder."""
    roots = {path if path.is_dir() else path.parent for path in watched}
    return sorted(root for root in roots if root.is_dir())


def _touched(watched: Iterable[Path], changed: Iterable[Path]) -> Paths:
    """Returns what matters of what changed: watched files and folders, and Python files in those folders."""
    seen = [path for path in changed if "__pycache__" not in path.parts]
    return frozenset(
        each
        for each in seen
        for path in watched
        if each == path or (each.suffix in (".py", "") and each.is_relative_to(path))
    )


def _stamps(watched: Iterable[Path]) -> Iterator[tuple[Path, Stamp]]:
    for path in watched:
        for file in path.rglob("*.py") if path.is_dir() else [path]:
            yield file, _stamp(file)


def _stamp(path: Path) -> Stamp:
    try:
        known = path.stat()
    except OSError:
        return None
    return known.st_mtime_ns, known.st_size, known.st_ino
