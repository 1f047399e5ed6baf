"""Finds the plugins of a host and of its projects. Lets nothing of a project through before it is trusted."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import attrs

from opencode_core.clock import Clock
from opencode_core.config import Document, PluginSpec, plugin_settings
from opencode_core.errors import PluginError, PluginNotFoundError, PluginUntrustedError
from opencode_core.plugins.candidate import Candidate, FileCode, ModuleCode, masked, name_from
from opencode_core.plugins.loader import from_entry_points, from_project, from_spec, from_trusted_path, locate
from opencode_core.plugins.packages import Installer
from opencode_core.plugins.project_code import ProjectCode, Refusal, read_project_code
from opencode_core.plugins.trust import Changed, Trusted, TrustStore, Unknown, untrusted_error

Ask: TypeAlias = Callable[[ProjectCode, "Unknown | Changed"], Awaitable[bool]]
"""Asks the person whether they trust a project's code; True records it."""

_NO_SETTINGS = frozenset({"$schema", "storage"})
"""The keys of a project's document that no plugin is ever told, so that nobody has to trust them."""
REQUIREMENT = "pip:"


@attrs.frozen(kw_only=True)
class Refused:
    """A plugin that must not be imported, with the reason."""

    candidate: Candidate
    error: PluginError


@attrs.frozen(kw_only=True)
class Found:
    """What was found in one place.

    Attributes:
        candidates: What may be imported.
        refused: What may not.
        is_trusted: Whether the project's own settings count.
        ignored: The documents that say something about plugins and do not count.
    """

    candidates: tuple[Candidate, ...] = ()
    refused: tuple[Refused, ...] = ()
    is_trusted: bool = True
    ignored: tuple[str, ...] = ()

    @property
    def everything(self) -> tuple[Candidate, ...]:
        """What may be imported and what may not."""
        return (*self.candidates, *(each.candidate for each in self.refused))


@attrs.define(eq=False, repr=False, kw_only=True)
class Finder:
    """Where a host looks for plugins.

    Attributes:
        trust: What the person trusted so far.
        ask: How to ask the person; None to leave it to the command line.
        installer: How requirements are installed.
        clock: What time a decision is recorded with.
        entry_points: Whether installed distributions are searched.
    """

    trust: TrustStore
    ask: Ask | None
    installer: Installer
    clock: Clock
    entry_points: bool = True
    _trusted: dict[Path, tuple[Document, ...]] = attrs.field(factory=dict, init=False)

    async def in_host(self, specs: Iterable[PluginSpec]) -> Found:
        """Finds what is installed, and what the person configured."""
        found = from_entry_points() if self.entry_points else []
        refused: list[Refused] = []
        for spec in specs:
            await self._add(spec, found, refused)
        return Found(candidates=tuple(found), refused=tuple(refused))

    async def in_folder(self, folder: Path, *, root: Path, documents: Sequence[Document]) -> Found:
        """Finds what one folder of a project holds or configures.

        Raises:
            TrustError: The record of trusted projects cannot be read or written.
        """
        own = tuple(document for document in documents if document.folder == folder)
        code = self.read(folder, root=root, documents=own)
        specs = plugin_settings(own).load
        verdict = await self._verdict(code)
        refused = [_refused_file(refusal, folder) for refusal in code.refused]
        found = _without_refused(from_project(code), refused)
        self._trusted[folder] = own if isinstance(verdict, Trusted) else ()
        if not isinstance(verdict, Trusted):
            found += [_declared(spec, folder) for spec in specs]
            errors = [untrusted_error(each.name, folder, verdict) for each in found]
            untrusted = [Refused(candidate=each, error=error) for each, error in zip(found, errors, strict=True)]
            ignored = tuple(each.origin for each in own if each.values.keys() - _NO_SETTINGS)
            return Found(refused=(*refused, *untrusted), is_trusted=False, ignored=ignored)
        contents = {file.path: file.content for file in code.files}
        known = {each.candidate.location for each in refused}
        for spec in (each for each in specs if str(each.path) not in known):
            await self._add(spec, found, refused, folder=folder, root=root, contents=contents)
        return Found(candidates=tuple(found), refused=tuple(refused))

    def admits(self, document: Document) -> bool:
        """Whether what a document says about plugins counts: the person's, or a project's as it was trusted."""
        return document.folder is None or document in self._trusted.get(document.folder, ())

    def again(self, candidate: Candidate) -> Candidate:
        """Finds a plugin of the host as it is now, to reload it.

        Raises:
            PluginNotFoundError: It is no longer there.
        """
        if candidate.origin != "entry point":
            return candidate
        return pick(Found(candidates=tuple(self._entry_points_like(candidate))), candidate)

    @staticmethod
    def read(folder: Path, *, root: Path, documents: Sequence[Document]) -> ProjectCode:
        """Reads everything that a folder would have imported, and what it says about plugins."""
        own = [document for document in documents if document.folder == folder]
        declared = [spec.path for spec in plugin_settings(own).load if spec.path is not None]
        said = {
            f"{number}.{key}": document.values[key]
            for number, document in enumerate(own)
            for key in sorted(document.values.keys() - _NO_SETTINGS)
        }
        return read_project_code(folder, project_root=root, declared=declared, declarations=said)

    async def _verdict(self, code: ProjectCode) -> Trusted | Unknown | Changed:
        verdict = self.trust.verdict(code)
        if isinstance(verdict, Trusted) or self.ask is None or not await self.ask(code, verdict):
            return verdict
        self.trust.trust(code, when=self.clock.now().isoformat(timespec="seconds"))
        return Trusted()

    async def _add(
        self,
        spec: PluginSpec,
        found: list[Candidate],
        refused: list[Refused],
        *,
        folder: Path | None = None,
        root: Path | None = None,
        contents: Mapping[Path, bytes] | None = None,
    ) -> None:
        try:
            if spec.text.startswith(REQUIREMENT):
                _refuse_local_requirement(spec, folder)
                found += await self._installed(spec.text.removeprefix(REQUIREMENT).strip(), folder)
            elif folder is not None and contents is not None and spec.path is not None:
                found.append(_trusted_file(spec, spec.path, contents, folder))
            else:
                _refuse_unhashed(spec, root)
                found.append(from_spec(spec, origin_folder=folder))
        except PluginError as error:
            refused.append(Refused(candidate=_declared(spec, folder), error=error))

    async def _installed(self, requirement: str, folder: Path | None) -> list[Candidate]:
        target = await self.installer.install(requirement)
        found = [attrs.evolve(each, folder=folder) for each in from_entry_points([str(target)])]
        if not found:
            raise PluginNotFoundError(
                f"The distribution 'pip:{masked(requirement)}' declares no plugin.",
                "It needs an entry point in the group 'opencode.plugins'.",
                plugin=name_from(requirement),
            )
        return found

    def _entry_points_like(self, candidate: Candidate) -> list[Candidate]:
        path = candidate.code.path if isinstance(candidate.code, ModuleCode) else None
        return from_entry_points([str(path)] if path else None, only=candidate.distribution)


