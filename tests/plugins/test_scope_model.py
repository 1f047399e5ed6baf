"""Any interleaving of what can happen to a registry shows what a simple model shows: plain lists, sorted when read."""

import warnings
from collections.abc import Coroutine, Iterable
from typing import Any, TypeAlias

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from opencode_core.errors import DuplicateKeyError, ScopeClosedError
from opencode_core.plugins.scope import Attachment, Lifetime, Owner, Registration, Registry, Scope, Slot, View

UNIQUE: Slot[int] = Slot("unique", "entry")
LAYERED: Slot[int] = Slot("layered", "layer", overlays=True)
SLOTS = {"unique": UNIQUE, "layered": LAYERED}

OWNERS = [
    Owner("zz", "core"),
    Owner("acme"),
    Owner("zeta"),
    Owner("two", "host"),
    Owner("one", "host"),
]
TURN = {"core": 0, "plugin": 1, "host": 2}
LIFETIMES: list[Lifetime] = ["host", "location", "session"]

Item: TypeAlias = tuple[str, str]
Listing: TypeAlias = list[tuple[str, str, int]]

keys = st.sampled_from("ab")
items = st.tuples(st.sampled_from(sorted(SLOTS)), keys)


@attrs.define(eq=False)
class Entry:
    """One line of the model's list."""

    scope: Scope
    owner: Owner
    slot: str
    key: str
    value: int
    place: int


@attrs.define(eq=False)
class Part:
    """An attachment beside what the model knows of it."""

    real: Attachment
    entries: list[Entry] = attrs.field(factory=list)
    inherited: dict[Item, int] = attrs.field(factory=dict)
    is_staged: bool = False


@attrs.define(eq=False)
class Handle:
    real: Registration
    part: Part
    entry: Entry


@attrs.define(eq=False)
class Model:
    """Everything that is shown, in the order in which it came."""

    shown: list[Entry] = attrs.field(factory=list)
    ended: set[Scope] = attrs.field(factory=set)

    def is_over(self, part: Part) -> bool:
        return part.real.scope in self.ended or part.real.closed

    def clashes(self, added: Iterable[Entry], without: Iterable[Entry] = ()) -> bool:
        others = [entry for entry in self.shown if entry not in list(without)]
        for entry in added:
            if entry.slot == "unique" and any(_collide(entry, other) for other in others):
                return True
            others.append(entry)
        return False

    def show(self, added: Iterable[Entry], without: Iterable[Entry] = ()) -> None:
        gone = list(without)
        self.shown = [entry for entry in self.shown if entry not in gone] + list(added)

    def seen_from(self, scope: Scope) -> Listing:
        visible = [entry for entry in self.shown if entry.scope in _upward(scope)]
        winners: dict[Item, Entry] = {}
        for entry in sorted(visible, key=_strength):  # stable, so of equals the later one stays
            winners[entry.slot, entry.key] = entry
        return sorted((slot, key, entry.value) for (slot, key), entry in winners.items())


def _strength(entry: Entry) -> tuple[int, int, str, int]:
    rank = entry.owner.rank
    name = "" if rank == "host" else entry.owner.name
    return (LIFETIMES.index(entry.scope.lifetime), TURN[rank], name, entry.place)


def _collide(one: Entry, other: Entry) -> bool:
    is_same_key = (one.slot, one.key) == (other.slot, other.key)
    return is_same_key and (one.scope in _upward(other.scope) or other.scope in _upward(one.scope))


def _upward(scope: Scope) -> list[Scope]:
    return [scope] if scope.parent is None else [scope, *_upward(scope.parent)]


def finish(coroutine: Coroutine[Any, Any, None]) -> None:
    """Runs what has nothing to wait for."""
    with pytest.raises(StopIteration):
        coroutine.send(None)


def listing(view: View) -> Listing:
    return [(each.slot.name, each.key, each.value) for each in view]


