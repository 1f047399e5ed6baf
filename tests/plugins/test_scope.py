"""Scopes: what is registered is seen in key order, as long as its scope is open, and whole or not at all."""

import contextlib
import functools
import gc
import itertools
import sys
import threading
import warnings
from collections.abc import Callable, Iterator

import anyio
import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_core.errors import DuplicateKeyError, InvalidKeyError, ScopeClosedError
from opencode_core.model.context import ContextSource
from opencode_core.model.tool import Tool, ToolCall, ToolOutput
from opencode_core.plugins.cleanup import CleanupFault
from opencode_core.plugins.scope import (
    CONTEXT_PRODUCERS,
    TOOLS,
    Attachment,
    Owner,
    Rank,
    Registry,
    Scope,
    Slot,
    View,
)

UNIQUE: Slot[str] = Slot("unique", "entry")
LAYERED: Slot[str] = Slot("layered", "layer", overlays=True)

ACME = Owner("acme")
ZETA = Owner("zeta")
BUILTIN = Owner("zzz-builtin", "core")
APPLICATION = Owner("app", "host")


def shown(reader: Scope | View, slot: Slot[str] = UNIQUE) -> list[str]:
    view = reader.read() if isinstance(reader, Scope) else reader
    return [f"{each.key}={each.value}" for each in view.all(slot)]


def in_effect(scope: Scope, key: str = "k") -> str | None:
    found = scope.read().find(LAYERED, key)
    return found.value if found else None


@pytest.fixture
def host() -> Iterator[Scope]:
    """A host scope whose end nobody has to think of."""
    scope = Registry(cleanup_deadline=0.2).open()
    yield scope
    for each in _all_scopes(scope):
        each.closed = True  # the test is over, and may leave open what it likes


def _all_scopes(scope: Scope) -> Iterator[Scope]:
    yield scope
    for child in scope.children:
        yield from _all_scopes(child)


# What is registered


def test_what_is_not_a_tool_is_refused_by_name(host: Scope) -> None:
    with pytest.raises(TypeError, match=r"^the tool 'greet' is a 'dict', not a Tool$"):
        host.attach(ACME).add_tool("greet", {})  # type: ignore[arg-type]
    assert host.read().all(TOOLS) == ()


def test_a_context_producer_that_is_not_a_function_is_refused_by_name(host: Scope) -> None:
    with pytest.raises(TypeError, match=r"^the context entry 'acme/key' is a 'list', not a function$"):
        host.attach(ACME).add_context("acme/key", [])  # type: ignore[arg-type]
    assert host.read().all(CONTEXT_PRODUCERS) == ()


# The order


@given(keys=st.permutations(["a/a", "a/b", "b", "b/a", "b/a/c", "c"]))
def test_contributions_are_seen_in_key_order_whatever_the_order_of_registration(keys: list[str]) -> None:
    host = Registry().open()
    part = host.attach(ACME)
    for key in keys:
        part.add(UNIQUE, key, "")
    assert [each.key for each in host.read().all(UNIQUE)] == sorted(keys)
    host.closed = True


def test_key_order_holds_across_owners_and_scopes(host: Scope) -> None:
    location = host.open_child("location", "/project")
    location.attach(BUILTIN).add(UNIQUE, "b", "location")
    host.attach(ZETA).add(UNIQUE, "a", "zeta")
    host.attach(ACME).add(UNIQUE, "c", "acme")
    assert shown(location) == ["a=zeta", "b=location", "c=acme"]


def test_a_view_lists_every_kind_in_the_order_of_its_name(host: Scope) -> None:
    part = host.attach(ACME)
    part.add(UNIQUE, "u", "")
    part.add(LAYERED, "l", "")
    assert [(each.slot.name, each.key) for each in host.read()] == [("layered", "l"), ("unique", "u")]


# Duplicates


def test_a_duplicate_in_one_scope_names_both_owners_and_changes_nothing(host: Scope) -> None:
    host.attach(ACME).add(UNIQUE, "k", "first")
    second, revision = host.attach(ZETA), host.registry.revision
    with pytest.raises(DuplicateKeyError, match=r"entry key 'k'.*'acme' and 'zeta'") as caught:
        second.add(UNIQUE, "k", "second")
    assert (caught.value.key, caught.value.owners) == ("k", ("acme", "zeta"))
    assert (shown(host), host.registry.revision, second.contributions) == (["k=first"], revision, [])


