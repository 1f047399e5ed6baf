"""Every test starts as a person who never ran the program, and async tests run on both event loops."""

import os
from pathlib import Path

import pytest
import trio


def test_a_persons_own_settings_do_not_reach_a_test(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", "{}")
    monkeypatch.setenv("OPENCODE_DATA_DIR", "mine")
    pytester.makeconftest((Path(__file__).parents[1] / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(
        "import os\ndef test_it():\n"
        "    names = {name for name in os.environ if name.startswith('OPENCODE_')}\n"
        "    assert names == {'OPENCODE_DATA_DIR', 'OPENCODE_CONFIG_DIR'}\n"
        "    assert os.environ['OPENCODE_DATA_DIR'] != 'mine'\n"
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


@pytest.mark.parametrize("name", ["OPENCODE_DATA_DIR", "OPENCODE_CONFIG_DIR"])
def test_a_persons_folder_does_not_exist_yet(name: str) -> None:
    assert Path(os.environ[name]).is_absolute()
    assert not Path(os.environ[name]).exists()


async def test_an_async_test_runs_on_the_event_loop_it_is_named_for(anyio_backend: str) -> None:
    assert anyio_backend == ("trio" if trio.lowlevel.in_trio_run() else "asyncio")
