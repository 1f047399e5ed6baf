"""The four backends keep every law of the storage port."""

import pytest

from plugin_sdk.testing import StorageContract
from plugins_builtin import storage_jsonfiles, storage_memory, storage_postgres, storage_sqlite


class TestMemory(StorageContract, factory=storage_memory.open_store, url="memory:", durable=False, shared=False): ...


class TestSqlite(StorageContract, factory=storage_sqlite.open_store, url="sqlite://{tmp_path}/store.sqlite"): ...


class TestJsonFiles(StorageContract, factory=storage_jsonfiles.open_store, url="jsonfiles://{tmp_path}/store"): ...


class TestPostgresql(StorageContract, factory=storage_postgres.open_store):
    @pytest.fixture
    def storage_url(self, postgres_url: str) -> str:
        """A schema of its own in the server of this run."""
        return postgres_url