def test_a_key_of_the_parent_is_refused_in_the_child(host: Scope) -> None:
    location = host.open_child("location", "/project")
    session = location.open_child("session", "ses")
    host.attach(ACME).add(UNIQUE, "k", "first")
    with pytest.raises(DuplicateKeyError, match=r"'acme' and 'zeta'"):
        session.attach(ZETA).add(UNIQUE, "k", "second")
    assert shown(session) == ["k=first"]


def test_a_key_of_a_child_is_refused_in_the_parent(host: Scope) -> None:
    location = host.open_child("location", "/project")
    location.attach(ACME).add(UNIQUE, "k", "first")
    with pytest.raises(DuplicateKeyError, match=r"'acme' and 'zeta'"):
        host.attach(ZETA).add(UNIQUE, "k", "second")
    assert (shown(location), shown(host)) == (["k=first"], [])


def test_two_siblings_may_have_the_same_key(host: Scope) -> None:
    one, two = host.open_child("location", "/one"), host.open_child("location", "/two")
    one.attach(ACME).add(UNIQUE, "k", "one")
    two.attach(ACME).add(UNIQUE, "k", "two")
    assert (shown(one), shown(two)) == (["k=one"], ["k=two"])


def test_an_owner_that_repeats_itself_is_named_once(host: Scope) -> None:
    part = host.attach(ACME)
    part.add(UNIQUE, "k", "")
    with pytest.raises(DuplicateKeyError, match=r"twice by 'acme'. Rename one of them.$"):
        part.add(UNIQUE, "k", "")


def test_a_refused_key_is_free_again_when_its_holder_leaves(host: Scope) -> None:
    held = host.attach(ACME).add(UNIQUE, "k", "first")
    held.close()
    host.attach(ZETA).add(UNIQUE, "k", "second")
    assert shown(host) == ["k=second"]


def test_a_contribution_claims_all_the_keys_it_says(host: Scope) -> None:
    host.attach(ACME).add(UNIQUE, "plugin/acme", "", claims=("a", "b"))
    with pytest.raises(DuplicateKeyError, match="'b'"):
        host.attach(ZETA).add(UNIQUE, "plugin/zeta", "", claims=("c", "b"))
    host.attach(ZETA).add(UNIQUE, "plugin/zeta", "", claims=("c",))


def test_one_duplicate_of_several_shows_none_of_them(host: Scope) -> None:
    host.attach(ACME).add(UNIQUE, "taken", "first")
    staged = host.attach(ZETA, staged=True)
    staged.add(UNIQUE, "free", "")
    staged.add(UNIQUE, "taken", "")
    with pytest.raises(DuplicateKeyError):
        staged.commit()
    assert shown(host) == ["taken=first"]


# Overlays


def test_the_latest_of_the_applications_overlays_wins_and_closing_it_reveals_the_one_before(host: Scope) -> None:
    handles = [host.attach(Owner(name, "host")).add(LAYERED, "k", name) for name in ("z", "a", "m")]
    seen = []
    for handle in reversed(handles):
        seen.append(in_effect(host))
        handle.close()
    assert (seen, in_effect(host)) == (["m", "a", "z"], None)


def test_a_hidden_overlay_that_closes_changes_nothing(host: Scope) -> None:
    first = host.attach(APPLICATION).add(LAYERED, "k", "first")
    host.attach(APPLICATION).add(LAYERED, "k", "second")
    first.close()
    assert in_effect(host) == "second"


def test_a_session_overlays_a_location_which_overlays_the_host(host: Scope) -> None:
    location = host.open_child("location", "/project")
    session = location.open_child("session", "ses")
    session.attach(BUILTIN).add(LAYERED, "k", "session")
    location.attach(ACME).add(LAYERED, "k", "location")
    host.attach(APPLICATION).add(LAYERED, "k", "host")
    assert [in_effect(each) for each in (session, location, host)] == ["session", "location", "host"]


_ORDERED: list[tuple[str, Rank]] = [("zzz", "core"), ("acme", "plugin"), ("zeta", "plugin"), ("app", "host")]


@pytest.mark.parametrize("owners", list(itertools.permutations(_ORDERED)))
def test_between_plugins_their_order_beats_the_time_of_registration(
    host: Scope, owners: tuple[tuple[str, Rank], ...]
) -> None:
    handles = {name: host.attach(Owner(name, rank)).add(LAYERED, "k", name) for name, rank in owners}
    seen = []
    for name in ("app", "zeta", "acme", "zzz"):
        seen.append(in_effect(host))
        handles[name].close()
    assert seen == ["app", "zeta", "acme", "zzz"]


