"""Every test here is a person with a home of their own."""

from pathlib import Path

import pytest

from tests.instructions.making import Person


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    """A person with an empty home, who keeps a project in it."""
    home = tmp_path.resolve() / "home"
    made = Person(home=home, config=home / "config", project=home / "project")
    for folder in (made.config, made.project / ".git"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("OPENCODE_CONFIG_DIR", str(made.config))
    return made


@pytest.fixture(autouse=True)
def own_home(person: Person) -> None:
    """Leave the home of whoever runs the tests alone."""
