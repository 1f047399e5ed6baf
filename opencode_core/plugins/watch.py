"""Says which Python files changed below the watched paths, as soon as they settle. Reloads nothing."""

from __future__ import annotations

import os
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

_WAS_THERE: Stamp = (-1, -1, -1)


@attrs.define(eq=False, repr=False, kw_only=True)
class Watcher:
    """Watches paths that come and go.

    The operating system is asked to watch anew whenever they do, or a watched folder or one above it appears or
    disappears; what was changed in between is found by comparing.

    Attributes:
        paths: The files and folders to watch.
        on_change: Gets the Python files that something happened to: written, replaced, new or gone.
        on_fault: Is told once why the system does not watch; what is at fault is left alone until ``paths`` differ.
        moved: Waits until ``paths`` may say something else.
    """

    paths: Callable[[], Paths]
    on_change: Callable[[Paths], Awaitable[object]]
    on_fault: Callable[[Exception], object]
    moved: Callable[[], Awaitable[None]]
    _telling: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)
    _faults: set[str] = attrs.field(factory=set, init=False)
    _seen: dict[Path, Stamp] = attrs.field(factory=dict, init=False)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Watches for ever; has started once no change can be missed any more."""
        self._look_at(self.paths())
        while True:
            watched, stop = self.paths(), anyio.Event()
            roots = _roots(watched)
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(self._stop_when_moved, watched, stop)
                async with anyio.create_task_group() as group:
                    group.start_soon(self._listen, roots.deep, True, watched, roots, stop)
                    group.start_soon(self._listen, roots.flat, False, watched, roots, stop)
                    for _ in range(3):  # the first step of the listeners registers with the operating system
                        await anyio.lowlevel.checkpoint()
                    task_status.started()
                    task_status = anyio.TASK_STATUS_IGNORED
                    async with self._telling:  # what was missed depends on what was told
                        await self._tell(self._missed(watched))
                waiting.cancel_scope.cancel()

    async def _stop_when_moved(self, watched: Paths, stop: anyio.Event) -> None:
        try:
            while (now := self.paths()) == watched:
                await self.moved()
            self._look_at(now)
            self._expect(now - watched)
            self._faults.clear()
        finally:
            stop.set()  # also when cancelled: the listener's thread looks at nothing else

    async def _listen(self, folders: Paths, deep: bool, watched: Paths, roots: _Roots, stop: anyio.Event) -> None:
        try:
            if folders:
                await self._follow(folders, deep, watched, roots, stop)
        except Exception as error:  # the limit of the system, a folder that vanished, a fault of the library
            self._report(_innermost(error))
        await stop.wait()

    async def _follow(self, folders: Paths, deep: bool, watched: Paths, roots: _Roots, stop: anyio.Event) -> None:
        import watchfiles

        async for batch in watchfiles.awatch(
            *sorted(folders),
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            step=DEBOUNCE_MS,
            stop_event=stop,
            recursive=deep,
        ):
            changed = _touched(watched, (Path(path) for _change, path in batch))
            if not deep:  # the other listener tells of what is in the folders
                changed = frozenset(path for path in changed if not _is_below(path, roots.deep))
            async with self._telling:
                await self._tell(changed)
            came_or_went = [Path(path) for change, path in batch if change != watchfiles.Change.modified]
            if _roots(watched) != roots or any(roots.hang_on(path) for path in came_or_went):
                stop.set()

    def _report(self, error: Exception) -> None:
        if str(error) not in self._faults:
            self._faults.add(str(error))
            self.on_fault(error)

    async def _tell(self, changed: Paths) -> None:
        self._seen.update((path, _stamp(path)) for path in changed if path.suffix == ".py")
        if changed:
            await self.on_change(changed)

    def _look_at(self, paths: Paths) -> None:
        known = {path: stamp for path, stamp in self._seen.items() if _is_below(path, paths)}
        self._seen = {**dict(_stamps(paths)), **known}  # what is gone since it was seen was missed

    def _expect(self, paths: Paths) -> None:
        """Counts a file that came to be watched, and is gone already, as missed: it was there when it was found."""
        for path in paths:
            if path.suffix == ".py" and self._seen.get(path) is None:
                self._seen[path] = _WAS_THERE

    def _missed(self, watched: Paths) -> Paths:
        now = dict(_stamps(watched))
        return frozenset(path for path in {*now, *self._seen} if now.get(path) != self._seen.get(path))


@attrs.frozen
class _Roots:
    """The folders to listen in: with everything below them, and only for what is directly in them."""

    deep: Paths
    flat: Paths

    def hang_on(self, path: Path) -> bool:
        """Whether some of them are in another place, or nowhere, when something came or went there."""
        return any(root.is_relative_to(path) for root in self.deep | self.flat)


def _roots(watched: Iterable[Path]) -> _Roots:
    """Returns where to listen: editors replace files, and folders come and go, so both are watched from above too."""
    paths = list(watched)
    deep = frozenset(path for path in paths if os.path.isdir(path))
    above = {next(filter(os.path.isdir, path.parents), path) for path in paths}
    return _Roots(deep, frozenset(path for path in above if not _is_below(path, deep)))


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _innermost(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


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
        for file in _python_files(path) if os.path.isdir(path) else [path]:
            yield file, _stamp(file)


def _python_files(folder: Path) -> Iterator[Path]:
    for parent, _folders, names in os.walk(folder):  # which passes over what vanishes or cannot be read
        yield from (Path(parent, name) for name in names if name.endswith(".py"))


def _stamp(path: Path) -> Stamp:
    try:
        known = path.stat()
    except OSError:
        return None
    return known.st_mtime_ns, known.st_size, known.st_ino
