"""What a plugin says about itself, and what is known about it. Loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

Severity: TypeAlias = Literal["error", "warning"]
PluginState: TypeAlias = Literal["active", "quarantined", "failed", "blocked", "untrusted", "removed"]
OriginKind: TypeAlias = Literal["entry point", "module", "file", "package", "project", "host"]


@attrs.frozen(kw_only=True)
class PluginManifest:
    """What a plugin may declare as its attribute ``opencode_plugin``; every field has a default.

    Attributes:
        api: The newest hook API version that it needs; 0 when any will do.
        options: The attrs class of its options; None when it takes none.
        keys: The top-level keys of the configuration that are this plugin's, by the option that they set; a list there
            comes before one under ``plugins.<name>``, and any other value there is overridden by it.
        description: What it is for, one line, shown by ``opencode-core plugins list``.
    """

    api: int = 0
    options: type | None = None
    keys: Mapping[str, str] = attrs.field(factory=dict)
    description: str = ""


@attrs.frozen(kw_only=True)
class Diagnostic:
    """One thing that went wrong with a plugin, in words that outlive the code that raised it.

    Attributes:
        plugin: The plugin's name.
        problem: What happened, one sentence.
        remedy: What to do next, one sentence.
        severity: ``error`` when it took something away, ``warning`` when everything still works.
        scope: Where it was noticed, such as ``host`` or a Location's directory.
        hook: The hook at fault, where there is one.
        file: The file at fault, where it is known.
        line: The line in that file.
        traceback: The formatted traceback, never the exception, which would keep the code alive.
    """

    plugin: str
    problem: str
    remedy: str = ""
    severity: Severity = "error"
    scope: str = "host"
    hook: str | None = None
    file: str | None = None
    line: int | None = None
    traceback: str = attrs.field(default="", repr=False)

    @property
    def place(self) -> str:
        """``file:line`` as far as it is known."""
        return ":".join(str(part) for part in (self.file, self.line) if part is not None)


@attrs.frozen(kw_only=True)
class PluginStatus:
    """What ``plugins list`` shows of one plugin.

    Attributes:
        name: Its name.
        state: What became of it; ``quarantined`` or ``blocked`` when every open Location keeps it out.
        origin: How it was found.
        location: Where its code is: a file, a module, or what the host handed over.
        builtin: Whether it comes with the kernel's own distribution.
        version: The version of its distribution, where it has one.
        generation: Which generation of its code answers; counts from 1, 0 when none does.
        hooks: The hooks it implements, sorted.
        contributions: What it contributes in the scopes that are open, as ``kind: key``, sorted.
        description: What it says it is for.
        import_seconds: How long importing it took.
        collect_seconds: How long its contribution hooks took, over all open scopes.
        also_found: Other ways by which the same plugin was found.
        folder: The project folder that it is confined to; None when it serves every Location.
        quarantined: The open Locations that it is kept out of, because a hook failed there, sorted.
        diagnostics: What went wrong, oldest first.
    """

    name: str
    state: PluginState
    origin: OriginKind
    location: str
    builtin: bool = False
    version: str = ""
    generation: int = 0
    hooks: tuple[str, ...] = ()
    contributions: tuple[str, ...] = ()
    description: str = ""
    import_seconds: float = 0.0
    collect_seconds: float = 0.0
    also_found: tuple[str, ...] = ()
    folder: str | None = None
    quarantined: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
