"""What the author of a storage backend imports: the port, its errors, and tools that keep its laws. Opens no store."""

from __future__ import annotations

from opencode_core.errors import (
    InvalidDocumentError,
    InvalidKeyError,
    StorageBusyError,
    StorageClosedError,
    StorageConflictError,
    StorageDamagedError,
    StorageError,
    StorageForeignError,
    StorageFullError,
    StorageMissingError,
    StorageReadOnlyError,
    StorageUnavailableError,
    StorageUrlError,
    StorageVersionError,
    TransactionEndedError,
)
from opencode_core.model.json import JSON
from opencode_core.model.storage import Key, StorageFacts
from opencode_core.ports.storage import ReadTransaction, Storage, StorageFactory, Transaction
from plugin_sdk.storage.documents import DEEPEST, decode_document, decode_documents, encode_document
from plugin_sdk.storage.keys import check_key, check_table, decode_key, encode_key, key_range
from plugin_sdk.storage.threads import Errand, EventLoop, Outcome
from plugin_sdk.storage.urls import path_of, shown, switches_of
from plugin_sdk.storage.wakes import Wakes

__all__ = [
    "DEEPEST",
    "JSON",
    "Errand",
    "EventLoop",
    "InvalidDocumentError",
    "InvalidKeyError",
    "Key",
    "Outcome",
    "ReadTransaction",
    "Storage",
    "StorageBusyError",
    "StorageClosedError",
    "StorageConflictError",
    "StorageDamagedError",
    "StorageError",
    "StorageFactory",
    "StorageFacts",
    "StorageForeignError",
    "StorageFullError",
    "StorageMissingError",
    "StorageReadOnlyError",
    "StorageUnavailableError",
    "StorageUrlError",
    "StorageVersionError",
    "Transaction",
    "TransactionEndedError",
    "Wakes",
    "check_key",
    "check_table",
    "decode_document",
    "decode_documents",
    "decode_key",
    "encode_document",
    "encode_key",
    "key_range",
    "path_of",
    "shown",
    "switches_of",
]
