"""THE CONTRACT: every hook that a plugin may implement, in the order of a run. No logic, and no hook exists elsewhere.

A plugin is a module, or an object, with functions marked ``@hookimpl``. A function names the arguments it wants, all
positional, and leaves out the others, so the contract can grow without breaking anybody. Every hook may name
``options``, the plugin's own validated options. A hook with ``scope`` in its signature is asked when a scope opens, and
registers there what it has to clean up when that scope ends.

The kernel asks one plugin at a time, so an exception is known to be this plugin's. It is kept as a diagnostic, and
costs only what "Raises" says: everybody else goes on. Hooks that say "May be async" accept ``async def``.
"""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from click import Group

    from opencode_core.model.agent import Agent
    from opencode_core.model.catalog import CatalogDraft
    from opencode_core.model.command import Command
    from opencode_core.model.context import ContextSource
    from opencode_core.model.event.base import Event
    from opencode_core.model.location import Location
    from opencode_core.model.permission import PermissionAnswer, PermissionRequest
    from opencode_core.model.provider import ProviderRequest, ProviderTurn
    from opencode_core.model.skill import Skill, SkillSource
    from opencode_core.model.tool import Tool, ToolCall, ToolOutput
    from opencode_core.ports.provider import ProviderAdapter
    from opencode_core.ports.scope import PluginScope
    from opencode_core.ports.storage import StorageFactory

PROJECT = "opencode"
ENTRY_POINT_GROUP = "opencode.plugins"
HOOK_API = 1
"""Grows by one whenever a hook or an argument is added; a plugin that needs a newer one is refused."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin as a hook; the function's name says which."""


@hookspec
def opencode_cli(cli: Group, options: Any) -> None:
    """Adds commands to the command line.

    When: The command line starts and needs to know all commands.

    Args:
        cli: A click group of the plugin's own; its commands join the others under their names.

    Returns:
        Nothing.

    Raises:
        Anything: This plugin's commands are missing, and one line says so; other commands work.

    Example:
        @hookimpl
        def opencode_cli(cli):
            @cli.command()
            def hello():
                "Greets."
                click.echo("hello")

    Since: 1

    Builtins: none
    """


@hookspec
def opencode_storage_backends(options: Any, scope: PluginScope) -> Mapping[str, StorageFactory]:
    """Offers storage backends.

    When: A host opens, before any store. A plugin that lives in a project may not have this hook: storage is chosen
        before a project is open.

    Returns:
        A mapping of URL scheme to a `StorageFactory` that opens such a URL. A scheme offered twice is an error. The
        laws of a store are in `plugin_sdk.storage`, and `plugin_sdk.testing.StorageContract` proves them.

    Raises:
        Anything: The plugin failed, and contributes nothing anywhere.

    Example:
        @hookimpl
        def opencode_storage_backends():
            async def open_redis(url, *, create=True, migrate=True):
                from acme_redis import RedisStorage  # imported when a store opens, not when a host does

                return await RedisStorage.connect(url, create=create, migrate=migrate)

            return {"redis": open_redis}

    Since: 1

    Builtins: storage_jsonfiles, storage_memory, storage_postgres, storage_sqlite
    """


@hookspec
def opencode_provider_adapters(options: Any, scope: PluginScope) -> Iterable[ProviderAdapter]:
    """Offers adapters that speak a model provider's wire protocol.

    When: A host opens; for a plugin that lives in a project, when a Location in that project opens.

    Returns:
        An iterable of adapters. A name offered twice is an error.

    Raises:
        Anything: The plugin failed, and contributes nothing anywhere; one that lives in a project is quarantined in
            this Location.

    Example:
        class EchoAdapter:
            name = "echo"

            async def stream(self, request):
                yield StreamEvent(kind="text-delta", text=str(request.messages[-1]))


        @hookimpl
        def opencode_provider_adapters():
            return [EchoAdapter()]

    Since: 1

    Builtins: none
    """


@hookspec
def opencode_context_sources(location: Location, options: Any, scope: PluginScope) -> Iterable[ContextSource[Any]]:
    """Contributes to what the model is told.

    When: A Location opens, and again when the plugin is reloaded; never per turn. The sources' ``load`` runs per turn.

    Args:
        location: Where sessions will run.

    Returns:
        An iterable of context sources. They are rendered in the order returned; plugins follow each other by name,
        builtins first. A key without a namespace, or one that another plugin has, is an error.

    Raises:
        Anything: The plugin is quarantined in this Location.

    Example:
        @hookimpl
        def opencode_context_sources(location):
            async def load():
                return location.directory.name

            yield ContextSource(
                key="acme/folder",
                load=load,
                baseline=lambda name: f"The folder is called {name}.",
                update=lambda before, now: f"The folder is now called {now}.",
            )

    Since: 1

    Builtins: date, environment, instructions, references, skills
    """


