"""Finds skills, tells the model which there are, and hands out what one says when the model asks for it by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from plugin_sdk import ContextSource, Location, PluginManifest, PluginScope, Skill, SkillSource, Tool, hookimpl
from plugins_builtin.skills.guidance import skill_guidance
from plugins_builtin.skills.local import LocalSkills
from plugins_builtin.skills.places import Address, Folder, Place, list_places
from plugins_builtin.skills.tool import skill_tool

if TYPE_CHECKING:
    from plugins_builtin.skills.remote import RemoteSkills


@attrs.frozen(kw_only=True)
class SkillsOptions:
    """What people configure.

    Attributes:
        sources: Where else skills are: folders, relative to the Location, and http or https addresses.
        refresh_seconds: How old copies of remote skills may be before their server is asked again.
    """

    sources: tuple[str, ...] = ()
    refresh_seconds: float = attrs.field(default=3_600.0, validator=attrs.validators.ge(0))


opencode_plugin = PluginManifest(
    options=SkillsOptions, keys={"skills": "sources"}, description="Offers skills, and the tool to load them."
)


@hookimpl
def opencode_context_sources(scope: PluginScope) -> list[ContextSource[Any]]:
    """Contributes the list of the skills that the selected agent may use."""
    return [skill_guidance(scope)]


@hookimpl
def opencode_tools(scope: PluginScope) -> dict[str, Tool]:
    """Contributes the tool that loads one."""
    return {"skill": skill_tool(scope)}


@hookimpl
def opencode_skills(location: Location, options: SkillsOptions, scope: PluginScope) -> Iterator[Skill | SkillSource]:
    """Contributes the skill about configuration, and every place where skills are looked for; later has priority."""
    yield _about_configuration()
    places = list_places(location, scope.host, options.sources, scope.warn)
    for number, source in enumerate(_sources(places, options, scope), start=1):
        # By its number and not by its place, so that a reload with other places leaves each where it stands.
        yield SkillSource(key=str(number), load=source.load)


def _about_configuration() -> Skill:
    return Skill(
        name="configure-opencode",
        description="Use when configuration of opencode-core is written, changed or explained: its files, their order, "
        "plugins, storage, instructions, skills, references, secrets and trust.",
        body=Path(__file__).with_name("configuration.md").read_text("utf-8"),
    )


def _sources(
    places: Iterable[Place], options: SkillsOptions, scope: PluginScope
) -> Iterator[LocalSkills | RemoteSkills]:
    """Yields who looks there; neighbouring folders are looked into together, and servers each on their own."""
    for is_remote, neighbours in groupby(places, key=lambda place: isinstance(place, Address)):
        if is_remote:
            yield from (_remote(each, options, scope) for each in neighbours if isinstance(each, Address))
        else:
            yield LocalSkills(folders=tuple(each for each in neighbours if isinstance(each, Folder)), scope=scope)


def _remote(address: Address, options: SkillsOptions, scope: PluginScope) -> RemoteSkills:
    from plugins_builtin.skills.remote import RemoteSkills  # most people have none

    return RemoteSkills(address=address, scope=scope, refresh_seconds=options.refresh_seconds)
