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
        InvalidEventError,
        InvalidKeyError,
        LogError,
        LogRemovedError,
        MessageDecodeError,
        MessageNotFoundError,
        OpencodeError,
        PluginError,
        PromptConflictError,
        ScopeClosedError,
        SessionError,
        SessionNotFoundError,
        StorageError,
        SubscriberOverflowError,
        ToolFailure,
        TrustError,
    )
    from opencode_core.host import Host
    from opencode_core.model.event.base import DurableEvent, Event, Recorded
    from opencode_core.model.event.plugin import (
        CatalogUpdated,
        PluginAdded,
        PluginFailed,
        PluginReloaded,
        PluginRemoved,
    )
    from opencode_core.model.location import Location
    from opencode_core.model.message import Entry
    from opencode_core.model.plugin import Diagnostic, PluginStatus
    from opencode_core.model.prompt import Prompt
    from opencode_core.model.session import ModelChoice, Session
    from opencode_core.session.store import SessionStore
    from opencode_core.storage.log import EventLog

__all__ = [
    "Bus",
    "CatalogUpdated",
    "ConfigError",
    "ControlError",
    "Diagnostic",
    "DuplicateKeyError",
    "DurableEvent",
    "Entry",
    "Event",
    "EventLog",
    "Host",
    "InitializationBlockedError",
    "InvalidEventError",
    "InvalidKeyError",
    "Location",
    "LogError",
    "LogRemovedError",
    "MessageDecodeError",
    "MessageNotFoundError",
    "ModelChoice",
    "OpencodeError",
    "PluginAdded",
    "PluginError",
    "PluginFailed",
    "PluginReloaded",
    "PluginRemoved",
    "PluginStatus",
    "Prompt",
    "PromptConflictError",
    "Recorded",
    "ScopeClosedError",
    "Session",
    "SessionError",
    "SessionNotFoundError",
    "SessionStore",
    "StorageError",
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
    "DurableEvent": "opencode_core.model.event.base",
    "Entry": "opencode_core.model.message",
    "Event": "opencode_core.model.event.base",
    "EventLog": "opencode_core.storage.log",
    "Host": "opencode_core.host",
    "InitializationBlockedError": "opencode_core.errors",
    "InvalidEventError": "opencode_core.errors",
    "InvalidKeyError": "opencode_core.errors",
    "Location": "opencode_core.model.location",
    "LogError": "opencode_core.errors",
    "LogRemovedError": "opencode_core.errors",
    "MessageDecodeError": "opencode_core.errors",
    "MessageNotFoundError": "opencode_core.errors",
    "ModelChoice": "opencode_core.model.session",
    "OpencodeError": "opencode_core.errors",
    "PluginAdded": "opencode_core.model.event.plugin",
    "PluginError": "opencode_core.errors",
    "PluginFailed": "opencode_core.model.event.plugin",
    "PluginReloaded": "opencode_core.model.event.plugin",
    "PluginRemoved": "opencode_core.model.event.plugin",
    "PluginStatus": "opencode_core.model.plugin",
    "Prompt": "opencode_core.model.prompt",
    "PromptConflictError": "opencode_core.errors",
    "Recorded": "opencode_core.model.event.base",
    "ScopeClosedError": "opencode_core.errors",
    "Session": "opencode_core.model.session",
    "SessionError": "opencode_core.errors",
    "SessionNotFoundError": "opencode_core.errors",
    "SessionStore": "opencode_core.session.store",
    "StorageError": "opencode_core.errors",
    "SubscriberOverflowError": "opencode_core.errors",
    "ToolFailure": "opencode_core.errors",
    "TrustError": "opencode_core.errors",
}

__getattr__, __dir__ = lazy(__name__, _HOMES)
