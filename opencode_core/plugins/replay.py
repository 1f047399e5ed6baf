"""Rebuilds a state by replaying transforms over a fresh draft. Never edits the state that readers hold.

Transforms run in the order of their keys, whatever the order of their registration. One that raises stops the
rebuild, and the old state stays; isolating a faulty plugin is the caller's job.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeAlias, TypeVar

import anyio
import attrs

from opencode_core.errors import DuplicateKeyError, OpencodeError

__all__ = ["Key", "Registration", "Replayed", "batch"]

D = TypeVar("D")
S = TypeVar("S")

Key: TypeAlias = str | tuple[str | int, ...]
"""Where a transform stands: sorted part by part, numbers before texts; ``"a"`` and ``("a",)`` are one key."""

Transform: TypeAlias = Callable[[D], object]


@attrs.define(eq=False, repr=False)
class Replayed(Generic[D, S]):
    """A state that is the result of its transforms, and the transforms.

    Rebuilds are serialised. One that has begun completes even when its caller is cancelled: the caller gets
    its result, and its cancellation at the next checkpoint, so a handle is never lost. Nothing here times a
    transform out.

    Args:
        initial: Makes the draft that every rebuild starts from.
        finish: Turns the edited draft into the state that readers get.
        on_change: Told of a new state once it is visible. What it raises is logged: the change has happened.

    Attributes:
        current: The state of the last rebuild; built from no transforms at first.
        revision: How many rebuilds have succeeded.
    """

    _initial: Callable[[], D]
    _finish: Callable[[D], S]
    _on_change: Callable[[S], object] | None = None
    current: S = attrs.field(init=False)
    revision: int = attrs.field(init=False, default=0)
    _entries: _Entries[D] = attrs.field(init=False, factory=dict)
    _running: object = attrs.field(init=False, default=None)
    _lock: anyio.Lock = attrs.field(init=False, factory=anyio.Lock)

    def __attrs_post_init__(self) -> None:
        self.current = self._finish(self._initial())

    async def add(self, key: Key, transform: Transform[D], *, owner: str) -> Registration:
        """Registers one transform, sync or async, and rebuilds.

        If anything raises, the transform is not kept and the old state stays.

        Raises:
            DuplicateKeyError: The key is taken; the first one stays.
            OpencodeError: A transform of this state called it.
            Exception: Whatever a transform or ``finish`` raised.
        """
        registrations = await self.change(add={key: transform}, owner=owner)
        return registrations[key]

    async def replace(self, key: Key, transform: Transform[D]) -> None:
        """Puts another transform in the place of one, whose registration and owner stay; all or nothing.

        Raises:
            LookupError: No transform has that key.
            OpencodeError: A transform of this state called it.
            Exception: Whatever a transform or ``finish`` raised.
        """
        await self._submit(lambda entries: [_Entry(_found(entries, key), transform)])

    async def change(
        self, *, remove: Iterable[Key] = (), add: Mapping[Key, Transform[D]], owner: str
    ) -> dict[Key, Registration]:
        """Removes and adds several with one rebuild; all or nothing. A removed key may be added again.

        Returns:
            The new registrations by key. Those of removed transforms are closed.

        Raises:
            DuplicateKeyError: A key to add is taken; the first one stays.
            LookupError: No transform has a key that is to be removed.
            OpencodeError: A transform of this state called it.
            Exception: Whatever a transform or ``finish`` raised.
        """
        keys = tuple(remove)
        registrations = {key: Registration(key=key, owner=owner, release=self._release) for key in add}

        def plan(entries: _Entries[D]) -> list[_Edit[D]]:
            removals = [_Removal(_found(entries, key)) for key in keys]
            return [*removals, *(_Entry(registrations[key], transform) for key, transform in add.items())]

        await self._submit(plan)
        return registrations

    @asynccontextmanager
    async def prepare(self, edits: Mapping[str, Transform[D] | None]) -> AsyncIterator[Callable[[], None]]:
        """Rebuilds beside the current state, and yields the function that makes the result visible at once.

        So that several states, and whatever else belongs to them, change in one step. Nothing changes when the
        function is not called; it works once, inside the block. ``on_change`` is told when the block ends. Other
        changes of this state wait until then; one that is asked for inside the block would wait for itself, so it
        is refused. A batch does not defer any of this: what it gathered is applied after it, as always.

        Args:
            edits: The transform to put at each key, or None to remove what is there, if anything. A transform is
                owned by its key, and only what ``prepare`` put there is replaced or removed.

        Raises:
            DuplicateKeyError: A key is held by a transform that was added by somebody else.
            OpencodeError: A transform of this state called it, or another ``prepare`` of it is open around it.
            Exception: Whatever a transform or ``finish`` raised.
        """
        self._refuse_reentry()
        async with self._lock:
            before = _edited(self._entries, ())
            after = _prepared(before, edits, self._release)
            with anyio.CancelScope(shield=True):
                rebuilt = await self._rebuilt(after)
            preparation = _Preparation(self, lambda: self._become(before, after, rebuilt))
            _PREPARING.set((*_PREPARING.get(), preparation))
            try:
                yield preparation.commit
            finally:
                preparation.is_open = False
                _PREPARING.set(tuple(each for each in _PREPARING.get() if each is not preparation))
            if preparation.is_committed:
                self._tell()

    async def reload(self) -> None:
        """Runs all transforms again, for the sake of those that read something outside.

        Raises:
            OpencodeError: A transform of this state called it.
            Exception: Whatever a transform or ``finish`` raised; the old state stays.
        """
        await self._submit(_no_edits)

    async def _release(self, registration: Registration) -> None:
        self._refuse_reentry()
        registration.closed = True
        # The wait for the lock is shielded too: handles are closed while their task is being cancelled.
        with anyio.CancelScope(shield=True):
            await self._submit(_no_edits)

    async def _submit(self, plan: _Plan[D]) -> None:
        self._refuse_reentry()
        running_batch = _BATCH.get()
        if running_batch is not None and running_batch.takes(self):
            running_batch.defer(self, plan)
            return
        async with self._lock:
            with anyio.CancelScope(shield=True):
                await self._commit(plan)

    async def _commit(self, plan: _Plan[D]) -> None:
        # What was closed is gone even if the rebuild fails.
        before = self._entries = _edited(self._entries, ())
        after = _edited(before, plan(before))
        self._become(before, after, await self._rebuilt(after))
        self._tell()

    def _become(self, before: _Entries[D], after: _Entries[D], rebuilt: S) -> None:
        self.current = rebuilt
        self._entries = after
        self.revision += 1
        for registration in _registrations(before) - _registrations(after):
            registration.closed = True

    async def _rebuilt(self, entries: _Entries[D]) -> S:
        self._running = rebuild = object()
        token = _REBUILDS.set((*_REBUILDS.get(), rebuild))
        try:
            draft = self._initial()
            for place in sorted(entries):
                await _run(entries[place], draft)
            return self._finish(draft)
        finally:
            _REBUILDS.reset(token)
            self._running = None

    def _tell(self) -> None:
        if self._on_change is None:
            return
        try:
            self._on_change(self.current)
        except Exception:
            log = logging.getLogger("opencode.replay")
            log.exception("%r failed after a state had changed.", self._on_change)

    def _refuse_reentry(self) -> None:
        if any(each.state is self and each.is_open for each in _PREPARING.get()):
            raise OpencodeError(
                "A state was to be changed inside the block that prepares another change of it.",
                "Change it before or after that block.",
            )
        if self._running is not None and self._running in _REBUILDS.get():
            raise OpencodeError(
                "A transform tried to change the registrations of the state that it is rebuilding.",
                "Edit the draft it was given, and register before or after the rebuild.",
            )


@attrs.define(eq=False, repr=False, kw_only=True)
class Registration:
    """The handle that removes one transform.

    Attributes:
        closed: Whether the transform was removed, by ``close`` or by a ``change``.
    """

    key: Key
    owner: str
    closed: bool = attrs.field(init=False, default=False)
    _release: Callable[[Registration], Awaitable[None]]

    async def close(self) -> None:
        """Removes the transform and rebuilds from the rest, even while being cancelled; harmless twice.

        The transform is gone from then on, also when the rebuild fails because another one raises: then the
        old state stays until the next rebuild.

        Raises:
            OpencodeError: A transform of the same state called it.
            Exception: Whatever another transform or ``finish`` raised.
        """
        if not self.closed:
            await self._release(self)


@asynccontextmanager
async def batch(*states: Replayed[Any, Any]) -> AsyncIterator[None]:
    """Rebuilds each of these states at most once, when the block ends, for all that is changed in it.

    It gathers the changes of this task and of tasks started inside. Meanwhile ``current`` is the old state,
    and duplicate or missing keys are refused at once. A batch inside a batch joins the outer one. The
    rebuilds happen also when the block raised or was cancelled. A state that cannot be rebuilt keeps its old
    value and nothing that was added, replaced or changed in the batch; what was closed stays closed.

    Raises:
        ExceptionGroup: The errors of several states that could not be rebuilt.
        Exception: The error of the only one. An exception of the block is then its ``__context__``.
    """
    outer = _BATCH.get()
    if outer is not None and outer.is_open:
        outer.states.update(states)
        yield
        return
    gathered = _Batch(states=set(states))
    _BATCH.set(gathered)
    try:
        yield
    finally:
        _BATCH.set(None)
        await gathered.commit()


@attrs.define(eq=False, repr=False, kw_only=True)
class _Batch:
    states: set[Replayed[Any, Any]]
    edits: dict[Replayed[Any, Any], list[_Edit[Any]]] = attrs.field(init=False, factory=dict)
    # A task that was started inside may outlive the batch.
    is_open: bool = attrs.field(init=False, default=True)

    def takes(self, state: Replayed[Any, Any]) -> bool:
        return self.is_open and state in self.states

    def defer(self, state: Replayed[D, Any], plan: _Plan[D]) -> None:
        earlier = self.edits.get(state, [])
        entries = _edited(state._entries, earlier)
        edits = plan(entries)
        _edited(entries, edits)  # refuses a duplicate now, while its author is here
        self.edits[state] = [*earlier, *edits]

    async def commit(self) -> None:
        self.is_open = False
        # Taken away, for a task that outlives the batch would keep the transforms alive.
        gathered, self.edits = self.edits, {}
        with anyio.CancelScope(shield=True):
            outcomes = [await _failure(state, edits) for state, edits in gathered.items()]
        failures = [outcome for outcome in outcomes if outcome is not None]
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise ExceptionGroup("Several states could not be rebuilt after a batch.", failures)


async def _failure(state: Replayed[Any, Any], edits: Sequence[_Edit[Any]]) -> Exception | None:
    try:
        await state._submit(lambda _: edits)
    except Exception as error:
        return error
    return None


@attrs.define(eq=False, repr=False)
class _Preparation:
    """A change that was rebuilt and waits for its caller; the state cannot change meanwhile."""

    state: Replayed[Any, Any]
    _become: Callable[[], None]
    is_open: bool = attrs.field(init=False, default=True)
    is_committed: bool = attrs.field(init=False, default=False)

    def commit(self) -> None:
        if not self.is_open or self.is_committed:
            raise OpencodeError(
                "A prepared change was to be made visible twice, or after its block had ended.",
                "Call the function once, inside the block.",
            )
        self.is_committed = True
        self._become()


@attrs.frozen
class _Entry(Generic[D]):
    registration: Registration
    transform: Transform[D]


@attrs.frozen
class _Removal:
    registration: Registration


_Place: TypeAlias = tuple[tuple[bool, str | int], ...]
_Entries: TypeAlias = dict[_Place, _Entry[D]]
_Edit: TypeAlias = _Entry[D] | _Removal
_Plan: TypeAlias = Callable[[_Entries[D]], Sequence[_Edit[D]]]

_BATCH: ContextVar[_Batch | None] = ContextVar("opencode_replay_batch", default=None)
_PREPARING: ContextVar[tuple[_Preparation, ...]] = ContextVar("opencode_replay_preparing", default=())
# The rebuilds that this task is inside of, to refuse what would wait for itself.
_REBUILDS: ContextVar[tuple[object, ...]] = ContextVar("opencode_replay_rebuilds", default=())


def _no_edits(entries: object) -> tuple[()]:
    return ()


def _edited(entries: _Entries[D], edits: Sequence[_Edit[D]]) -> _Entries[D]:
    """A copy with the edits made, without what was closed meanwhile."""
    result = {place: entry for place, entry in entries.items() if not entry.registration.closed}
    for edit in edits:
        if not edit.registration.closed:
            _edit(result, edit)
    return result


def _prepared(
    entries: _Entries[D],
    edits: Mapping[str, Transform[D] | None],
    release: Callable[[Registration], Awaitable[None]],
) -> _Entries[D]:
    result = dict(entries)
    for key, transform in edits.items():
        there = result.pop(_place(key), None)
        if there is not None and there.registration.owner != key:
            raise DuplicateKeyError(key, (there.registration.owner, key), what="transform")
        if transform is not None:
            result[_place(key)] = _Entry(Registration(key=key, owner=key, release=release), transform)
    return result


def _edit(entries: _Entries[D], edit: _Edit[D]) -> None:
    place = _place(edit.registration.key)
    there = entries.get(place)
    is_same = there is not None and there.registration is edit.registration
    match edit:
        case _Entry():
            if there is not None and not is_same:
                owners = (there.registration.owner, edit.registration.owner)
                raise DuplicateKeyError(_shown(edit.registration.key), owners, what="transform")
            entries[place] = edit
        case _Removal():
            if is_same:
                del entries[place]


def _place(key: Key) -> _Place:
    parts = (key,) if isinstance(key, str) else key
    return tuple((isinstance(part, str), part) for part in parts)


def _shown(key: Key) -> str:
    return key if isinstance(key, str) else "/".join(str(part) for part in key)


def _found(entries: _Entries[D], key: Key) -> Registration:
    entry = entries.get(_place(key))
    if entry is None:
        raise LookupError(f"No transform has the key '{_shown(key)}'. Add it first.")
    return entry.registration


def _registrations(entries: _Entries[D]) -> set[Registration]:
    return {entry.registration for entry in entries.values()}


async def _run(entry: _Entry[D], draft: D) -> None:
    try:
        result = entry.transform(draft)
        if inspect.isawaitable(result):
            await result
    except Exception as error:
        registration = entry.registration
        error.add_note(f"In the transform '{_shown(registration.key)}' of '{registration.owner}'.")
        raise
