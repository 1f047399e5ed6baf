"""The program runs, on both event loops, and the model is told what it was told to be told."""

from pathlib import Path

import pytest

import host
from plugin_sdk.testing import load_plugin


async def test_the_reloaded_plugin_changes_the_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await host.run(tmp_path)
    assert capsys.readouterr().out.splitlines() == [
        "You are talking to Ada.",
        "",
        "Answer in a formal tone.",
        "Opened ticket 1.",
        "Reloaded 'tone': generation 2 answers.",
        "You are talking to Ada.",
        "",
        "Answer in a friendly tone.",
    ]


async def test_a_plugin_object_is_tested_like_any_other(tmp_path: Path) -> None:
    async with load_plugin(host.Customer("Grace"), directory=tmp_path) as plugin:
        assert await plugin.baseline() == "You are talking to Grace."