def test_an_overlay_is_listed_once(host: Scope) -> None:
    host.attach(ACME).add(LAYERED, "k", "under")
    host.attach(ZETA).add(LAYERED, "k", "over")
    assert shown(host, LAYERED) == ["k=over"]


def test_closing_a_scope_reveals_what_the_one_around_it_shows(host: Scope) -> None:
    location = host.open_child("location", "/project")
    host.attach(ACME).add(LAYERED, "k", "host")
    handle = location.attach(ACME).add(LAYERED, "k", "location")
    assert in_effect(location) == "location"
    handle.close()
    assert in_effect(location) == "host"


# Identity and place


def test_identity_never_repeats_also_when_the_same_key_comes_back(host: Scope) -> None:
    part, identities = host.attach(ACME), []
    for _ in range(5):
        handle = part.add(LAYERED, "k", "")
        identities.append(handle.contribution.identity)
        handle.close()
    assert len(set(identities)) == 5


def test_a_contribution_knows_its_owner_its_key_its_lifetime_and_its_kind(host: Scope) -> None:
    session = host.open_child("location", "/project").open_child("session", "ses")
    session.attach(ACME).add(UNIQUE, "k", "value")
    (found,) = session.read().all(UNIQUE)
    assert (found.owner, found.key, found.lifetime, found.slot, found.value) == (ACME, "k", "session", UNIQUE, "value")


def test_what_inherits_keeps_its_place_and_gets_a_new_identity(host: Scope) -> None:
    old = host.attach(Owner("one", "host"))
    before = old.add(LAYERED, "k", "one").contribution
    host.attach(Owner("two", "host")).add(LAYERED, "k", "two")
    new = host.attach(Owner("one", "host"), staged=True)
    new.inherit(old)
    after = new.add(LAYERED, "k", "one again").contribution
    host.registry.swap(remove=old.end(), add=[(host, after)])
    assert (after.serial, in_effect(host)) == (before.serial, "two")
    assert after.identity != before.identity


def test_what_inherits_nothing_goes_on_top(host: Scope) -> None:
    old = host.attach(Owner("one", "host"))
    old.add(LAYERED, "other", "one")
    host.attach(Owner("two", "host")).add(LAYERED, "k", "two")
    new = host.attach(Owner("one", "host"), staged=True)
    new.inherit(old)
    host.registry.swap(remove=old.end(), add=[(host, new.add(LAYERED, "k", "new").contribution)])
    assert in_effect(host) == "new"


# Closing


async def test_closing_a_scope_undoes_exactly_its_registrations(host: Scope) -> None:
    one, two = host.open_child("location", "/one"), host.open_child("location", "/two")
    for scope, key in ((host, "host"), (one, "one"), (two, "two")):
        scope.attach(ACME).add(UNIQUE, key, "")
    await one.aclose()
    assert (shown(host), shown(two)) == (["host="], ["host=", "two="])
    await two.aclose()
    await host.aclose()


async def test_closing_one_owners_part_leaves_the_others(host: Scope) -> None:
    part = host.attach(ACME)
    part.add(UNIQUE, "acme", "")
    host.attach(ZETA).add(UNIQUE, "zeta", "")
    await part.aclose()
    assert shown(host) == ["zeta="]


async def test_the_contributions_are_gone_before_the_first_clean_up_runs(host: Scope) -> None:
    seen: list[list[str]] = []
    part = host.attach(ACME)
    part.add(UNIQUE, "a", "")
    part.on_close(lambda: seen.append(shown(host)))
    await host.aclose()
    assert seen == [[]]


async def test_clean_ups_run_in_reverse_across_owners_and_scopes(host: Scope) -> None:
    order: list[str] = []
    location = host.open_child("location", "/project")
    for scope, owner, name in ((host, ACME, "1"), (location, ACME, "3"), (host, ZETA, "2"), (location, ZETA, "4")):
        part = scope.attach(owner)
        part.on_close(functools.partial(order.append, f"{name}a"))
        part.on_close(functools.partial(order.append, f"{name}b"))
    await location.aclose()
    await host.aclose()
    assert order == ["4b", "4a", "3b", "3a", "2b", "2a", "1b", "1a"]


