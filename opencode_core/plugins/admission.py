"""Brings generations of plugins in, in steps: make one, stage what it contributes, show it. Keeps no list of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from contextvars import copy_context
from functools import partial
from typing import Any, TypeAlias

import attrs

from opencode_core.clock import Clock
from opencode_core.config import PluginSettings
from opencode_core.errors import DuplicateKeyError, PluginContractError, PluginError
from opencode_core.model.catalog import CatalogDraft
from opencode_core.plugins.calls import edit_catalog
from opencode_core.plugins.candidate import Candidate
from opencode_core.plugins.collect import collect_host, collect_location
from opencode_core.plugins.diagnostics import import_error
from opencode_core.plugins.options import configured_options, structure_options
from opencode_core.plugins.place import Place
from opencode_core.plugins.record import Generation, Record
from opencode_core.plugins.relay import Hooks, Relay
from opencode_core.plugins.replay import Transform
from opencode_core.plugins.scope import Attachment, Contribution, Registry, Scope
from opencode_core.plugins.slots import RUNTIME_HOOKS, BoundHook

Edit: TypeAlias = Transform[CatalogDraft] | None

HOOK_OF_SLOT = {
    "context_sources": "opencode_context_sources",
    "provider_adapters": "opencode_provider_adapters",
    "storage_backends": "opencode_storage_backends",
}


@attrs.frozen(kw_only=True, eq=False)
class Staged:
    """What one generation would contribute to one scope.

    Attributes:
        record: The plugin.
        generation: The code that was asked.
        attachment: Its part of the scope, which nobody sees yet.
        place: The Location, when the scope is one.
    """

    record: Record
    generation: Generation
    attachment: Attachment
    place: Place | None = None

    def transforms(self) -> dict[str, Edit]:
        """Returns how the plugin edits the Location's catalog, by its key in the order."""
        slot = RUNTIME_HOOKS["opencode_catalog"]
        place = self.place
        if place is None:
            return {}
        return {each.key: partial(_edit, each, place) for each in self.attachment.contributions if each.slot == slot}


def _edit(contribution: Contribution[BoundHook], place: Place, draft: CatalogDraft) -> None:
    copy_context().run(edit_catalog, contribution, draft, place.location)


def make_generation(
    record: Record,
    candidate: Candidate,
    load: Callable[[Candidate], object],
    *,
    relay: Relay,
    settings: PluginSettings,
    clock: Clock,
) -> Generation:
    """Imports and admits a plugin. The options of one that is confined to a project are known only in a Location.

    Raises:
        PluginError: It cannot be imported, or does not follow the contract, or its options are wrong.
    """
    start = clock.monotonic()
    plugin = load(candidate)
    seconds = clock.monotonic() - start
    hooks = _admit(plugin, candidate, relay)
    is_free = candidate.folder is None
    configured = configured_options(candidate.name, hooks.manifest, settings) if is_free else None
    try:
        options = None if configured is None else structure_options(candidate.name, hooks.manifest, configured)
    except BaseException:
        relay.dismiss(hooks)
        raise
    return Generation(
        number=record.last_number + 1,
        hooks=hooks,
        options=options,
        configured=configured,
        import_seconds=seconds,
    )


def _admit(plugin: object, candidate: Candidate, relay: Relay) -> Hooks:
    try:
        return relay.admit(plugin, name=candidate.name)
    except PluginError:
        raise
    except Exception as error:  # reading the plugin's own attributes can raise anything
        raise import_error(candidate.name, error) from error


async def stage(record: Record, generation: Generation, scope: Scope, place: Place | None, *, clock: Clock) -> Staged:
    """Asks a plugin what it contributes to a host or a Location; on any fault nothing of it stays.

    Raises:
        PluginError: A hook raised, or returned something else than it promised; or another plugin has its name there.
    """
    _refuse_same_name(record, scope)
    attachment = scope.attach(record.candidate.owner, staged=True)
    predecessor = record.attachments.get(scope)
    if predecessor is not None:
        attachment.inherit(predecessor)
    start = clock.monotonic()
    staged = Staged(record=record, generation=generation, attachment=attachment, place=place)
    try:
        # A copy, so that context variables which a hook sets do not keep its code alive in the host's context.
        copy_context().run(_collect, record, generation, staged)
    except BaseException:
        await attachment.aclose()
        raise
    record.collect_seconds += clock.monotonic() - start
    return staged


