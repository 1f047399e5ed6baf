"""Every error raised on purpose, each saying what happened, whose fault it is and what to do next. Decides nothing.

OpencodeError
├── ConfigError                 a configuration file or a configured value is wrong
├── InvalidKeyError             a key or a name does not follow its grammar
├── DuplicateKeyError           two contributions claim one key
├── ScopeClosedError            something was registered in a scope that has ended
├── ContextError
│   ├── InitializationBlockedError   a first baseline cannot be complete yet
│   └── EmptyRenderingError     a context source rendered nothing
├── SubscriberOverflowError     a live subscriber read too slowly
├── ControlError                a running host could not be reached or did not answer
├── TrustError                  the record of trusted projects cannot be read or written
└── PluginError                 one plugin is at fault, and is named
    ├── PluginNotFoundError     no plugin has that name, or its code is not there
    ├── PluginImportError       its code could not be imported
    ├── PluginContractError     it does not follow hookspecs.py
    ├── PluginHookError         one of its hooks raised
    ├── PluginOptionsError      its configured options are wrong
    ├── PluginApiError          it was written for another hook API version
    ├── PluginUntrustedError    it is project-local and nobody trusted it yet
    ├── PluginInstallError      its package could not be installed
    └── PluginReloadError       it cannot be reloaded

ToolFailure                     not an error of the framework: what a tool tells the model
"""

from __future__ import annotations

import attrs

__all__ = [
    "ConfigError",
    "ContextError",
    "ControlError",
    "DuplicateKeyError",
    "EmptyRenderingError",
    "InitializationBlockedError",
    "InvalidKeyError",
    "OpencodeError",
    "Place",
    "PluginApiError",
    "PluginContractError",
    "PluginError",
    "PluginHookError",
    "PluginImportError",
    "PluginInstallError",
    "PluginNotFoundError",
    "PluginOptionsError",
    "PluginReloadError",
    "PluginUntrustedError",
    "ScopeClosedError",
    "SubscriberOverflowError",
    "ToolFailure",
    "TrustError",
]


@attrs.frozen
class Place:
    """Where in a file something is wrong; lines and columns count from 1."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)


class OpencodeError(Exception):
    """The base of every error here.

    Attributes:
        problem: What happened, one sentence, names in quotes.
        remedy: What to do next, one sentence; empty when there is nothing to do.
        place: The file and line at fault, where there is one.
    """

    def __init__(self, problem: str, remedy: str = "", *, place: Place | None = None) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy
        self.place = place

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}".strip()


class ConfigError(OpencodeError):
    """A configuration file or a configured value is wrong."""


class InvalidKeyError(OpencodeError):
    """A key or a name does not follow its grammar."""


class DuplicateKeyError(OpencodeError):
    """Two contributions claim one key.

    Attributes:
        key: The key that both claim.
        owners: Who claims it: the one that was first, then the one that was refused; empty when it is not known.
    """

    def __init__(self, key: str, owners: tuple[str, str], *, what: str = "key") -> None:
        first, second = owners
        if first != second:
            problem = f"The {what} '{key}' is contributed by both '{first}' and '{second}'."
            remedy = "Rename one of them, or block one of the two plugins."
        else:
            problem = f"The {what} '{key}' is contributed twice" + (f" by '{first}'." if first else ".")
            remedy = "Rename one of them."
        super().__init__(problem, remedy)
        self.key = key
        self.owners = owners


class ScopeClosedError(OpencodeError):
    """Something was registered in a scope that has ended."""


class ContextError(OpencodeError):
    """The System Context could not be composed or rendered."""


class InitializationBlockedError(ContextError):
    """A first baseline cannot be complete yet, because sources are unavailable.

    Attributes:
        keys: All sources that are unavailable, in composition order.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        named = ", ".join(f"'{key}'" for key in keys)
        super().__init__(
            f"The first baseline is blocked because these context sources are unavailable: {named}.",
            "Try again when they can be loaded, or block the plugins that contribute them.",
        )
        self.keys = keys


class EmptyRenderingError(ContextError):
    """A context source rendered nothing where text is required."""

    def __init__(self, key: str, rendering: str) -> None:
        super().__init__(
            f"The {rendering} rendering of the context source '{key}' is empty.",
            f"Return text from '{rendering}', or make the source absent.",
        )
        self.key = key
        self.rendering = rendering


class SubscriberOverflowError(OpencodeError):
    """A live subscriber read too slowly and missed events."""


class ControlError(OpencodeError):
    """A running host could not be reached, or did not answer."""


class TrustError(OpencodeError):
    """The record of trusted projects cannot be read or written."""


class PluginError(OpencodeError):
    """One plugin is at fault.

    Attributes:
        plugin: The plugin's name.
        hook: The hook at fault, where there is one.
    """

    def __init__(
        self,
        problem: str,
        remedy: str = "",
        *,
        plugin: str,
        hook: str | None = None,
        place: Place | None = None,
    ) -> None:
        super().__init__(problem, remedy, place=place)
        self.plugin = plugin
        self.hook = hook


class PluginNotFoundError(PluginError):
    """No plugin has that name, or its code is not there."""


class PluginImportError(PluginError):
    """A plugin's code could not be imported."""


class PluginContractError(PluginError):
    """A plugin does not follow ``hookspecs.py``."""


class PluginHookError(PluginError):
    """One of a plugin's hooks raised."""


class PluginOptionsError(PluginError):
    """A plugin's configured options are wrong."""


class PluginApiError(PluginError):
    """A plugin was written for another hook API version."""


class PluginUntrustedError(PluginError):
    """A project-local plugin was not trusted yet, or changed since."""


class PluginInstallError(PluginError):
    """A plugin's package could not be installed."""


class PluginReloadError(PluginError):
    """A plugin cannot be reloaded."""


class ToolFailure(Exception):
    """What a tool raises to tell the model that the call did not work; the loop goes on."""
