"""The instructions keep the laws of every context source."""

from pathlib import Path

from plugin_sdk.testing import ContextSourceContract
from plugins_builtin import instructions
from tests.instructions.making import KEY


class TestInstructions(ContextSourceContract, plugin=instructions, key=KEY):
    def prepare(self, directory: Path) -> None:
        (directory / "AGENTS.md").write_text("be brief")

    def change(self, directory: Path) -> None:
        (directory / "AGENTS.md").write_text("be kind")

    def take_away(self, directory: Path) -> None:
        (directory / "AGENTS.md").unlink()
