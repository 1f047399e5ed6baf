"""A plugin installed for editing is reloaded while the host runs, on request and by itself."""

import json
from pathlib import Path

import pytest

from tests.distribution.environment import Environment
from tests.distribution.plugin_project import FINDER, HATCHLING, write_plugin_project

PROBE = Path(__file__).with_name("probe.py")

pytestmark = pytest.mark.timeout(85)  # several processes each, on a machine that may be busy


@pytest.mark.parametrize("action", ["reload", "watch"])
@pytest.mark.parametrize("build_system", [HATCHLING, FINDER], ids=["path", "finder"])
def test_an_edit_of_a_submodule_is_seen_in_the_running_process(
    environment: Environment, wheel: Path, tmp_path: Path, build_system: str, action: str
) -> None:
    project = write_plugin_project(tmp_path / "project", build_system=build_system)
    environment.install(wheel, "-e", project)
    words = project / "acme" / "words.py"
    printed = environment.run("python", PROBE, action, "acme", words, "hello", "howdy", cwd=environment.folder)
    before, after = json.loads(printed)
    assert (before["tool"], before["plugins"]["acme"]["generation"]) == ("hello", 1)
    assert (after["tool"], after["plugins"]["acme"]["generation"]) == ("howdy", 2)
    assert "People here say howdy." in after["baseline"]
