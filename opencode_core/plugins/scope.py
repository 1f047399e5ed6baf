"""Holds who contributes what, and for how long. Imports no plugin and calls no hook.

Readers take a `View`: everything that one scope can see at one moment, in deterministic order. Every change builds
the next state beside the current one and swaps it in with one assignment, so no reader ever sees half of a change.
"""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast

import attrs

from opencode_core.errors import DuplicateKeyError, ScopeClosedError
from opencode_core.model.context import ContextProducer
from opencode_core.model.keys import check_source_key, check_tool_name
from opencode_core.model.skill import FoundSkills
from opencode_core.model.tool import Tool
from opencode_core.plugins.cleanup import CleanupFault, run_cleanups
from opencode_core.ports.scope import Cleanup, HostFacts

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Lifetime: TypeAlias = Literal["host", "location", "session"]
Rank: TypeAlias = Literal["core", "host", "plugin"]

_DEPTH: Mapping[Lifetime, int] = {"host": 0, "location": 1, "session": 2}
_PRECEDENCE: Mapping[Rank, int] = {"core": 0, "plugin": 1, "host": 2}


@attrs.frozen(eq=False)
class Slot(Generic[T]):
    """One kind of contribution. Each is made once, so that finding by it compares no text.

    Attributes:
        name: What it is called in listings, such as ``tools``.
        noun: What one of them is called in messages, such as ``tool``.
        overlays: Whether a later registration hides an earlier one of the same key; otherwise a key is an error twice.
    """

    name: str
    noun: str
    overlays: bool = False


TOOLS: Slot[Tool] = Slot("tools", "tool", overlays=True)
CONTEXT_PRODUCERS: Slot[ContextProducer] = Slot("context_producers", "context entry")


@attrs.frozen
class Owner:
    """Who contributes: the kernel's own builtins come first in every order, then plugins by name."""

    name: str
    rank: Rank = "plugin"

    @property
    def key(self) -> str:
        """The key of what this owner contributes as a whole; sorts builtins before plugins."""
        return f"{self.rank}/{self.name}"


@attrs.frozen(kw_only=True, eq=False)
class Contribution(Generic[T]):
    """One registered value. Two are the same only when they are the same object.

    Attributes:
        slot: Its kind.
        key: Its place in the order, and the name under which it is found.
        value: What was contributed.
        owner: By whom.
        lifetime: What kind of scope it lives in.
        claims: The keys it claims for itself alone in its slot.
        identity: A number that no other contribution of this registry ever has.
        serial: Its place among its owner's registrations; a reloaded contribution keeps it.
    """

    slot: Slot[T]
    key: str
    value: T
    owner: Owner
    lifetime: Lifetime
    claims: tuple[str, ...]
    identity: int
    serial: int

    @property
    def precedence(self) -> tuple[int, int, str, int]:
        """Which of several overlays of one key is in effect: the greatest."""
        rank = self.owner.rank
        name = "" if rank == "host" else self.owner.name
        return (_DEPTH[self.lifetime], _PRECEDENCE[rank], name, self.serial)


_NOTHING: Mapping[str, Contribution[Any]] = MappingProxyType({})


@attrs.frozen(eq=False)
class View:
    """Everything that one scope can see at one moment; never changes."""

    revision: int
    _by_slot: Mapping[Slot[Any], tuple[Contribution[Any], ...]] = MappingProxyType({})
    _by_key: Mapping[Slot[Any], Mapping[str, Contribution[Any]]] = MappingProxyType({})

    def all(self, slot: Slot[T]) -> tuple[Contribution[T], ...]:
        """Returns the contributions in effect, in key order."""
        return cast("tuple[Contribution[T], ...]", self._by_slot.get(slot, ()))

    def find(self, slot: Slot[T], key: str) -> Contribution[T] | None:
        """Returns the contribution that is in effect for a key."""
        return self._by_key.get(slot, _NOTHING).get(key)

    def __iter__(self) -> Any:
        return itertools.chain.from_iterable(self._by_slot.values())


@attrs.define(eq=False, repr=False)
class Registration:
    """The handle of one contribution. Its scope closes it; closing it earlier, or twice, is fine."""

    _attachment: Attachment
    contribution: Contribution[Any]

    def close(self) -> None:
        """Takes the contribution back."""
        self._attachment._withdraw(self.contribution)


