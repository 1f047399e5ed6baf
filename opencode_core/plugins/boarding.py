"""Brings aboard the plugins that were found in a host and its projects, and takes off those that are gone."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from opencode_core.config import Documents, PluginSettings, PluginSpec, plugin_settings
from opencode_core.errors import ConfigError, PluginError, PluginNotFoundError, PluginUntrustedError
from opencode_core.model.location import Location
from opencode_core.plugins.candidate import Candidate, FileCode
from opencode_core.plugins.directory import PluginDirectory
from opencode_core.plugins.finder import Finder, Found, pick
from opencode_core.plugins.loader import once
from opencode_core.plugins.place import Place, is_blocked
from opencode_core.plugins.record import Record
from opencode_core.plugins.roster import suggest


@attrs.frozen
class Survey:
    """What a project holds and says about plugins, by folder from the root down."""

    location: Location
    found: dict[Path, Found]
    settings: PluginSettings


@attrs.define(eq=False, repr=False, kw_only=True)
class Boarding:
    """Who comes aboard a host.

    Attributes:
        directory: Where plugins live once they are aboard.
        finder: Where they are looked for.
        settings: What the person says about them.
        documents: Where settings come from.
    """

    directory: PluginDirectory
    finder: Finder
    settings: PluginSettings
    documents: Documents

    async def board_host(self, specs: Sequence[PluginSpec], objects: Sequence[Candidate], survey: Survey) -> None:
        """Loads what is installed, configured by the person, or handed over by the host.

        Args:
            specs: What the host names, beside what is configured.
            objects: What the host made itself.
            survey: The project the host is opened in, whose plugins the settings may name too.

        Raises:
            ConfigError: A setting names a plugin that was not found.
            PluginError: A plugin failed, and the settings are strict.
        """
        found = await self.finder.in_host([*self.settings.load, *specs])
        found = attrs.evolve(found, candidates=(*found.candidates, *objects))
        self._check_names([found, *survey.found.values()])
        await self.board(found)

    async def survey(self, location: Location) -> Survey:
        """Looks at everything in a project that concerns plugins, reading the configuration once.

        Raises:
            ConfigError: The configuration in it is wrong.
            TrustError: The record of trusted projects cannot be read or written.
        """
        documents = self.documents.of(location)
        found = {
            folder: await self.finder.in_folder(folder, root=location.root, documents=documents)
            for folder in location.folders
        }
        settings = plugin_settings(filter(self.finder.admits, documents))
        for folder, part in found.items():
            if part.ignored:
                self.directory.warn("", *_ignored(folder, part.ignored))
        return Survey(location, found, settings)

    async def board(self, found: Found, place: Place | None = None) -> None:
        """Loads what was found and keeps a list of what is refused or blocked; what is aboard already stays as it is.

        Raises:
            PluginError: A plugin failed, and the settings are strict.
        """
        candidates, again = once(found.candidates)
        for refused in found.refused:
            await self._refuse(refused.candidate, refused.error)
        for candidate in sorted(candidates, key=lambda each: (not each.builtin, each.name)):
            await self._load_one(candidate, place)
        for candidate in again:
            self.directory.found_again(candidate)

    async def find_again(self, candidate: Candidate) -> Candidate:
        """Finds a plugin as it is now, to reload it.

        Raises:
            ConfigError: The configuration of its project is wrong.
            TrustError: The record of trusted projects cannot be read or written.
            PluginError: It is no longer there, not trusted, or refused.
        """
        places = [place for place in self.directory.places if place.is_in(candidate.folder)]
        if candidate.folder is None or not places:
            return self.finder.again(candidate)
        location = places[0].location
        documents = self.documents.of(location)
        found = await self.finder.in_folder(candidate.folder, root=location.root, documents=documents)
        if found.is_trusted:
            self._apply_settings(candidate.folder)
        return pick(found, candidate)

    async def refresh(self) -> None:
        """Looks at the projects' plugin folders again: new plugins are added, those that are gone are removed.

        Raises:
            ConfigError: The configuration of a project is wrong.
            TrustError: The record of trusted projects cannot be read or written.
            PluginError: A plugin failed, and the settings are strict.
        """
        done: set[Path] = set()
        for place in self.directory.places:
            documents = self.documents.of(place.location)
            for folder in place.folders:
                if folder not in done and place in self.directory.places:
                    done.add(folder)
                    found = await self.finder.in_folder(folder, root=place.location.root, documents=documents)
                    self._apply_settings(folder)
                    await self._match(folder, found, place)

    def _apply_settings(self, folder: Path) -> None:
        for place in self.directory.places:
            if place.is_in(folder):
                documents = self.documents.of(place.location)
                place.settings = plugin_settings(filter(self.finder.admits, documents))

    async def _load_one(self, candidate: Candidate, place: Place | None) -> None:
        known = self._known(candidate)
        if known is not None and known.state not in ("untrusted", "blocked"):
            self.directory.found_again(candidate)
        elif is_blocked(candidate, self.settings) or (place is not None and not place.admits(candidate)):
            await self.directory.refuse(candidate, "blocked")
        else:
            await self.directory.load(candidate, quarantine=True)

    def _known(self, candidate: Candidate) -> Record | None:
        entries = self.directory.entries()
        return next((each for each in entries if each.candidate.identity == candidate.identity), None)

    async def _refuse(self, candidate: Candidate, error: PluginError) -> None:
        known = self._known(candidate)
        if known is not None and known.generation is not None and known.candidate.folder is None:
            self.directory.found_again(candidate)  # the person named the same code, so it needs no trust of a project
            return
        if known is not None and any(each.problem == error.problem for each in known.diagnostics):
            return
        is_trust = isinstance(error, PluginUntrustedError)
        await self.directory.refuse(candidate, "untrusted" if is_trust else "failed", error)
        if self.settings.strict and not is_trust:
            raise error

    async def _match(self, folder: Path, found: Found, place: Place) -> None:
        for entry in self.directory.entries():
            if entry.candidate.folder == folder and _is_gone(entry.candidate, found):
                with suppress(PluginNotFoundError):  # somebody else saw that it is gone
                    await self.directory.remove(entry.id)
        await self.board(found, place)

    def _check_names(self, found: Iterable[Found]) -> None:
        names = {each.name for part in found for each in part.everything}
        for key, listed in (
            ("plugin_allow", self.settings.allow or ()),
            ("plugin_block", self.settings.block),
        ):
            for name in listed:
                if name not in names:
                    hint = suggest(name, names)
                    raise ConfigError(f"The setting '{key}' names the plugin '{name}', which was not found.", hint)

    def warn_about_names(self, place: Place) -> None:
        """Says which names in the lists of a trusted project are no plugin's; the person's own are refused earlier."""
        names = {status.name for status in self.directory.list()}
        for name in sorted({*(place.settings.allow or ()), *place.settings.block} - names):
            problem = (
                f"The settings of the project '{place.location.root}' name the plugin '{name}', which was not found."
            )
            self.directory.warn(name, problem, suggest(name, names))

    def warn_about_options(self) -> None:
        """Says which options are configured for a plugin that is not aboard.

        Raises:
            ConfigError: There are some, and the settings are strict.
        """
        names = {status.name for status in self.directory.list()}
        for name in sorted(set(self.settings.options) - names):
            problem = f"Options are configured for the plugin '{name}', which was not found."
            if self.settings.strict:
                raise ConfigError(problem, suggest(name, names))
            self.directory.warn(name, problem, suggest(name, names))


def _ignored(folder: Path, origins: tuple[str, ...]) -> tuple[str, str]:
    listed = ", ".join(f"'{origin}'" for origin in origins)
    return (
        f"What {listed} says is ignored, because the project '{folder}' is not trusted.",
        f"Read it, then run `opencode-core plugins trust {shlex.quote(str(folder))}`.",
    )


def _is_gone(candidate: Candidate, found: Found) -> bool:
    """Whether a plugin of a project is not there any more; while that is not trusted, only its files can say."""
    if any(each.identity == candidate.identity for each in found.candidates):
        return False
    if not found.is_trusted:
        return isinstance(candidate.code, FileCode) and not candidate.code.path.exists()
    return all(each.candidate.location != candidate.location for each in found.refused)