async def test_a_clean_up_that_overruns_or_raises_is_reported_and_the_others_run() -> None:
    faults: list[tuple[str, CleanupFault]] = []
    registry = Registry(cleanup_deadline=0.05, on_cleanup_fault=lambda part, fault: faults.append((part.name, fault)))
    done: list[str] = []
    host = registry.open()
    part = host.attach(ACME)

    async def raises() -> None:
        raise RuntimeError("no")

    part.on_close(lambda: done.append("last"))
    part.on_close(anyio.sleep_forever)
    part.on_close(raises)
    await host.aclose()
    assert done == ["last"]
    assert [(scope, type(fault.error)) for scope, fault in faults] == [("host", RuntimeError), ("host", type(None))]


async def test_clean_ups_run_when_whoever_closes_is_cancelled(host: Scope) -> None:
    done: list[str] = []

    async def slow() -> None:
        await anyio.sleep(0.01)
        done.append("slow")

    part = host.attach(ACME)
    part.add(UNIQUE, "a", "")
    part.on_close(lambda: done.append("plain"))
    part.on_close(slow)
    with anyio.CancelScope() as cancelled:
        cancelled.cancel()
        await host.aclose()
    assert (done, shown(host)) == (["slow", "plain"], [])


async def test_closing_twice_is_harmless(host: Scope) -> None:
    runs: list[str] = []
    part = host.attach(ACME)
    handle = part.add(UNIQUE, "a", "")
    part.on_close(lambda: runs.append("once"))
    for close in (part.aclose, part.aclose, host.aclose, host.aclose):
        await close()
    handle.close()
    assert runs == ["once"]


async def test_closing_a_registration_twice_does_not_take_back_its_successor(host: Scope) -> None:
    part = host.attach(ACME)
    handle = part.add(UNIQUE, "k", "first")
    handle.close()
    part.add(UNIQUE, "k", "second")
    handle.close()
    assert shown(host) == ["k=second"]


async def test_a_registration_may_be_closed_after_its_scope(host: Scope) -> None:
    handle = host.attach(ACME).add(UNIQUE, "k", "")
    await host.aclose()
    handle.close()
    assert shown(host) == []


@pytest.mark.behaviour("AT-07")
async def test_registering_into_a_closed_scope_raises_and_leaks_nothing(host: Scope) -> None:
    location = host.open_child("location", "/project")
    part = location.attach(ACME)
    await location.aclose()
    revision = host.registry.revision
    for register in (
        lambda: part.add(UNIQUE, "k", ""),
        lambda: part.add(LAYERED, "k", ""),
        lambda: part.add_tool("tool", _tool()),
        lambda: part.on_close(print),
        part.commit,
        lambda: location.attach(ZETA),
        lambda: location.open_child("session", "ses"),
    ):
        with pytest.raises(ScopeClosedError, match=r"has ended. (Register|Open)"):
            register()
    assert host.registry.revision == revision
    assert (list(location.read()), part.contributions, location.attachments, location.children) == ([], [], [], [])


async def test_registering_in_a_part_that_ended_raises_although_its_scope_is_open(host: Scope) -> None:
    part = host.attach(ACME)
    await part.aclose()
    with pytest.raises(ScopeClosedError, match="'acme' cannot register in the scope 'host'"):
        part.add(UNIQUE, "k", "")
    assert shown(host) == []


async def test_a_change_cannot_add_to_a_scope_that_has_ended(host: Scope) -> None:
    location = host.open_child("location", "/project")
    staged = location.attach(ACME, staged=True)
    contribution = staged.add(UNIQUE, "k", "").contribution
    host.attach(ACME).add(UNIQUE, "stays", "")
    await location.aclose()
    with pytest.raises(ScopeClosedError):
        host.registry.swap(remove=host.read().all(UNIQUE), add=[(location, contribution)])
    assert shown(host) == ["stays="]


async def test_a_scope_that_ended_is_not_kept_alive_by_reading_it(host: Scope) -> None:
    location = host.open_child("location", "/project")
    await location.aclose()
    assert location.read() is host.read()
    assert location not in host.registry._state.views


# Leaks


