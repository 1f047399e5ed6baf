"""What every test may rely on: both event loops, a still Hypothesis, and a person's folders left alone."""

import os
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["pytester", "tests.support.behaviours", "tests.support.postgres"]

# How long examples take to make says how busy the machine is, and nothing about the code.
_PATIENT: Any = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("local", **_PATIENT)
settings.register_profile("ci", derandomize=True, **_PATIENT)
settings.register_profile("faults", **_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "local"))

_test_number = count()


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run each async test on both event loops."""
    return str(request.param)


@pytest.fixture(scope="session")
def persons_folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tests of this process keep what would otherwise be a person's data and configuration."""
    return tmp_path_factory.mktemp("person")


@pytest.fixture(autouse=True)
def fresh_person(persons_folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each test a person who never ran the program: own folders, not yet made, and no settings."""
    for name in [name for name in os.environ if name.startswith("OPENCODE_")]:
        monkeypatch.delenv(name)
    home = persons_folders / str(next(_test_number))
    monkeypatch.setenv("OPENCODE_DATA_DIR", str(home / "data"))
    monkeypatch.setenv("OPENCODE_CONFIG_DIR", str(home / "config"))
    monkeypatch.setenv("HOME", str(home))