@attrs.define(eq=False, repr=False)
class Attachment:
    """One owner's part of one scope: what it registered there, and how it cleans up.

    While it is staged nobody sees its contributions; committing shows them all in one step.
    """

    scope: Scope
    owner: Owner
    staged: bool = True
    closed: bool = False
    contributions: list[Contribution[Any]] = attrs.field(factory=list)
    _cleanups: list[Cleanup] = attrs.field(factory=list)
    _inherited: dict[tuple[Slot[Any], str], int] = attrs.field(factory=dict)
    _shared: dict[type, Any] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        """Which scope it is part of."""
        return self.scope.name

    @property
    def host(self) -> HostFacts:
        """The host around it."""
        return self.scope.registry.services.facts

    def share(self, kind: type[T], make: Callable[[], T]) -> T:
        """Returns the owner's object of a kind in here, made when it is first asked for."""
        if kind not in self._shared:
            self._shared[kind] = make()
        return cast("T", self._shared[kind])

    def warn(self, problem: str, remedy: str = "") -> None:
        """Tells people what is odd, once, beside the owner's name."""
        self.scope.registry.services.warn(self.owner.name, problem, remedy)

    async def skills(self) -> FoundSkills:
        """Returns every skill that is in effect here now, by name in order."""
        return await self.scope.registry.services.skills(self.scope.read())

    def add(self, slot: Slot[T], key: str, value: T, *, claims: tuple[str, ...] | None = None) -> Registration:
        """Registers a value: at once, or with the rest when this attachment is still staged.

        Raises:
            DuplicateKeyError: Somebody visible from here claims the key, and the slot has no overlays.
            ScopeClosedError: The scope has ended.
        """
        with self.scope.registry.lock:
            self._require_open()
            contribution = self._contribution(slot, key, value, claims if claims is not None else (key,))
            if not self.staged:
                self.scope.registry.swap(add=[(self.scope, contribution)])
            self.contributions.append(contribution)
        return Registration(self, contribution)

    def add_tool(self, name: str, tool: Tool) -> Registration:
        """Registers a tool under a name that is checked first."""
        if not isinstance(tool, Tool):
            raise TypeError(f"the tool '{name}' is a '{type(tool).__name__}', not a Tool")
        return self.add(TOOLS, check_tool_name(name), tool)

    def add_context(self, key: str, producer: ContextProducer) -> Registration:
        """Registers an entry of the System Context under a key that is checked first."""
        if not callable(producer):
            raise TypeError(f"the context entry '{key}' is a '{type(producer).__name__}', not a function")
        return self.add(CONTEXT_PRODUCERS, check_source_key(key), producer)

    def on_close(self, cleanup: Cleanup) -> None:
        """Runs a function when this attachment ends: last added, first run."""
        with self.scope.registry.lock:
            self._require_open()
            self._cleanups.append(cleanup)

    def inherit(self, predecessor: Attachment) -> None:
        """Gives contributions of the same kind and key the place that they had in the predecessor."""
        self._inherited = {(each.slot, each.key): each.serial for each in predecessor.contributions}

    def commit(self) -> None:
        """Shows everything that was staged in one step; twice is harmless.

        Raises:
            DuplicateKeyError: A key is claimed already; nothing is shown.
            ScopeClosedError: The scope has ended.
        """
        with self.scope.registry.lock:
            self._require_open()
            if self.staged:
                self.scope.registry.swap(add=[(self.scope, each) for each in self.contributions])
                self.staged = False

    async def aclose(self) -> None:
        """Takes every contribution back in one step, then runs the clean-ups in reverse; twice is harmless."""
        with self.scope.registry.lock:
            self.scope.registry.swap(remove=self.end())
        await self.clean_up()

    def end(self) -> list[Contribution[Any]]:
        """Refuses further registrations and returns what is visible and has to be taken back."""
        self.closed = True
        visible = [] if self.staged else list(self.contributions)
        self.contributions.clear()
        if self in self.scope.attachments:
            self.scope.attachments.remove(self)
        return visible

    async def clean_up(self) -> None:
        """Runs the clean-ups in reverse, each under the registry's deadline, whatever happens to the caller."""
        cleanups, self._cleanups = self._cleanups, []
        registry = self.scope.registry
        for fault in await run_cleanups(reversed(cleanups), deadline=registry.cleanup_deadline):
            registry.on_cleanup_fault(self, fault)

    def _contribution(self, slot: Slot[T], key: str, value: T, claims: tuple[str, ...]) -> Contribution[T]:
        identity = self.scope.registry.next_identity()
        return Contribution(
            slot=slot,
            key=key,
            value=value,
            owner=self.owner,
            lifetime=self.scope.lifetime,
            claims=() if slot.overlays else claims,
            identity=identity,
            serial=self._inherited.get((slot, key), identity),
        )

    def _withdraw(self, contribution: Contribution[Any]) -> None:
        with self.scope.registry.lock:
            if contribution in self.contributions:
                self.contributions.remove(contribution)
                if not self.staged:
                    self.scope.registry.swap(remove=[contribution])

    def _require_open(self) -> None:
        if self.closed:
            raise _ended(self.scope, self.owner)
        _refuse_closed(self.scope, self.owner)


