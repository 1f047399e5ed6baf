"""What a host imports: the host, the nouns and the errors. Each is loaded when it is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opencode_core.bus import Bus as Bus
    from opencode_core.errors import ConfigError as ConfigError
    from opencode_core.errors import ControlError as ControlError
    from opencode_core.errors import DuplicateKeyError as DuplicateKeyError
    from opencode_core.errors import InitializationBlockedError as InitializationBlockedError
    from opencode_core.errors import InvalidKeyError as InvalidKeyError
    from opencode_core.errors import OpencodeError as OpencodeError
    from opencode_core.errors import PluginError as PluginError
    from opencode_core.errors import ScopeClosedError as ScopeClosedError
    from opencode_core.errors import SubscriberOverflowError as SubscriberOverflowError
    from opencode_core.errors import ToolFailure as ToolFailure
    from opencode_core.errors import TrustError as TrustError
    from opencode_core.host import Host as Host
    from opencode_core.model.event import CatalogUpdated as CatalogUpdated
    from opencode_core.model.event import Event as Event
    from opencode_core.model.event import PluginAdded as PluginAdded
    from opencode_core.model.event import PluginFailed as PluginFailed
    from opencode_core.model.event import PluginReloaded as PluginReloaded
    from opencode_core.model.event import PluginRemoved as PluginRemoved
    from opencode_core.model.location import Location as Location
    from opencode_core.model.plugin import Diagnostic as Diagnostic
    from opencode_core.model.plugin import PluginStatus as PluginStatus

_HOME = {
    "Bus": "bus",
    "CatalogUpdated": "model.event",
    "ConfigError": "errors",
    "ControlError": "errors",
    "Diagnostic": "model.plugin",
    "DuplicateKeyError": "errors",
    "Event": "model.event",
    "Host": "host",
    "InitializationBlockedError": "errors",
    "InvalidKeyError": "errors",
    "Location": "model.location",
    "OpencodeError": "errors",
    "PluginAdded": "model.event",
    "PluginError": "errors",
    "PluginFailed": "model.event",
    "PluginReloaded": "model.event",
    "PluginRemoved": "model.event",
    "PluginStatus": "model.plugin",
    "ScopeClosedError": "errors",
    "SubscriberOverflowError": "errors",
    "ToolFailure": "errors",
    "TrustError": "errors",
}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("opencode-core")
    if name not in _HOME:
        raise AttributeError(f"module 'opencode_core' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"opencode_core.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
