"""Asks the hooks that run while a session runs, one plugin after the other. A fault costs only its own plugin."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import attrs

from opencode_core.errors import PluginContractError, PluginError, ToolFailure
from opencode_core.model.catalog import CatalogDraft
from opencode_core.model.event.base import Event
from opencode_core.model.location import Location
from opencode_core.model.permission import PermissionAnswer, PermissionRequest
from opencode_core.model.provider import ProviderRequest, ProviderTurn
from opencode_core.model.tool import ToolCall, ToolOutput
from opencode_core.plugins.diagnostics import hook_error
from opencode_core.plugins.scope import Contribution, View
from opencode_core.plugins.slots import RUNTIME_HOOKS, BoundHook

OnFault: TypeAlias = Callable[[Contribution[BoundHook], PluginError], None]

_FAULTS = (Exception, SystemExit)
"""What a plugin may raise without hurting anybody. Cancellation is not among them: it is never a fault."""


async def change_request(
    view: View, request: ProviderRequest, turn: ProviderTurn, *, on_fault: OnFault
) -> ProviderRequest:
    """Lets each plugin change parameters and headers, never the baseline."""

    def check(before: ProviderRequest, after: Any) -> str:
        if not isinstance(after, ProviderRequest):
            return "returned something else than a ProviderRequest or None"
        if after.system != before.system:
            return "changed the baseline, which only context sources may do"
        same = attrs.evolve(after, parameters=before.parameters, headers=before.headers) == before
        return "" if same else "changed more than parameters and headers"

    return await _chain(view, "opencode_request", request, check, on_fault, argument="request", turn=turn)  # type: ignore[no-any-return]


async def change_call(view: View, call: ToolCall, *, on_fault: OnFault) -> ToolCall:
    """Lets each plugin change the arguments of a call.

    Raises:
        ToolFailure: A plugin says that the call must not run.
    """

    def check(before: ToolCall, after: Any) -> str:
        if not isinstance(after, ToolCall):
            return "returned something else than a ToolCall or None"
        return "" if attrs.evolve(after, arguments=before.arguments) == before else "changed more than the arguments"

    return await _chain(view, "opencode_tool_before", call, check, on_fault, argument="call")  # type: ignore[no-any-return]


async def change_output(view: View, call: ToolCall, output: ToolOutput, *, on_fault: OnFault) -> ToolOutput:
    """Lets each plugin change the output of a call."""
    check = _must_be(ToolOutput)
    return await _chain(view, "opencode_tool_after", output, check, on_fault, argument="output", call=call)  # type: ignore[no-any-return]


async def change_text(view: View, text: str, part: str, *, on_fault: OnFault) -> str:
    """Lets each plugin change a text that is complete."""
    return await _chain(view, "opencode_text_complete", text, _must_be(str), on_fault, argument="text", part=part)  # type: ignore[no-any-return]


async def change_compaction(view: View, prompt: str, *, on_fault: OnFault) -> str:
    """Lets each plugin change the prompt that asks for a summary."""
    return await _chain(view, "opencode_compaction", prompt, _must_be(str), on_fault, argument="prompt")  # type: ignore[no-any-return]


async def answer_permission(view: View, request: PermissionRequest, *, on_fault: OnFault) -> PermissionAnswer | None:
    """Returns the first answer of a plugin; a plugin that fails asks the person."""
    for contribution in view.all(RUNTIME_HOOKS["opencode_permission"]):
        try:
            answer = await _call(contribution, request=request)
        except _FAULTS as error:
            on_fault(contribution, _fault(contribution, error))
            return "ask"
        if isinstance(answer, str) and answer in ("allow", "deny", "ask"):
            return answer  # type: ignore[return-value]
        if answer is not None:
            on_fault(contribution, _broken(contribution, "returned something else than allow, deny, ask or None"))
            return "ask"
    return None


async def tell(views: Iterable[View], event: Event, *, on_fault: OnFault, deadline: float = 5.0) -> None:
    """Tells every plugin that one of the views shows what happened, each once and none for longer than the deadline."""
    slot = RUNTIME_HOOKS["opencode_event"]
    told = {each.identity: each for view in views for each in view.all(slot)}
    for contribution in sorted(told.values(), key=lambda each: each.key):
        with anyio.move_on_after(deadline) as waiting:
            try:
                await _call(contribution, event=event)
            except _FAULTS as error:
                on_fault(contribution, _fault(contribution, error))
        if waiting.cancelled_caught:
            on_fault(contribution, _broken(contribution, f"did not return in {deadline:g} s"))


def pty_environment(view: View, location: Location, cwd: Path, *, on_fault: OnFault) -> dict[str, str]:
    """Returns what plugins add to the environment of a terminal; a later plugin overrides an earlier one."""
    overlay: dict[str, str] = {}
    for contribution in view.all(RUNTIME_HOOKS["opencode_pty_environment"]):
        try:
            answer = contribution.value.call(location=location, cwd=cwd)
            added = dict(answer) if isinstance(answer, Mapping) else answer
        except _FAULTS as error:
            on_fault(contribution, _fault(contribution, error))
            continue
        if added is None or _is_environment(added):
            overlay.update(added or {})
        else:
            on_fault(contribution, _broken(contribution, "returned something else than a mapping of text to text"))
    return overlay


def edit_catalog(contribution: Contribution[BoundHook], draft: CatalogDraft, location: Location) -> None:
    """Lets one plugin edit a draft of the catalog.

    Raises:
        PluginHookError: The hook raised; the caller drops the draft.
    """
    try:
        contribution.value.call(catalog=draft, location=location)
    except _FAULTS as error:
        raise _fault(contribution, error) from error


async def _chain(
    view: View,
    hook: str,
    value: Any,
    check: Callable[[Any, Any], str],
    on_fault: OnFault,
    *,
    argument: str,
    **offered: Any,
) -> Any:
    for contribution in view.all(RUNTIME_HOOKS[hook]):
        try:
            changed = await _call(contribution, **{argument: _own(value)}, **offered)
        except ToolFailure:
            if hook == "opencode_tool_before":
                raise
            on_fault(
                contribution,
                _broken(contribution, "raised ToolFailure, which only opencode_tool_before may do"),
            )
            continue
        except _FAULTS as error:
            on_fault(contribution, _fault(contribution, error))
            continue
        wrong = "" if changed is None else check(value, changed)
        if wrong:
            on_fault(contribution, _broken(contribution, wrong))
        elif changed is not None:
            value = changed
    return value


def _own(value: Any) -> Any:
    """Returns a copy for one plugin, so that what it changes in place is seen by nobody else."""
    return attrs.evolve(value) if attrs.has(type(value)) else value


async def _call(contribution: Contribution[BoundHook], **offered: Any) -> Any:
    answer = contribution.value.call(**offered)
    return await answer if inspect.isawaitable(answer) else answer


def _must_be(kind: type) -> Callable[[Any, Any], str]:
    return lambda _before, after: (
        "" if isinstance(after, kind) else f"returned something else than a {kind.__name__} or None"
    )


def _is_environment(answer: Any) -> bool:
    return isinstance(answer, dict) and all(
        isinstance(name, str) and isinstance(value, str) for name, value in answer.items()
    )


def _fault(contribution: Contribution[BoundHook], error: BaseException) -> PluginError:
    return hook_error(contribution.owner.name, contribution.value.name, error)


def _broken(contribution: Contribution[BoundHook], problem: str) -> PluginError:
    hook = contribution.value.name
    return PluginContractError(
        f"The hook '{hook}' of the plugin '{contribution.owner.name}' {problem}.",
        "Its answer was ignored; see docs/reference/hooks.md.",
        plugin=contribution.owner.name,
        hook=hook,
        place=contribution.value.hooks.place(hook),
    )