async def show(
    registry: Registry, places: Iterable[Place], *, staged: Sequence[Staged] = (), old: Sequence[Attachment] = ()
) -> None:
    """Shows what was staged in the place of what is old: contributions and catalogs, in one step, or not at all.

    The clean-ups of what is old are the caller's.

    Raises:
        PluginError: A key is claimed by somebody else, or a plugin's edits of a catalog failed.
    """
    async with AsyncExitStack() as stack:
        commits = []
        for place in places:
            edits = catalog_edits(place, staged, old)
            if edits:
                commits.append(await stack.enter_async_context(place.catalog.prepare(edits)))
        with registry.lock:
            _swap(registry, staged, old)
        for commit in commits:
            commit()


def catalog_edits(place: Place, staged: Iterable[Staged], old: Iterable[Attachment]) -> dict[str, Edit]:
    """Returns what changes in the order of a Location's catalog edits, by key: None where an edit goes."""
    slot = RUNTIME_HOOKS["opencode_catalog"]
    edits: dict[str, Edit] = {
        each.key: None
        for attachment in old
        if attachment.scope is place.scope
        for each in attachment.contributions
        if each.slot == slot
    }
    for part in staged:
        if part.place is place:
            edits.update(part.transforms())
    return edits


def _swap(registry: Registry, staged: Sequence[Staged], old: Sequence[Attachment]) -> None:
    try:
        registry.swap(
            remove=[each for attachment in old for each in attachment.contributions],
            add=[(part.attachment.scope, each) for part in staged for each in part.attachment.contributions],
        )
    except DuplicateKeyError as error:
        raise refused_for(error, staged) from error
    for part in staged:
        part.attachment.staged = False
    for attachment in old:
        attachment.end()


def _refuse_same_name(record: Record, scope: Scope) -> None:
    """Two plugins of one name would share one place in every order, and hide each other."""
    name, owner, own = record.name, record.candidate.owner, record.attachments.values()
    named = [each for part in scope.chain() for each in part.attachments if each.owner.name == name]
    if any(each.owner == owner and not each.staged and each not in own for each in named):
        raise PluginContractError(
            f"Another plugin that is called '{record.name}' serves '{scope.name}' already.",
            f"Rename one of them; the one at '{record.candidate.location}' contributes nothing there.",
            plugin=record.name,
        )


def refused_for(error: DuplicateKeyError, staged: Sequence[Staged]) -> PluginContractError:
    """Says which plugin was refused, and by which hook, because another one has its key."""
    name = error.owners[1]
    hook, place = None, None
    for part in staged:
        for each in part.attachment.contributions:
            if part.record.name == name and error.key in each.claims:
                hook = HOOK_OF_SLOT.get(each.slot.name)
                place = part.generation.hooks.place(hook) if hook else None
    said = f"The hook '{hook}' of the plugin" if hook else "The plugin"
    return PluginContractError(
        f"{said} '{name}' was refused: {error.problem}", error.remedy, plugin=name, hook=hook, place=place
    )


def options_in(record: Record, generation: Generation, place: Place) -> Any:
    """Returns a plugin's options as the settings of one Location have them.

    Raises:
        PluginOptionsError: What the Location's settings say does not fit.
    """
    configured = configured_options(record.name, generation.hooks.manifest, place.settings)
    if configured == generation.configured:
        return generation.options
    return structure_options(record.name, generation.hooks.manifest, configured)


def _collect(record: Record, generation: Generation, staged: Staged) -> None:
    hooks, attachment, place = generation.hooks, staged.attachment, staged.place
    if place is None:
        collect_host(hooks, attachment, options=generation.options)
        return
    options = options_in(record, generation, place)
    collect_location(
        hooks,
        attachment,
        location=place.location,
        options=options,
        confined=record.candidate.folder is not None,
    )