async def test_a_child_left_open_warns_and_is_closed_with_its_parent(host: Scope) -> None:
    order: list[str] = []
    location = host.open_child("location", "/project")
    session = location.open_child("session", "ses")
    for scope in (host, location, session):
        part = scope.attach(ACME)
        part.add(UNIQUE, scope.name, "")
        part.on_close(functools.partial(order.append, scope.name))
    with pytest.warns(ResourceWarning) as caught:
        await host.aclose()
    assert [str(each.message) for each in caught] == [
        "The scope 'ses' was left open inside 'host'.",
        "The scope '/project' was left open inside 'host'.",
    ]
    assert caught[0].filename == __file__
    assert (order, location.closed, session.closed) == (["ses", "/project", "host"], True, True)


async def test_a_warning_that_is_an_error_comes_after_everything_is_undone(host: Scope) -> None:
    done: list[str] = []
    part = host.open_child("location", "/project").attach(ACME)
    part.add(UNIQUE, "k", "")
    part.on_close(lambda: done.append("cleaned up"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ResourceWarning):
            await host.aclose()
    assert (done, shown(host)) == (["cleaned up"], [])


@pytest.mark.filterwarnings("default::ResourceWarning")
def test_a_scope_that_is_never_closed_warns_when_it_is_collected() -> None:
    scope = Registry().open("forgotten")
    scope.attach(ACME).add(UNIQUE, "k", "")
    del scope
    with pytest.warns(ResourceWarning, match="The scope 'forgotten' was never closed"):
        gc.collect()


async def test_a_scope_that_was_closed_is_collected_without_a_word() -> None:
    scope = Registry().open()
    scope.attach(ACME).add(UNIQUE, "k", "")
    await scope.aclose()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del scope
        gc.collect()


# Views


async def test_an_old_view_still_answers_after_a_change(host: Scope) -> None:
    part = host.attach(ACME)
    part.add(UNIQUE, "a", "1")
    part.add(LAYERED, "k", "1")
    before = host.read()
    host.attach(ZETA).add(LAYERED, "k", "2")
    await part.aclose()
    assert (shown(before), shown(before, LAYERED)) == (["a=1"], ["k=1"])
    assert (shown(host), shown(host, LAYERED)) == ([], ["k=2"])


def test_a_view_cannot_be_changed(host: Scope) -> None:
    host.attach(ACME).add(UNIQUE, "a", "")
    view = host.read()
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        view.revision = 7  # type: ignore[misc]
    assert isinstance(view.all(UNIQUE), tuple)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        view.all(UNIQUE)[0].value = ""  # type: ignore[misc]


def test_reading_twice_without_a_change_returns_the_same_view(host: Scope) -> None:
    host.attach(ACME).add(UNIQUE, "a", "")
    assert host.read() is host.read()


def test_a_scope_without_contributions_shares_the_view_around_it(host: Scope) -> None:
    session = host.open_child("location", "/project").open_child("session", "ses")
    host.attach(ACME).add(UNIQUE, "a", "")
    assert session.read() is host.read()


def test_a_change_in_one_location_leaves_the_views_of_others(host: Scope) -> None:
    one, two = host.open_child("location", "/one"), host.open_child("location", "/two")
    two.attach(ACME).add(UNIQUE, "two", "")
    before = (host.read(), two.read())
    one.attach(ACME).add(UNIQUE, "one", "")
    assert (host.read(), two.read()) == before


def test_asking_for_what_nobody_contributes_returns_nothing(host: Scope) -> None:
    assert (host.read().all(UNIQUE), host.read().find(UNIQUE, "k"), list(host.read())) == ((), None, [])


# Staging


def test_what_is_staged_shows_nothing_until_it_is_committed_and_then_all_of_it(host: Scope) -> None:
    staged, revision = host.attach(ACME, staged=True), host.registry.revision
    for key in "cab":
        staged.add(UNIQUE, key, "")
    assert (shown(host), host.registry.revision) == ([], revision)
    staged.commit()
    assert (shown(host), host.registry.revision) == (["a=", "b=", "c="], revision + 1)


def test_what_was_taken_back_while_staged_is_never_shown(host: Scope) -> None:
    staged = host.attach(ACME, staged=True)
    staged.add(UNIQUE, "a", "").close()
    staged.add(UNIQUE, "b", "")
    staged.commit()
    assert shown(host) == ["b="]


def test_after_the_commit_registrations_show_at_once(host: Scope) -> None:
    staged = host.attach(ACME, staged=True)
    staged.commit()
    staged.add(UNIQUE, "a", "")
    assert shown(host) == ["a="]


def test_committing_twice_is_harmless(host: Scope) -> None:
    staged = host.attach(ACME, staged=True)
    staged.add(UNIQUE, "a", "")
    staged.add(LAYERED, "k", "")
    staged.commit()
    staged.commit()
    assert (shown(host), len(host.registry._state.by_scope[host])) == (["a="], 2)


async def test_a_staged_part_that_is_closed_cleans_up_and_shows_nothing(host: Scope) -> None:
    done: list[str] = []
    staged = host.attach(ACME, staged=True)
    staged.add(UNIQUE, "a", "")
    staged.on_close(lambda: done.append("cleaned up"))
    await staged.aclose()
    assert (done, shown(host), host.attachments) == (["cleaned up"], [], [])


# What plugins are handed


def _tool(text: str = "") -> Tool:
    async def execute(call: ToolCall) -> ToolOutput:
        return ToolOutput(text=text)

    return Tool(description="Does it.", execute=execute)


@pytest.mark.parametrize("name", ["", "9lives", "two words", "a" * 65, "a/b"])
def test_a_tool_name_is_checked_before_it_is_registered(host: Scope, name: str) -> None:
    with pytest.raises(InvalidKeyError, match="is not a tool name"):
        host.attach(ACME).add_tool(name, _tool())
    assert list(host.read()) == []


def test_a_context_key_is_checked_before_it_is_registered(host: Scope) -> None:
    async def produce() -> list[ContextSource[str]]:
        return []

    with pytest.raises(InvalidKeyError, match="'date' has no namespace"):
        host.attach(ACME).add_context("date", produce)
    assert list(host.read()) == []


# Threads


def test_readers_in_other_threads_never_see_half_of_a_change() -> None:
    registry = Registry()
    host = registry.open()
    session = host.open_child("location", "/project").open_child("session", "ses")
    keys = [f"k{number}" for number in range(8)]
    seen_halves: list[list[str]] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            values = [each.value for each in session.read().all(UNIQUE)]
            if len(set(values)) > 1 or len(values) not in (0, len(keys)):
                seen_halves.append(values)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    part = _staged_all(host, keys, "0")
    part.commit()
    for number in range(1, 300):
        successor = _staged_all(host, keys, str(number))
        registry.swap(remove=part.end(), add=[(host, each) for each in successor.contributions])
        successor.staged = False
        part = successor
    stop.set()
    for reader in readers:
        reader.join()
    host.closed = session.closed = True
    assert seen_halves == []


def _staged_all(host: Scope, keys: list[str], value: str) -> Attachment:
    part = host.attach(ACME, staged=True)
    for key in keys:
        part.add(UNIQUE, key, value)
    return part


def test_readers_that_open_views_do_not_disturb_a_change_in_another_thread() -> None:
    host = Registry().open()
    part, errors = host.attach(ACME), []
    locations = [host.open_child("location", f"/{number}") for number in range(2000)]
    ready = threading.Barrier(2)

    def read() -> None:
        ready.wait()
        for location in locations:
            location.read()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            part.add(UNIQUE, "k", "").close()  # every view is made anew after this
            reader = threading.Thread(target=read)
            reader.start()
            ready.wait()
            errors += _errors_of(lambda: locations[0].attach(ACME).add(UNIQUE, "other", "").close(), while_=reader)
    finally:
        sys.setswitchinterval(interval)
    for scope in _all_scopes(host):
        scope.closed = True
    assert errors == []


def _errors_of(change: Callable[[], object], *, while_: threading.Thread) -> list[RuntimeError]:
    errors = []
    while while_.is_alive():
        try:
            change()
        except RuntimeError as error:
            errors.append(error)
    return errors


async def test_registering_in_threads_while_the_scope_closes_leaves_nothing_behind() -> None:
    for _ in range(30):
        host = Registry().open()
        part = host.attach(ACME)
        started = threading.Event()

        def register(part: Attachment = part, started: threading.Event = started) -> None:
            with contextlib.suppress(ScopeClosedError):
                for number in itertools.count():
                    part.add(LAYERED, f"k{number}", "")
                    started.set()

        thread = threading.Thread(target=register)
        thread.start()
        await anyio.to_thread.run_sync(started.wait)
        await host.aclose()
        await anyio.to_thread.run_sync(thread.join)
        assert (shown(host, LAYERED), part.contributions, host.registry._state.by_scope) == ([], [], {})