@attrs.define(eq=False, repr=False)
class Scope:
    """A span of time, host, Location or session, after which everything registered in it is gone."""

    registry: Registry
    lifetime: Lifetime
    name: str
    parent: Scope | None = None
    closed: bool = False
    children: list[Scope] = attrs.field(factory=list)
    attachments: list[Attachment] = attrs.field(factory=list)

    def read(self) -> View:
        """Returns everything visible from here now."""
        return self.registry.view(self)

    def attach(self, owner: Owner, *, staged: bool = False) -> Attachment:
        """Opens an owner's part of this scope.

        Raises:
            ScopeClosedError: The scope has ended.
        """
        attachment = Attachment(self, owner, staged=staged)
        with self.registry.lock:
            attachment._require_open()
            self.attachments.append(attachment)
        return attachment

    def open_child(self, lifetime: Lifetime, name: str) -> Scope:
        """Opens a scope that sees everything visible from here, and ends no later than this one.

        Raises:
            ScopeClosedError: This scope has ended.
        """
        with self.registry.lock:
            if self.closed:
                raise ScopeClosedError(f"The scope '{self.name}' has ended.", "Open a scope in one that is still open.")
            child = Scope(self.registry, lifetime, name, parent=self)
            self.children.append(child)
        return child

    async def aclose(self) -> None:
        """Undoes exactly what was registered in here: contributions in one step, then clean-ups in reverse.

        Scopes inside that are still open are closed first, with a warning: whoever opened them forgot them.
        """
        with self.registry.lock:
            forgotten, ended = self._end()
        for attachment in ended:
            await attachment.clean_up()
        for scope in forgotten:
            warnings.warn(
                f"The scope '{scope.name}' was left open inside '{self.name}'.", ResourceWarning, stacklevel=2
            )

    def chain(self) -> tuple[Scope, ...]:
        """Returns this scope and those around it, outermost first."""
        return (*self.parent.chain(), self) if self.parent else (self,)

    def _end(self) -> tuple[list[Scope], list[Attachment]]:
        """Takes back everything in here; returns what was left open inside, and what has to clean up, last first."""
        if self.closed:
            return [], []
        forgotten = list(self._inside())
        scopes = [*forgotten, self]
        ended = [attachment for scope in scopes for attachment in reversed(scope.attachments)]
        for scope in scopes:
            scope.closed = True
        self.registry.swap(remove=[each for attachment in ended for each in attachment.end()], forget=self)
        if self.parent is not None:
            self.parent.children.remove(self)
        return forgotten, ended

    def _inside(self) -> Iterator[Scope]:
        for child in reversed(self.children):
            yield from child._inside()
            yield child

    def __del__(self) -> None:
        if not self.closed and (self.attachments or self.parent is None):
            warnings.warn(f"The scope '{self.name}' was never closed.", ResourceWarning, stacklevel=2, source=self)


@attrs.frozen(eq=False)
class _State:
    revision: int = 0
    by_scope: dict[Scope, tuple[Contribution[Any], ...]] = attrs.field(factory=dict)
    claims: dict[tuple[Slot[Any], str], tuple[tuple[Scope, Contribution[Any]], ...]] = attrs.field(factory=dict)
    views: dict[Scope, View] = attrs.field(factory=dict)


def _ignore(_attachment: Attachment, _fault: CleanupFault) -> None:
    return None


class Services(Protocol):
    """What a host does for plugins beyond holding what they contribute."""

    @property
    def facts(self) -> HostFacts:
        """What they may know of it."""
        ...

    def warn(self, plugin: str, problem: str, remedy: str) -> None:
        """Tells people what is odd about a plugin."""
        ...

    async def skills(self, view: View) -> FoundSkills:
        """Returns every skill in a view, by name in order."""
        ...


