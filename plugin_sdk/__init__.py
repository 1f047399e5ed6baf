"""What a plugin author imports: the marker, the values that hooks return, the errors. Nothing else is promised."""

from __future__ import annotations

from opencode_core.errors import InvalidKeyError, OpencodeError, ToolFailure
from opencode_core.hookspecs import HOOK_API, hookimpl
from opencode_core.model.agent import Agent
from opencode_core.model.catalog import CatalogDraft, ModelInfo, ProviderInfo
from opencode_core.model.command import Command
from opencode_core.model.context import UNAVAILABLE, ContextProducer, ContextSource, Unavailable
from opencode_core.model.event import (
    CatalogUpdated,
    Event,
    PluginAdded,
    PluginFailed,
    PluginReloaded,
    PluginRemoved,
)
from opencode_core.model.json import JSON
from opencode_core.model.location import Location
from opencode_core.model.permission import PermissionAnswer, PermissionRequest
from opencode_core.model.plugin import PluginManifest
from opencode_core.model.provider import ProviderRequest, ProviderTurn, StreamEvent
from opencode_core.model.skill import Skill
from opencode_core.model.tool import Tool, ToolCall, ToolOutput
from opencode_core.ports.provider import ProviderAdapter
from opencode_core.ports.scope import PluginScope, Registration
from opencode_core.ports.storage import ReadTransaction, Storage, StorageFactory, Transaction

__all__ = [
    "HOOK_API",
    "JSON",
    "UNAVAILABLE",
    "Agent",
    "CatalogDraft",
    "CatalogUpdated",
    "Command",
    "ContextProducer",
    "ContextSource",
    "Event",
    "InvalidKeyError",
    "Location",
    "ModelInfo",
    "OpencodeError",
    "PermissionAnswer",
    "PermissionRequest",
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
    "Storage",
    "StorageFactory",
    "StreamEvent",
    "Tool",
    "ToolCall",
    "ToolFailure",
    "ToolOutput",
    "Transaction",
    "Unavailable",
    "hookimpl",
]