class RegistryMachine(RuleBasedStateMachine):
    """Does one thing after the other to a registry and to the model, and compares every open scope after each."""

    scopes: Bundle[Scope] = Bundle("scopes")
    parts: Bundle[Part] = Bundle("parts")
    handles: Bundle[Handle] = Bundle("handles")

    def __init__(self) -> None:
        super().__init__()
        self.registry = Registry()
        self.model = Model()
        self.open_scopes: list[Scope] = []
        self.values = 0
        self.identities: set[int] = set()
        self.old: list[tuple[View, Listing]] = []

    # Scopes

    @initialize(target=scopes)
    def open_a_tree(self) -> Any:
        host = self._opened(self.registry.open())
        one, two = (self._opened(host.open_child("location", name)) for name in ("one", "two"))
        return multiple(host, one, two, self._opened(one.open_child("session", "ses")))

    @rule(target=scopes)
    def open_another_host(self) -> Scope:
        return self._opened(self.registry.open(f"host{len(self.open_scopes)}"))

    @rule(target=scopes, parent=scopes)
    def open_inside(self, parent: Scope) -> Any:
        depth = LIFETIMES.index(parent.lifetime) + 1
        if depth == len(LIFETIMES):
            return multiple()
        if parent in self.model.ended:
            with pytest.raises(ScopeClosedError):
                parent.open_child(LIFETIMES[depth], "inside")
            return multiple()
        return self._opened(parent.open_child(LIFETIMES[depth], "inside"))

    @rule(scope=scopes)
    def close_scope(self, scope: Scope) -> None:
        inside = [each for each in self.open_scopes if scope in _upward(each)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            finish(scope.aclose())
        self.model.ended.update(inside)
        self.open_scopes = [each for each in self.open_scopes if each not in inside]
        self.model.show([], without=[entry for entry in self.model.shown if entry.scope in inside])

    # Parts

    @rule(target=parts, scope=scopes, owner=st.sampled_from(OWNERS), staged=st.booleans())
    def attach(self, scope: Scope, owner: Owner, staged: bool) -> Any:
        if scope in self.model.ended:
            with pytest.raises(ScopeClosedError):
                scope.attach(owner, staged=staged)
            return multiple()
        return Part(scope.attach(owner, staged=staged), is_staged=staged)

    @rule(target=parts, scope=scopes, owners=st.lists(st.sampled_from(OWNERS), min_size=2, max_size=5), key=keys)
    def overlay(self, scope: Scope, owners: list[Owner], key: str) -> Any:
        """Lets several owners register one key, which is where their order shows."""
        if scope in self.model.ended:
            return multiple()
        parts = [Part(scope.attach(owner)) for owner in owners]
        for part in parts:
            self.add(part, ("layered", key))
        return multiple(*parts)

    @rule(target=handles, part=parts, item=items)
    def add(self, part: Part, item: Item) -> Any:
        entry = self._entry(part, item)
        if self.model.is_over(part):
            with pytest.raises(ScopeClosedError):
                self._add(part, entry)
            return multiple()
        if not part.is_staged and self.model.clashes([entry]):
            with pytest.raises(DuplicateKeyError):
                self._add(part, entry)
            return multiple()
        handle = self._add(part, entry)
        if not part.is_staged:
            self.model.show([entry])
        return handle

    @rule(handle=handles)
    def close_registration(self, handle: Handle) -> None:
        handle.real.close()
        if handle.entry in handle.part.entries:
            handle.part.entries.remove(handle.entry)
        self.model.show([], without=[handle.entry])

    @rule(part=parts)
    def commit(self, part: Part) -> None:
        if self.model.is_over(part):
            with pytest.raises(ScopeClosedError):
                part.real.commit()
        elif part.is_staged and self.model.clashes(part.entries):
            with pytest.raises(DuplicateKeyError):
                part.real.commit()
        else:
            part.real.commit()
            if part.is_staged:
                self.model.show(part.entries)
            part.is_staged = False

    @rule(part=consumes(parts))
    def close_part(self, part: Part) -> None:
        finish(part.real.aclose())
        self.model.show([], without=part.entries)

    # Reload: everything that some parts show is replaced in one step

    @rule(
        target=parts,
        old=st.lists(consumes(parts), max_size=3, unique_by=id),
        contents=st.lists(st.lists(items, max_size=4), min_size=3, max_size=3),
    )
    def replace(self, old: list[Part], contents: list[list[Item]]) -> Any:
        over = [part for part in old if self.model.is_over(part) or part.is_staged]
        old = [part for part in old if part not in over]
        new = [self._successor(part, listed) for part, listed in zip(old, contents, strict=False)]
        outgoing = [entry for part in old for entry in part.entries]
        incoming = [entry for part in new for entry in part.entries]
        if self.model.clashes(incoming, without=outgoing):
            with pytest.raises(DuplicateKeyError):
                self._swap(old, new)
            for part in new:
                finish(part.real.aclose())
            return multiple(*old, *over)
        self._swap(old, new)
        for part in old:
            part.real.end()
        for part in new:
            part.real.staged = part.is_staged = False
        self.model.show(incoming, without=outgoing)
        return multiple(*new, *over)

    # What must hold

    @invariant()
    def every_scope_shows_what_the_model_shows(self) -> None:
        for scope in self.open_scopes:
            assert listing(scope.read()) == self.model.seen_from(scope)

    @invariant()
    def finding_by_key_agrees_with_listing(self) -> None:
        for scope in self.open_scopes:
            view = scope.read()
            assert all(view.find(each.slot, each.key) is each for each in view)

    @invariant()
    def old_views_still_answer(self) -> None:
        for view, before in self.old:
            assert listing(view) == before
        self.old = [*self.old, *((scope.read(), listing(scope.read())) for scope in self.open_scopes)][-12:]

    def teardown(self) -> None:
        for scope in list(self.open_scopes):
            self.close_scope(scope)
        assert self.registry._state.by_scope == {}
        assert self.registry._state.claims == {}
        assert self.registry._state.views == {}

    # Steps

    def _opened(self, scope: Scope) -> Scope:
        self.open_scopes.append(scope)
        return scope

    def _entry(self, part: Part, item: Item) -> Entry:
        self.values += 1
        place = part.inherited.get(item, self.values)
        return Entry(part.real.scope, part.real.owner, *item, value=self.values, place=place)

    def _add(self, part: Part, entry: Entry) -> Handle:
        registration = part.real.add(SLOTS[entry.slot], entry.key, entry.value)
        part.entries.append(entry)
        identity = registration.contribution.identity
        assert identity not in self.identities
        self.identities.add(identity)
        return Handle(registration, part, entry)

    def _successor(self, part: Part, listed: list[Item]) -> Part:
        real = part.real.scope.attach(part.real.owner, staged=True)
        real.inherit(part.real)
        successor = Part(real, inherited={(each.slot, each.key): each.place for each in part.entries}, is_staged=True)
        for item in listed:
            self._add(successor, self._entry(successor, item))
        return successor

    def _swap(self, old: list[Part], new: list[Part]) -> None:
        self.registry.swap(
            remove=[each for part in old for each in part.real.contributions],
            add=[(part.real.scope, each) for part in new for each in part.real.contributions],
        )


def test_any_interleaving_shows_what_a_simple_model_shows() -> None:
    run_state_machine_as_test(RegistryMachine, settings=settings(max_examples=200, stateful_step_count=30))