@attrs.define(eq=False, repr=False)
class Registry:
    """The current state of all scopes of one host.

    Attributes:
        cleanup_deadline: How many seconds one clean-up may take.
        on_cleanup_fault: Is told of a clean-up that raised or overran.
        services: What the host does for plugins; a registry without a host has none.
        lock: Held while something changes, for a change in several steps; readers never need it.
    """

    cleanup_deadline: float = 5.0
    on_cleanup_fault: Callable[[Attachment, CleanupFault], None] = _ignore
    services: Services = attrs.field(init=False)
    lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)
    _state: _State = attrs.field(factory=_State)
    _identities: itertools.count[int] = attrs.field(factory=lambda: itertools.count(1))

    def open(self, name: str = "host") -> Scope:
        """Opens a host scope."""
        return Scope(self, "host", name)

    def next_identity(self) -> int:
        """Returns a number that was never returned before."""
        return next(self._identities)

    @property
    def revision(self) -> int:
        """How many changes there have been."""
        return self._state.revision

    def holds_any(self, slot: Slot[Any]) -> bool:
        """Whether anybody, anywhere, contributes this kind."""
        return any(each.slot is slot for members in self._state.by_scope.values() for each in members)

    def view(self, scope: Scope) -> View:
        """Returns everything visible from a scope, from one consistent state."""
        return _view(self._state, scope)

    def swap(
        self,
        *,
        remove: Sequence[Contribution[Any]] = (),
        add: Sequence[tuple[Scope, Contribution[Any]]] = (),
        forget: Scope | None = None,
    ) -> None:
        """Removes and adds in one step that every reader sees whole or not at all.

        Raises:
            DuplicateKeyError: Something added claims a key that somebody else holds; nothing changes.
            ScopeClosedError: Something is added to a scope that has ended; nothing changes.
        """
        with self.lock:
            if remove or add or forget is not None:
                self._state = _next_state(self._state, frozenset(remove), add, forget)


def _next_state(
    state: _State,
    removed: frozenset[Contribution[Any]],
    added: Sequence[tuple[Scope, Contribution[Any]]],
    forget: Scope | None,
) -> _State:
    by_scope, claims = dict(state.by_scope), dict(state.claims)
    touched = _take_out(by_scope, claims, removed)
    for scope, contribution in added:
        _refuse_closed(scope, contribution.owner)
        for claim in contribution.claims:
            held = claims.get((contribution.slot, claim), ())
            _refuse_duplicate(contribution, claim, scope, held)
            claims[contribution.slot, claim] = (*held, (scope, contribution))
        by_scope[scope] = (*by_scope.get(scope, ()), contribution)
        touched.add(scope)
    if forget is not None:
        touched.add(forget)
    seen = state.views.copy()  # readers in other threads go on adding to it
    views = {scope: view for scope, view in seen.items() if touched.isdisjoint(scope.chain())}
    return _State(state.revision + 1, by_scope, claims, views)


def _take_out(
    by_scope: dict[Scope, tuple[Contribution[Any], ...]],
    claims: dict[tuple[Slot[Any], str], tuple[tuple[Scope, Contribution[Any]], ...]],
    removed: frozenset[Contribution[Any]],
) -> set[Scope]:
    touched: set[Scope] = set()
    if not removed:
        return touched
    for scope, contributions in list(by_scope.items()):
        kept = tuple(each for each in contributions if each not in removed)
        if len(kept) != len(contributions):
            touched.add(scope)
            by_scope[scope] = kept
            if not kept:
                del by_scope[scope]
    for contribution in removed:
        for claim in contribution.claims:
            rest = tuple(pair for pair in claims.get((contribution.slot, claim), ()) if pair[1] is not contribution)
            if rest:
                claims[contribution.slot, claim] = rest
            else:
                claims.pop((contribution.slot, claim), None)
    return touched


def _refuse_closed(scope: Scope, owner: Owner) -> None:
    if scope.closed:
        raise _ended(scope, owner)


def _ended(scope: Scope, owner: Owner) -> ScopeClosedError:
    return ScopeClosedError(
        f"'{owner.name}' cannot register in the scope '{scope.name}', which has ended.",
        "Register while the scope is open, or open a new one.",
    )


def _refuse_duplicate(
    contribution: Contribution[Any], claim: str, scope: Scope, held: Iterable[tuple[Scope, Contribution[Any]]]
) -> None:
    for other_scope, other in held:
        if scope in other_scope.chain() or other_scope in scope.chain():
            raise DuplicateKeyError(
                claim, (other.owner.name, contribution.owner.name), what=f"{contribution.slot.noun} key"
            )


def _view(state: _State, scope: Scope) -> View:
    view = state.views.get(scope)
    if view is None:
        view = _render(state, scope)
        if not scope.closed:  # a scope that ended would be kept alive by what it last saw
            state.views[scope] = view
    return view


def _render(state: _State, scope: Scope) -> View:
    if scope not in state.by_scope and scope.parent is not None:
        return _view(state, scope.parent)
    effective: dict[Slot[Any], dict[str, Contribution[Any]]] = {}
    for each in itertools.chain.from_iterable(state.by_scope.get(member, ()) for member in scope.chain()):
        members = effective.setdefault(each.slot, {})
        current = members.setdefault(each.key, each)
        if current is not each and current.precedence <= each.precedence:
            members[each.key] = each
    by_slot = {
        slot: tuple([members[key] for key in sorted(members)])
        for slot, members in sorted(effective.items(), key=lambda pair: pair[0].name)
    }
    return View(state.revision, by_slot, effective)
