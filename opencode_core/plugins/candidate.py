"""What is known of a plugin before its code runs. Imports nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import attrs

from opencode_core.model.plugin import OriginKind
from opencode_core.plugins.scope import Owner


@attrs.frozen(kw_only=True)
class ModuleCode:
    """Code that Python finds by name: a module, or one attribute of it.

    Attributes:
        module: The module's full name.
        attribute: Where in it the plugin is; empty for the module itself.
        path: A folder to find it in, when it is not on Python's own path.
    """

    module: str
    attribute: str = ""
    path: Path | None = None


@attrs.frozen(kw_only=True)
class FileCode:
    """Code in one file, or in a folder with an ``__init__.py``, that is not on Python's path.

    Attributes:
        path: The file, or the package's folder.
        trusted: The bytes to compile, by path, when only these may run; None to read the files when loading.
    """

    path: Path
    trusted: Mapping[Path, bytes] | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True, eq=False)
class ObjectCode:
    """A plugin that a host made itself."""

    value: object = attrs.field(repr=False)


Code: TypeAlias = ModuleCode | FileCode | ObjectCode


@attrs.frozen(kw_only=True)
class Candidate:
    """A plugin that was found.

    Attributes:
        name: What people call it.
        origin: How it was found.
        location: Where its code is, for people.
        identity: The same for two candidates exactly when they are the same code.
        code: How to import it.
        distribution: The distribution that declares it, empty when there is none.
        version: That distribution's version.
        builtin: Whether it comes with the kernel.
        folder: The project folder that it is confined to; None when it serves every Location.
        watched: The folders and files whose change means new code; empty when it is not watched.
    """

    name: str
    origin: OriginKind
    location: str
    identity: str
    code: Code
    distribution: str = ""
    version: str = ""
    builtin: bool = False
    folder: Path | None = None
    watched: tuple[Path, ...] = ()

    @property
    def id(self) -> str:
        """Its name in the host: two projects may each have a plugin of the same name."""
        return self.name if self.folder is None else f"{self.name}@{self.folder}"

    @property
    def way(self) -> str:
        """By which way it was found, for people."""
        return f"{self.origin}: {self.location}"

    @property
    def owner(self) -> Owner:
        """Whom its contributions belong to."""
        return Owner(self.name, "core" if self.builtin else "plugin")


def name_from(text: str) -> str:
    """Returns the plugin name that a file, a folder, a module or a class suggests."""
    name = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")
    return name[:64] or "plugin"


def masked(text: str) -> str:
    """Returns a text for people, without the user name and password of an address in it."""
    return re.sub(r"//[^/@\s]+@", "//***@", text)
