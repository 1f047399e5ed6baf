"""The suite that proves a context source: one class to subclass. Needs pytest and its plugin of anyio, nothing else.

It makes a world in an empty folder, loads the plugin there with the real kernel, and looks what a model would be told::

    import my_plugin
    from plugin_sdk.testing import ContextSourceContract

    class TestBranch(ContextSourceContract, plugin=my_plugin, key="acme/branch"):
        def prepare(self, directory):  # before the plugin is loaded
            (directory / "BRANCH").write_text("main")

        def change(self, directory):  # so that there is something to tell
            (directory / "BRANCH").write_text("feature")

        def take_away(self, directory):  # so that there is nothing to tell any more
            (directory / "BRANCH").unlink()

Each may be left out; laws that need it are then skipped. Say ``removable=False`` of a source without ``removed``.
The clock stands still (``self.clock.move(days=1)`` moves it), the environment variables are those in ``self.environ``,
at first none, and the person's own configuration is the empty folder ``self.config_dir``. A failure names the law.
The tests run on every event loop that is installed, so install trio as well as pytest.
"""

from __future__ import annotations

from plugin_sdk.testing.context.cancellation import CancellationLaws
from plugin_sdk.testing.context.change import ChangeLaws
from plugin_sdk.testing.context.codec import CodecLaws
from plugin_sdk.testing.context.observation import ObservationLaws
from plugin_sdk.testing.context.removal import RemovalLaws
from plugin_sdk.testing.context.rendering import RenderingLaws
from plugin_sdk.testing.context.sameness import SamenessLaws

__all__ = ["ContextSourceContract"]


class ContextSourceContract(
    ObservationLaws,
    SamenessLaws,
    CodecLaws,
    RenderingLaws,
    ChangeLaws,
    RemovalLaws,
    CancellationLaws,
):
    """Every law of a context source, as tests; subclass it with ``plugin`` and ``key``.

    Class keywords:
        plugin: What contributes it: a module, an object with hooks, or the `Path` of a file or package.
        key: The key of the source.
        options: What would stand under ``plugins.<name>`` in the configuration.
        removable: False if the source has no ``removed``, so that a new baseline is needed when it is gone.
    """
