"""The references keep every law of a context source."""

from pathlib import Path

from plugin_sdk.testing import ContextSourceContract
from plugins_builtin import references


class TestReferences(
    ContextSourceContract,
    plugin=references,
    key="core/references",
    options={"entries": {"docs": {"path": "docs", "description": "How it works."}}},
):
    """What is configured holds for as long as the Location is open, so nothing changes it."""

    def prepare(self, directory: Path) -> None:
        (directory / "docs").mkdir()
