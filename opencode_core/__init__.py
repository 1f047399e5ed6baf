"""What a host imports: the host, the nouns and the errors. Each is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_core.lazy import lazy

if TYPE_CHECKING:
    from opencode_core.bus import Bus
    from opencode_core.errors import (
        ConfigError,
        ControlError,
        DuplicateKeyError,
        InitializationBlockedError,
        InvalidKeyError,
        OpencodeError,
        PluginError,
        ScopeClosedError,
        SubscriberOverflowError,
        ToolFailure,
        TrustError,
    )
    from opencode_core.host import Host
    from opencode_core.model.event.base import Event
    from opencode_core.model.event.plugin import (
        CatalogUpdated,
        PluginAdded,
        PluginFailed,
        PluginReloaded,
        PluginRemoved,
    )
    from opencode_core.model.location import Location
    from opencode_core.model.plugin import Diagnostic, PluginStatus

__all__ = [
    "Bus",
    "CatalogUpdated",
    "ConfigError",
    "ControlError",
    "Diagnostic",
    "DuplicateKeyError",
    "Event",
    "Host",
    "InitializationBlockedError",
    "InvalidKeyError",
    "Location",
    "OpencodeError",
    "PluginAdded",
    "PluginError",
    "PluginFailed",
    "PluginReloaded",
    "PluginRemoved",
    "PluginStatus",
    "ScopeClosedError",
    "SubscriberOverflowError",
    "ToolFailure",
    "TrustError",
]

_HOMES = {
    "Bus": "opencode_core.bus",
    "CatalogUpdated": "opencode_core.model.event.plugin",
    "ConfigError": "opencode_core.errors",
    "ControlError": "opencode_core.errors",
    "Diagnostic": "opencode_core.model.plugin",
    "DuplicateKeyError": "opencode_core.errors",
    "Event": "opencode_core.model.event.base",
    "Host": "opencode_core.host",
    "InitializationBlockedError": "opencode_core.errors",
    "InvalidKeyError": "opencode_core.errors",
    "Location": "opencode_core.model.location",
    "OpencodeError": "opencode_core.errors",
    "PluginAdded": "opencode_core.model.event.plugin",
    "PluginError": "opencode_core.errors",
    "PluginFailed": "opencode_core.model.event.plugin",
    "PluginReloaded": "opencode_core.model.event.plugin",
    "PluginRemoved": "opencode_core.model.event.plugin",
    "PluginStatus": "opencode_core.model.plugin",
    "ScopeClosedError": "opencode_core.errors",
    "SubscriberOverflowError": "opencode_core.errors",
    "ToolFailure": "opencode_core.errors",
    "TrustError": "opencode_core.errors",
}

__getattr__, __dir__ = lazy(__name__, _HOMES)