def pick(found: Found, candidate: Candidate) -> Candidate:
    """Returns a plugin as it was found again: at the same place, else under the same name.

    Raises:
        PluginNotFoundError: It is not there.
        PluginError: It is there and refused.
    """
    for attribute in ("location", "name"):
        wanted = getattr(candidate, attribute)
        for refused in found.refused:
            if getattr(refused.candidate, attribute) == wanted:
                raise refused.error
        for each in found.candidates:
            if getattr(each, attribute) == wanted:
                return each
    raise PluginNotFoundError(
        f"The plugin '{candidate.name}' is no longer found at '{candidate.location}'.",
        "Put it back, or remove it from the host.",
        plugin=candidate.name,
    )


def _declared(spec: PluginSpec, folder: Path | None) -> Candidate:
    """Returns a plugin that is named but not looked at."""
    path = spec.path
    text = path.stem if path else spec.text.removeprefix(REQUIREMENT).partition("@")[0]
    return Candidate(
        name=spec.name or name_from(text),
        origin="project" if folder else "module",
        location=str(path) if path else masked(spec.text),
        identity=f"declared:{spec.text}:{spec.origin}",
        code=FileCode(path=path) if path else ModuleCode(module=spec.text),
        folder=folder,
        watched=(path,) if path else (),
    )


def _trusted_file(spec: PluginSpec, path: Path, contents: Mapping[Path, bytes], folder: Path) -> Candidate:
    if path not in contents and path / "__init__.py" not in contents:
        raise PluginNotFoundError(
            f"The plugin path '{spec.text}' of {spec.origin} is not a plugin.",
            "Name a '.py' file, or a folder with an '__init__.py'.",
            plugin=name_from(path.stem),
        )
    return from_trusted_path(path, contents, folder)


def _refuse_local_requirement(spec: PluginSpec, folder: Path | None) -> None:
    """Refuses a requirement of a project that is a path: its code would be installed without being hashed."""
    requirement = spec.text.removeprefix(REQUIREMENT).strip()
    target = requirement.partition("@")[2].strip() if "@" in requirement else requirement
    if folder is not None and (target.startswith((".", "/", "~", "-", "file:")) or "\\" in target):
        raise PluginUntrustedError(
            f"The plugin '{name_from(requirement)}' is refused: a project may not have a local path installed.",
            f"Name it by its path in {spec.origin}, without 'pip:', so that what you trust is what runs.",
            plugin=name_from(requirement),
        )


def _refuse_unhashed(spec: PluginSpec, root: Path | None) -> None:
    """Refuses a module that a project names and that lies in the project: as a path, its code would be hashed."""
    module = spec.text.partition(":")[0]
    file = None if root is None else locate(module)
    if root is None or file is None or file.is_relative_to(Path(sys.prefix).resolve()):
        return
    if file.is_relative_to(root.resolve()):
        raise PluginUntrustedError(
            f"The plugin '{name_from(module)}' is refused: '{module}' is code of the project, not covered by trust.",
            f"Name it by its path in {spec.origin}, so that what you trust is what runs.",
            plugin=name_from(module),
        )


def _refused_file(refusal: Refusal, folder: Path) -> Refused:
    path = folder / refusal.relative
    parts = Path(refusal.relative).parts
    if parts[:1] == (".opencode",) and len(parts) > 2:
        path = folder.joinpath(*parts[:3])
    name = name_from(path.stem)
    error = PluginUntrustedError(
        f"The plugin '{name}' is refused: {refusal.reason}",
        "Put the code into the project itself.",
        plugin=name,
    )
    candidate = Candidate(
        name=name,
        origin="project",
        location=str(path),
        identity=f"refused:{path}",
        code=FileCode(path=path),
        folder=folder,
        watched=(path,),
    )
    return Refused(candidate=candidate, error=error)


def _without_refused(found: Iterable[Candidate], refused: Iterable[Refused]) -> list[Candidate]:
    """Drops a package of which one file is refused: no package is imported by half."""
    places = {each.candidate.location for each in refused}
    return [each for each in found if each.location not in places]