@hookspec
def opencode_tools(location: Location, options: Any, scope: PluginScope) -> Mapping[str, Tool]:
    """Contributes what the model may do.

    When: A Location opens, and again when the plugin is reloaded. Tools that appear later: ``scope.add_tool``.

    Args:
        location: Where sessions will run.

    Returns:
        A mapping of name to tool. A tool overlays one of the same name from a plugin earlier in the order
        (builtins first, then by name), and the earlier one is back when the later one goes.

    Raises:
        Anything: The plugin is quarantined in this Location.

    Example:
        @hookimpl
        def opencode_tools(location):
            async def execute(call):
                return ToolOutput(text=str(location.root))

            return {"project_root": Tool(description="Tells the project's root.", execute=execute)}

    Since: 1

    Builtins: skills
    """


@hookspec
def opencode_skills(location: Location, options: Any, scope: PluginScope) -> Iterable[Skill | SkillSource]:
    """Contributes knowledge that the model asks for by name.

    When: A Location opens, and again when the plugin is reloaded.

    Args:
        location: Where sessions will run.

    Returns:
        An iterable of skills, and of sources that look for skills each time somebody asks. A skill overlays one of the
        same name from a plugin earlier in the order.

    Raises:
        Anything: The plugin is quarantined in this Location.

    Example:
        @hookimpl
        def opencode_skills(location):
            yield Skill(name="release", description="How to release.", body="Tag it, then push the tag.")

    Since: 1

    Builtins: skills
    """


@hookspec
def opencode_agents(location: Location, options: Any, scope: PluginScope) -> Iterable[Agent]:
    """Contributes agents.

    When: A Location opens, and again when the plugin is reloaded.

    Args:
        location: Where sessions will run.

    Returns:
        An iterable of agents. One overlays an agent of the same name from a plugin earlier in the order.

    Raises:
        Anything: The plugin is quarantined in this Location.

    Example:
        @hookimpl
        def opencode_agents(location):
            yield Agent(name="reviewer", description="Reads, never writes.", prompt="Review the change.")

    Since: 1

    Builtins: none
    """


@hookspec
def opencode_commands(location: Location, options: Any, scope: PluginScope) -> Iterable[Command]:
    """Contributes prompt templates that a person calls by name.

    When: A Location opens, and again when the plugin is reloaded.

    Args:
        location: Where sessions will run.

    Returns:
        An iterable of commands. One overlays a command of the same name from a plugin earlier in the order.

    Raises:
        Anything: The plugin is quarantined in this Location.

    Example:
        @hookimpl
        def opencode_commands(location):
            yield Command(name="test", template="Run the tests and fix what fails. $ARGUMENTS")

    Since: 1

    Builtins: none
    """


@hookspec
def opencode_catalog(catalog: CatalogDraft, location: Location, options: Any) -> None:
    """Edits the catalog of providers and models.

    When: A Location opens, and again, on a fresh draft, whenever any plugin's edits may have changed.

    Args:
        catalog: The draft, after the edits of the plugins earlier in the order.
        location: Where sessions will run.

    Returns:
        Nothing.

    Raises:
        Anything: The plugin is quarantined in this Location, and none of its edits are in effect.

    Example:
        @hookimpl
        def opencode_catalog(catalog):
            catalog.provider("local", adapter="openai-compatible", url="http://127.0.0.1:8080/v1")
            catalog.model("local", "small", context_limit=8192)

    Since: 1

    Builtins: none
    """


@hookspec
def opencode_pty_environment(location: Location, cwd: Path, options: Any) -> Mapping[str, str]:
    """Adds variables to the environment of a new terminal.

    When: A terminal is created.

    Args:
        location: The Location that the request is for.
        cwd: The terminal's resolved working directory.

    Returns:
        A mapping of variable to value, over the caller's; a plugin later in the order overrides one earlier. Terminal
        invariants such as ``TERM`` are set last, by the kernel.

    Raises:
        Anything: Nothing of this plugin is added; the terminal opens.

    Example:
        @hookimpl
        def opencode_pty_environment(location, cwd):
            return {"PROJECT_ROOT": str(location.root)}

    Since: 1

    Builtins: none
    """


