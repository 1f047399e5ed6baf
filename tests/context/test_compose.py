"""Composing: what is registered is joined in key order, and a producer is asked anew each time."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_core.context.compose import compose
from opencode_core.context.observe import observe
from opencode_core.context.reconcile import initialize
from opencode_core.errors import ContextError, DuplicateKeyError, ScopeClosedError
from opencode_core.model.context import ContextProducer, ContextSource
from opencode_core.plugins.scope import Owner, Registry, Scope
from opencode_core.plugins.slots import CONTEXT_SOURCES
from tests.context.making import HERE

ACME, ZETA, DATE = Owner("acme"), Owner("zeta"), Owner("date", "core")


def source(key: str) -> ContextSource[str]:
    async def load() -> str:
        return key

    return ContextSource(key=key, load=load, baseline=lambda value: f"[{value}]", update=lambda before, now: now)


def produces(*keys: str) -> ContextProducer:
    async def produce() -> list[ContextSource[str]]:
        return [source(key) for key in keys]

    return produce


def contribute(scope: Scope, owner: Owner, *keys: str) -> None:
    sources = tuple(source(key) for key in keys)
    scope.attach(owner).add(CONTEXT_SOURCES, owner.key, sources, claims=keys)


async def keys_of(scope: Scope) -> list[str]:
    return [each.key for each in (await compose(scope.read())).sources]


@pytest.fixture
def host() -> Iterator[Scope]:
    scope = Registry().open()
    yield scope
    scope.closed = True


@pytest.mark.behaviour("SCR-01")
async def test_without_entries_the_baseline_and_the_snapshot_are_empty(host: Scope) -> None:
    context = await compose(host.read())
    baseline = initialize(await observe(context, HERE))
    assert (baseline.text, baseline.parts, baseline.snapshot) == ("", (), {})


@pytest.mark.behaviour("SCR-02")
async def test_entries_registered_out_of_order_are_combined_in_the_order_of_their_keys(host: Scope) -> None:
    for key in ("x/c", "x/a", "x/b"):
        host.attach(ACME).add_context(key, produces(f"{key}/2", f"{key}/1"))
    assert await keys_of(host) == ["x/a/2", "x/a/1", "x/b/2", "x/b/1", "x/c/2", "x/c/1"]


@given(order=st.permutations(["m/c", "m/a", "z/b", "core/z", "plugin/acme/x"]))
async def test_any_order_of_registration_gives_the_same_context(order: list[str]) -> None:
    host = Registry().open()
    for key in order:
        host.attach(Owner(f"o{len(key)}")).add_context(key, produces(f"{key}/source"))
    composed = await keys_of(host)
    host.closed = True
    assert composed == [f"{key}/source" for key in sorted(order)]


async def test_builtins_come_before_plugins_and_plugins_by_name(host: Scope) -> None:
    contribute(host, ZETA, "a/zeta")
    contribute(host, ACME, "z/acme-2", "a/acme-1")
    contribute(host, DATE, "z/date")
    assert await keys_of(host) == ["z/date", "z/acme-2", "a/acme-1", "a/zeta"]


async def test_an_entry_with_the_key_of_a_plugin_hides_nothing_of_it(host: Scope) -> None:
    contribute(host, ACME, "acme/declared")
    host.attach(ZETA).add_context("plugin/acme", produces("zeta/produced"))
    assert await keys_of(host) == ["acme/declared", "zeta/produced"]


@pytest.mark.behaviour("SCR-03")
async def test_a_producer_runs_again_each_time(host: Scope) -> None:
    runs: list[int] = []

    async def produce() -> list[ContextSource[str]]:
        runs.append(1)
        return [source(f"acme/run-{len(runs)}")]

    host.attach(ACME).add_context("acme/entry", produce)
    view = host.read()
    first, second = await compose(view), await compose(view)
    assert [each.sources[0].key for each in (first, second)] == ["acme/run-1", "acme/run-2"]


async def test_producers_run_concurrently(host: Scope) -> None:
    arrived, everybody = [], anyio.Event()

    async def produce() -> list[ContextSource[str]]:
        arrived.append(1)
        if len(arrived) == 3:
            everybody.set()
        await everybody.wait()
        return []

    for key in "abc":
        host.attach(ACME).add_context(f"acme/{key}", produce)
    with anyio.fail_after(5):
        await compose(host.read())


def raises(error: Exception) -> ContextProducer:
    async def produce() -> list[ContextSource[Any]]:
        raise error

    return produce


@pytest.mark.behaviour("SCR-04")
async def test_a_producer_that_fails_fails_the_composition_with_its_own_error(host: Scope) -> None:
    host.attach(ACME).add_context("acme/good", produces("acme/good"))
    host.attach(ZETA).add_context("zeta/bad", raises(LookupError("gone")))
    with pytest.raises(LookupError, match="gone") as caught:
        await compose(host.read())
    assert caught.value.__notes__ == ["This happened while the context entry 'zeta/bad' of 'zeta' was produced."]


async def test_of_several_that_fail_the_first_in_key_order_is_raised(host: Scope) -> None:
    async def late() -> list[ContextSource[Any]]:
        await anyio.sleep(0.01)
        raise ValueError("a")

    host.attach(ACME).add_context("acme/b", raises(LookupError("b")))
    host.attach(ACME).add_context("acme/a", late)
    with pytest.raises(ValueError, match="a"):
        await compose(host.read())


async def test_a_producer_that_is_cancelled_is_no_failure(host: Scope) -> None:
    async def forever() -> list[ContextSource[Any]]:
        await anyio.sleep_forever()
        return []

    host.attach(ACME).add_context("acme/slow", forever)
    with anyio.move_on_after(0.02) as scope:
        await compose(host.read())
    assert scope.cancelled_caught


@pytest.mark.behaviour("SCR-06")
async def test_registering_an_entry_key_again_fails_and_the_first_stays(host: Scope) -> None:
    host.attach(ACME).add_context("shared/entry", produces("acme/first"))
    with pytest.raises(DuplicateKeyError, match=r"context entry key 'shared/entry'.*'acme' and 'zeta'"):
        host.attach(ZETA).add_context("shared/entry", produces("zeta/second"))
    assert await keys_of(host) == ["acme/first"]


@pytest.mark.behaviour("SCR-07")
async def test_an_entry_is_gone_from_the_next_composition_when_its_scope_closes(host: Scope) -> None:
    location = host.open_child("location", "/project")
    session = location.open_child("session", "ses")
    host.attach(ACME).add_context("acme/host", produces("acme/host"))
    part = session.attach(ACME)
    part.add_context("acme/session", produces("acme/session"))
    before = await keys_of(session)
    await session.aclose()
    assert (before, await keys_of(location)) == (["acme/host", "acme/session"], ["acme/host"])
    with pytest.raises(ScopeClosedError):
        part.add_context("acme/late", produces("acme/late"))
    await location.aclose()


async def test_an_entry_is_gone_when_its_registration_closes(host: Scope) -> None:
    handle = host.attach(ACME).add_context("acme/entry", produces("acme/source"))
    handle.close()
    assert await keys_of(host) == []


@pytest.mark.parametrize("declare", [True, False], ids=["declared and produced", "produced twice"])
async def test_one_source_key_from_two_owners_names_both(host: Scope, declare: bool) -> None:
    register: Callable[[], object] = (
        (lambda: contribute(host, ACME, "shared/key"))
        if declare
        else (lambda: host.attach(ACME).add_context("acme/entry", produces("shared/key")))
    )
    register()
    host.attach(ZETA).add_context("zeta/entry", produces("shared/key"))
    with pytest.raises(DuplicateKeyError, match=r"context source key 'shared/key'") as caught:
        await compose(host.read())
    assert sorted(caught.value.owners) == ["acme", "zeta"]


async def test_a_producer_that_never_answers_is_an_error_and_nobodys_sources_are_gone(host: Scope) -> None:
    async def hangs() -> list[ContextSource[str]]:
        await anyio.sleep_forever()
        raise AssertionError

    attachment = host.attach(ACME)
    attachment.add_context("acme/a", hangs)
    attachment.add_context("acme/b", produces("acme/b"))
    with pytest.raises(TimeoutError):
        await compose(host.read(), deadline=0.01)


async def test_a_producer_that_waited_for_something_cancelled_is_an_error_and_nobodys_sources_are_gone(
    host: Scope, anyio_backend_name: str
) -> None:
    if anyio_backend_name != "asyncio":
        pytest.skip("Only asyncio can cancel what a task waits for.")

    async def waits() -> list[ContextSource[str]]:
        task = asyncio.ensure_future(asyncio.sleep(10))
        task.cancel()
        await task
        raise AssertionError

    attachment = host.attach(ACME)
    attachment.add_context("acme/a", waits)
    attachment.add_context("acme/b", produces("acme/b"))
    with pytest.raises(ContextError, match="'acme/a' of 'acme' was not produced: CancelledError"):
        await compose(host.read())
