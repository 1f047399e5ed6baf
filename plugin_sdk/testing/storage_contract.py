"""The suite that proves a storage backend: one class to subclass. Needs pytest and its plugin of anyio, nothing else.

A backend whose store is a file or a folder is proved in one line, in a file of tests::

    from my_backend import open_store
    from plugin_sdk.testing import StorageContract

    class TestMyBackend(StorageContract, factory=open_store, url="mine://{tmp_path}/store"): ...

One that needs a server makes its URL in a fixture; it names a store that is not there yet, a new one for each test::

    class TestMyServer(StorageContract, factory=open_store):
        @pytest.fixture
        def storage_url(self, my_server):
            return my_server.url_of_a_new_database()

Say ``durable=False`` of a store that is gone when it is closed, and ``shared=False`` if two stores that are opened with
one URL are two stores. Every other law holds for all: see `opencode_core.ports.storage`. A failure names the law.
The tests run on every event loop that is installed, so install trio as well as pytest.
"""

from __future__ import annotations

from plugin_sdk.testing.storage.atomicity import AtomicityLaws
from plugin_sdk.testing.storage.cancellation import CancellationLaws
from plugin_sdk.testing.storage.closing import ClosingLaws
from plugin_sdk.testing.storage.documents import DocumentLaws
from plugin_sdk.testing.storage.opening import OpeningLaws
from plugin_sdk.testing.storage.order import OrderLaws
from plugin_sdk.testing.storage.serialisability import SerialisabilityLaws
from plugin_sdk.testing.storage.wakes import WakeLaws

__all__ = ["StorageContract"]


class StorageContract(
    OpeningLaws,
    DocumentLaws,
    OrderLaws,
    AtomicityLaws,
    SerialisabilityLaws,
    CancellationLaws,
    WakeLaws,
    ClosingLaws,
):
    """Every law of the storage port, as tests; subclass it with ``factory`` and ``url``.

    Class keywords:
        factory: Opens a store: the function that ``opencode_storage_backends`` offers.
        url: What it opens; ``{tmp_path}`` becomes a new folder for each test.
        durable: False if a store that was closed cannot be opened again.
        shared: False if two stores that are opened with one URL are two stores.
    """
