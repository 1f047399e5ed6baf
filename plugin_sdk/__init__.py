"""What a plugin author imports: the marker, the values that hooks return, the errors. Nothing else is promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_core.lazy import lazy

if TYPE_CHECKING:
    from opencode_core.errors import InvalidKeyError, OpencodeError, PermissionBlockedError, ToolFailure
    from opencode_core.hookspecs import HOOK_API, hookimpl
    from opencode_core.model.agent import Agent
    from opencode_core.model.catalog import CatalogDraft, ModelInfo, ProviderInfo
    from opencode_core.model.command import Command
    from opencode_core.model.context import (
        ABSENT,
        UNAVAILABLE,
        Absent,
        Boundary,
        ContextProducer,
        ContextSource,
        Unavailable,
    )
    from opencode_core.model.event.base import Event
    from opencode_core.model.event.plugin import (
        CatalogUpdated,
        PluginAdded,
        PluginFailed,
        PluginReloaded,
        PluginRemoved,
    )
    from opencode_core.model.json import JSON
    from opencode_core.model.location import Location
    from opencode_core.model.permission import PermissionAnswer, PermissionRequest, PermissionRule, evaluate_rules
    from opencode_core.model.plugin import PluginManifest
    from opencode_core.model.provider import ProviderRequest, ProviderTurn, StreamEvent
    from opencode_core.model.skill import FoundSkills, Skill, SkillSource
    from opencode_core.model.tool import Tool, ToolCall, ToolOutput
    from opencode_core.ports.provider import ProviderAdapter
    from opencode_core.ports.scope import HostFacts, PluginScope, Registration
    from opencode_core.ports.storage import ReadTransaction, Storage, StorageFactory, Transaction
    from plugin_sdk.sources import context_source

__all__ = [
    "ABSENT",
    "HOOK_API",
    "JSON",
    "UNAVAILABLE",
    "Absent",
    "Agent",
    "Boundary",
    "CatalogDraft",
    "CatalogUpdated",
    "Command",
    "ContextProducer",
    "ContextSource",
    "Event",
    "FoundSkills",
    "HostFacts",
    "InvalidKeyError",
    "Location",
    "ModelInfo",
    "OpencodeError",
    "PermissionAnswer",
    "PermissionBlockedError",
    "PermissionRequest",
    "PermissionRule",
    "PluginAdded",
    "PluginFailed",
    "PluginManifest",
    "PluginReloaded",
    "PluginRemoved",
    "PluginScope",
    "ProviderAdapter",
    "ProviderInfo",
    "ProviderRequest",
    "ProviderTurn",
    "ReadTransaction",
    "Registration",
    "Skill",
    "SkillSource",
    "Storage",
    "StorageFactory",
    "StreamEvent",
    "Tool",
    "ToolCall",
    "ToolFailure",
    "ToolOutput",
    "Transaction",
    "Unavailable",
    "context_source",
    "evaluate_rules",
    "hookimpl",
]

_HOMES = {
    "ABSENT": "opencode_core.model.context",
    "Absent": "opencode_core.model.context",
    "Agent": "opencode_core.model.agent",
    "Boundary": "opencode_core.model.context",
    "CatalogDraft": "opencode_core.model.catalog",
    "CatalogUpdated": "opencode_core.model.event.plugin",
    "Command": "opencode_core.model.command",
    "ContextProducer": "opencode_core.model.context",
    "ContextSource": "opencode_core.model.context",
    "Event": "opencode_core.model.event.base",
    "FoundSkills": "opencode_core.model.skill",
    "HOOK_API": "opencode_core.hookspecs",
    "HostFacts": "opencode_core.ports.scope",
    "InvalidKeyError": "opencode_core.errors",
    "JSON": "opencode_core.model.json",
    "Location": "opencode_core.model.location",
    "ModelInfo": "opencode_core.model.catalog",
    "OpencodeError": "opencode_core.errors",
    "PermissionAnswer": "opencode_core.model.permission",
    "PermissionBlockedError": "opencode_core.errors",
    "PermissionRequest": "opencode_core.model.permission",
    "PermissionRule": "opencode_core.model.permission",
    "PluginAdded": "opencode_core.model.event.plugin",
    "PluginFailed": "opencode_core.model.event.plugin",
    "PluginManifest": "opencode_core.model.plugin",
    "PluginReloaded": "opencode_core.model.event.plugin",
    "PluginRemoved": "opencode_core.model.event.plugin",
    "PluginScope": "opencode_core.ports.scope",
    "ProviderAdapter": "opencode_core.ports.provider",
    "ProviderInfo": "opencode_core.model.catalog",
    "ProviderRequest": "opencode_core.model.provider",
    "ProviderTurn": "opencode_core.model.provider",
    "ReadTransaction": "opencode_core.ports.storage",
    "Registration": "opencode_core.ports.scope",
    "Skill": "opencode_core.model.skill",
    "SkillSource": "opencode_core.model.skill",
    "Storage": "opencode_core.ports.storage",
    "StorageFactory": "opencode_core.ports.storage",
    "StreamEvent": "opencode_core.model.provider",
    "Tool": "opencode_core.model.tool",
    "ToolCall": "opencode_core.model.tool",
    "ToolFailure": "opencode_core.errors",
    "ToolOutput": "opencode_core.model.tool",
    "Transaction": "opencode_core.ports.storage",
    "UNAVAILABLE": "opencode_core.model.context",
    "Unavailable": "opencode_core.model.context",
    "context_source": "plugin_sdk.sources",
    "evaluate_rules": "opencode_core.model.permission",
    "hookimpl": "opencode_core.hookspecs",
}

__getattr__, __dir__ = lazy(__name__, _HOMES)