@hookspec
def opencode_request(
    request: ProviderRequest, turn: ProviderTurn, options: Any
) -> ProviderRequest | Awaitable[ProviderRequest | None] | None:
    """Changes parameters and headers of a request to a provider. May be async.

    When: A Provider Turn is prepared, after everything else about the request is known.

    Args:
        request: What would be sent, after the changes of the plugins earlier in the order.
        turn: Which turn it is for.

    Returns:
        The request with other parameters or headers, or None. Any other change is refused: an arbitrary change of
        what the model is told cannot be compared, and would break the provider's cache silently. Use a context source.

    Raises:
        Anything: The request stays as it was before this plugin.

    Example:
        @hookimpl
        def opencode_request(request):
            return attrs.evolve(request, headers={**request.headers, "X-Team": "platform"})

    Since: 1

    Builtins: none
    """


@hookspec
def opencode_tool_before(call: ToolCall, options: Any) -> ToolCall | Awaitable[ToolCall | None] | None:
    """Changes the arguments of a tool call before it runs. May be async.

    When: A call was validated, and before permission is asked.

    Args:
        call: The call, after the changes of the plugins earlier in the order.

    Returns:
        The call with other arguments, or None. Name and id cannot be changed.

    Raises:
        ToolFailure: The call does not run, and the model is told why.
        Anything: The call stays as it was before this plugin.

    Example:
        @hookimpl
        async def opencode_tool_before(call):
            if call.name == "bash" and "rm -rf /" in str(call.arguments.get("command")):
                raise ToolFailure("That command is not allowed here.")

    Since: 1

    Builtins: none
    """


@hookspec
def opencode_tool_after(
    call: ToolCall, output: ToolOutput, options: Any
) -> ToolOutput | Awaitable[ToolOutput | None] | None:
    """Changes the output of a tool call before it is bounded and stored. May be async.

    When: A call succeeded.

    Args:
        call: The call as it ran.
        output: Its output, after the changes of the plugins earlier in the order.

    Returns:
        The changed output, or None.

    Raises:
        Anything: The output stays as it was before this plugin.

    Example:
        @hookimpl
        def opencode_tool_after(call, output):
            return attrs.evolve(output, text=output.text.replace("\\r\\n", "\\n"))

    Since: 1

    Builtins: none
    """


@hookspec
def opencode_permission(
    request: PermissionRequest, options: Any
) -> PermissionAnswer | Awaitable[PermissionAnswer | None] | None:
    """Answers a permission request. May be async.

    When: A permission is checked and no configured rule denies it. The first plugin in the order that answers wins.

    Args:
        request: What is asked.

    Returns:
        ``allow``, ``deny``, ``ask``, or None for no opinion. It can never lift a configured deny.

    Raises:
        Anything: Counts as ``ask``, so that a broken guard never lets something through.

    Example:
        @hookimpl
        def opencode_permission(request):
            if request.action == "bash" and request.resources == ("git status",):
                return "allow"

    Since: 1

    Builtins: none
    """


@hookspec
def opencode_text_complete(text: str, part: str, options: Any) -> str | Awaitable[str | None] | None:
    """Changes a text of the model when it is complete. May be async.

    When: A text ended, before it is stored as complete.

    Args:
        text: The text, after the changes of the plugins earlier in the order.
        part: The id of the part that it becomes.

    Returns:
        The changed text, or None.

    Raises:
        Anything: The text stays as it was before this plugin.

    Example:
        @hookimpl
        def opencode_text_complete(text):
            return text.rstrip()

    Since: 1

    Builtins: none
    """


@hookspec
def opencode_compaction(prompt: str, options: Any) -> str | Awaitable[str | None] | None:
    """Changes the prompt that asks for a summary. May be async.

    When: A compaction starts.

    Args:
        prompt: The prompt, after the changes of the plugins earlier in the order.

    Returns:
        The changed prompt, or None.

    Raises:
        Anything: The prompt stays as it was before this plugin.

    Example:
        @hookimpl
        def opencode_compaction(prompt):
            return prompt + " Keep every ticket number."

    Since: 1

    Builtins: none
    """


@hookspec
def opencode_event(event: Event, options: Any) -> Awaitable[None] | None:
    """Is told what happened. May be async.

    When: After the change is durable and visible.

    Args:
        event: What happened.

    Returns:
        Nothing.

    Raises:
        Anything: Kept as a diagnostic, as is not returning within 5 seconds; others are told all the same.

    Example:
        @hookimpl
        def opencode_event(event):
            if isinstance(event, PluginReloaded):
                print(event.plugin, event.generation)

    Since: 1

    Builtins: none
    """
