"""Tools: what was advertised in a turn is what runs, and a tool that changed since is refused."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import anyio
import anyio.abc
import pytest
from anyio.lowlevel import checkpoint

from opencode_core.errors import InvalidKeyError, ScopeClosedError, ToolFailure
from opencode_core.model.tool import Tool, ToolCall, ToolOutput
from opencode_core.plugins.scope import Attachment, Owner, Registry, Scope
from opencode_core.tools.registry import Completed, Materialization, Refused, Settlement, ToolDefinition, materialize

ACME, APPLICATION = Owner("acme"), Owner("app", "host")


def tool(text: str = "", *, permission: str = "", parameters: Mapping[str, Any] | None = None) -> Tool:
    async def execute(call: ToolCall) -> ToolOutput:
        return ToolOutput(text=text)

    return Tool(description=f"Says {text}.", execute=execute, permission=permission, parameters=parameters or {})


@pytest.fixture
def host() -> Iterator[Scope]:
    scope = Registry().open()
    yield scope
    for child in scope.children:
        child.closed = True
    scope.closed = True


def offered(scope: Scope) -> Materialization:
    return materialize(scope.read)


def names(scope: Scope) -> list[str]:
    return [each.name for each in offered(scope).definitions]


async def settle(turn: Materialization, name: str = "tool") -> Settlement:
    return await turn.settle(ToolCall(id="1", name=name))


async def said(turn: Materialization, name: str = "tool") -> str:
    """What a call that worked said, or why it was refused."""
    settlement = await settle(turn, name)
    return settlement.output.text if isinstance(settlement, Completed) else settlement.reason


# What is advertised


def test_tools_are_advertised_by_name_in_order(host: Scope) -> None:
    for name in ("c", "a", "b"):
        host.attach(Owner(name)).add_tool(name, tool(name, parameters={"title": name}))
    assert offered(host).definitions == tuple(
        ToolDefinition(name=name, description=f"Says {name}.", parameters={"title": name}) for name in "abc"
    )


@pytest.mark.behaviour("TR-07", "AT-05")
@pytest.mark.parametrize("owner", [ACME, APPLICATION], ids=["plugin", "application"])
async def test_a_tool_disappears_when_its_scope_closes(host: Scope, owner: Owner) -> None:
    location = host.open_child("location", "/project")
    location.attach(owner).add_tool("tool", tool())
    host.attach(owner).add_tool("other", tool())
    before = names(location)
    await location.aclose()
    assert (before, names(location), names(host)) == (["other", "tool"], ["other"], ["other"])


@pytest.mark.behaviour("TR-08", "AT-08")
@pytest.mark.parametrize("owner", [ACME, APPLICATION], ids=["plugin", "application"])
async def test_a_tool_stays_until_its_scope_closes_although_who_registered_it_was_cancelled(
    host: Scope, owner: Owner
) -> None:
    async def register(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            host.attach(owner).add_tool("tool", tool("here"))
            task_status.started()
            await checkpoint()

    async with anyio.create_task_group() as group:
        await group.start(register)
        group.cancel_scope.cancel()
    assert await said(offered(host)) == "here"
    await host.aclose()
    assert names(host) == []


@pytest.mark.behaviour("AT-06")
async def test_a_call_in_a_new_turn_after_the_removal_is_unknown_and_not_stale(host: Scope) -> None:
    part = host.attach(APPLICATION)
    part.add_tool("tool", tool())
    before = offered(host)
    await part.aclose()
    assert (await said(offered(host)), await said(before)) == ("unknown", "stale")


@pytest.mark.behaviour("AT-07")
async def test_a_tool_registered_in_a_closed_scope_is_refused_and_never_advertised(host: Scope) -> None:
    location = host.open_child("location", "/project")
    part = location.attach(APPLICATION)
    await location.aclose()
    with pytest.raises(ScopeClosedError):
        part.add_tool("tool", tool())
    assert (names(location), names(host)) == ([], [])


@pytest.mark.behaviour("AT-09")
async def test_what_the_caller_does_to_its_own_record_later_has_no_effect_also_after_later_changes(host: Scope) -> None:
    parameters: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    record = {"tool": tool("before", parameters=parameters)}
    part = host.attach(APPLICATION)
    for name, each in record.items():
        part.add_tool(name, each)
    record["tool"] = record["more"] = tool("after")
    parameters["properties"]["a"]["type"] = "number"
    del parameters["type"]
    host.attach(ACME).add_tool("other", tool())
    turn = offered(host)
    assert [each.name for each in turn.definitions] == ["other", "tool"]
    assert turn.definitions[1].parameters == {"type": "object", "properties": {"a": {"type": "string"}}}
    assert await said(turn) == "before"


@pytest.mark.behaviour("AT-10")
async def test_of_two_application_tools_of_one_name_the_latest_settles_and_closing_it_restores_the_earlier(
    host: Scope,
) -> None:
    host.attach(APPLICATION).add_tool("tool", tool("earlier"))
    latest = host.attach(APPLICATION)
    latest.add_tool("tool", tool("latest"))
    during = await said(offered(host))
    await latest.aclose()
    assert (during, await said(offered(host))) == ("latest", "earlier")


@pytest.mark.behaviour("AT-11")
@pytest.mark.parametrize("location_first", [True, False])
async def test_a_location_tool_of_the_same_name_settles_and_names_the_permission(
    host: Scope, location_first: bool
) -> None:
    location = host.open_child("location", "/project")
    registrations = [
        functools.partial(location.attach(ACME).add_tool, "tool", tool("location", permission="edit")),
        functools.partial(host.attach(APPLICATION).add_tool, "tool", tool("application", permission="run")),
    ]
    for register in registrations if location_first else reversed(registrations):
        register()
    assert await settle(offered(location)) == Completed(output=ToolOutput(text="location"), permission="edit")
    assert await settle(offered(host)) == Completed(output=ToolOutput(text="application"), permission="run")


async def test_a_tool_without_a_permission_is_asked_for_by_its_own_name(host: Scope) -> None:
    host.attach(ACME).add_tool("tool", tool())
    settlement = await settle(offered(host))
    assert isinstance(settlement, Completed)
    assert settlement.permission == "tool"


@pytest.mark.parametrize("name", ["", "1a", "a b", "a.b", "x" * 65])
def test_a_bad_name_is_refused_and_nothing_is_advertised(host: Scope, name: str) -> None:
    with pytest.raises(InvalidKeyError):
        host.attach(APPLICATION).add_tool(name, tool())
    assert names(host) == []


# What is settled


@pytest.mark.behaviour("TR-10")
async def test_a_name_that_was_not_advertised_is_refused_by_name(host: Scope) -> None:
    turn = offered(host)
    host.attach(ACME).add_tool("late", tool())
    assert await settle(turn, "late") == Refused(message="There is no tool called 'late'.", reason="unknown")


@pytest.mark.behaviour("TR-09")
async def test_a_tool_failure_is_what_the_model_is_told(host: Scope) -> None:
    async def execute(call: ToolCall) -> ToolOutput:
        raise ToolFailure("no such file")

    host.attach(ACME).add_tool("tool", Tool(description="", execute=execute))
    assert await settle(offered(host)) == Refused(message="no such file", reason="failed")


@pytest.mark.behaviour("TR-11")
async def test_a_defect_of_a_tool_comes_out_of_settlement(host: Scope) -> None:
    async def execute(call: ToolCall) -> ToolOutput:
        raise ZeroDivisionError

    host.attach(ACME).add_tool("tool", Tool(description="", execute=execute))
    with pytest.raises(ZeroDivisionError):
        await settle(offered(host))


@pytest.mark.behaviour("TR-14")
async def test_the_handler_is_told_who_calls(host: Scope) -> None:
    calls: list[ToolCall] = []

    async def execute(call: ToolCall) -> ToolOutput:
        calls.append(call)
        return ToolOutput()

    host.attach(ACME).add_tool("tool", Tool(description="", execute=execute))
    call = ToolCall(id="call", name="tool", session="ses", agent="build", message="msg")
    await offered(host).settle(call)
    assert calls == [call]


@pytest.mark.behaviour("TR-19")
async def test_an_unchanged_tool_runs_also_when_others_changed(host: Scope) -> None:
    host.attach(ACME).add_tool("tool", tool("ran"))
    turn = offered(host)
    host.attach(ACME).add_tool("other", tool())
    assert await said(turn) == "ran"


@pytest.mark.behaviour("TR-20")
async def test_a_tool_that_was_removed_since_is_stale(host: Scope) -> None:
    handle = host.attach(ACME).add_tool("tool", tool())
    turn = offered(host)
    handle.close()
    settlement = await settle(turn)
    assert isinstance(settlement, Refused)
    assert (settlement.reason, "'tool' changed since it was offered" in settlement.message) == ("stale", True)


@pytest.mark.behaviour("TR-21")
async def test_of_two_tools_only_the_one_that_was_replaced_is_stale(host: Scope) -> None:
    part = host.attach(ACME)
    part.add_tool("kept", tool("kept"))
    replaced = part.add_tool("replaced", tool("old"))
    turn = offered(host)
    replaced.close()
    part.add_tool("replaced", tool("new"))
    assert (await said(turn, "kept"), await said(turn, "replaced")) == ("kept", "stale")


async def test_a_tool_of_a_new_generation_is_stale_although_it_kept_its_place(host: Scope) -> None:
    old = host.attach(ACME)
    old.add_tool("tool", tool("old"))
    turn = offered(host)
    _reload(old, "new")
    assert (await said(turn), await said(offered(host))) == ("stale", "new")


def _reload(old: Attachment, text: str) -> None:
    scope = old.scope
    new = scope.attach(old.owner, staged=True)
    new.inherit(old)
    new.add_tool("tool", tool(text))
    scope.registry.swap(remove=old.end(), add=[(scope, each) for each in new.contributions])
    new.staged = False


@pytest.mark.behaviour("TR-22")
async def test_a_tool_that_closing_an_overlay_revealed_is_stale(host: Scope) -> None:
    host.attach(APPLICATION).add_tool("tool", tool("under"))
    over = host.attach(APPLICATION).add_tool("tool", tool("over"))
    turn = offered(host)
    over.close()
    assert (await said(turn), await said(offered(host))) == ("stale", "under")


@pytest.mark.behaviour("TR-23")
async def test_an_application_tool_is_stale_when_a_location_overrides_it(host: Scope) -> None:
    location = host.open_child("location", "/project")
    host.attach(APPLICATION).add_tool("tool", tool("application"))
    turn, elsewhere = offered(location), offered(host)
    location.attach(ACME).add_tool("tool", tool("location"))
    assert (await said(turn), await said(elsewhere)) == ("stale", "application")


@pytest.mark.behaviour("TR-24")
async def test_a_location_tool_is_stale_when_its_removal_reveals_an_application_tool(host: Scope) -> None:
    location = host.open_child("location", "/project")
    host.attach(APPLICATION).add_tool("tool", tool("application"))
    part = location.attach(ACME)
    part.add_tool("tool", tool("location"))
    turn = offered(location)
    await part.aclose()
    assert (await said(turn), await said(offered(location))) == ("stale", "application")


@pytest.mark.behaviour("TR-25")
async def test_a_call_that_started_completes_although_its_tool_is_removed_and_replaced(host: Scope) -> None:
    started, go_on = anyio.Event(), anyio.Event()

    async def execute(call: ToolCall) -> ToolOutput:
        started.set()
        await go_on.wait()
        return ToolOutput(text="old")

    part = host.attach(ACME)
    handle = part.add_tool("tool", Tool(description="", execute=execute))
    turn, results = offered(host), []

    async def call() -> None:
        results.append(await said(turn))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await started.wait()
        handle.close()
        part.add_tool("tool", tool("new"))
        go_on.set()
    assert (results, await said(turn), await said(offered(host))) == (["old"], "stale", "new")


async def test_a_cancelled_call_is_no_result(host: Scope) -> None:
    async def execute(call: ToolCall) -> ToolOutput:
        await anyio.sleep_forever()
        return ToolOutput()

    host.attach(ACME).add_tool("tool", Tool(description="", execute=execute))
    results: list[Settlement] = []
    with anyio.move_on_after(0.02) as scope:
        results.append(await settle(offered(host)))
    assert (scope.cancelled_caught, results) == (True, [])
