"""A test may name only behaviours that exist, and a run can say which were shown."""

import json
import os
from pathlib import Path

import pytest

from tests.support.catalogue import BadCatalogue, read_catalogue

ROOT = Path(__file__).parents[2]

CATALOGUE = """
# Behaviours

## Alpha
- `AA-01` The first.
- `AA-02` The second.

## Beta
- `BB-01` The third.
"""

MIXED = """
import pytest

@pytest.mark.behaviour("AA-01", "AA-02")
def test_good(): pass

@pytest.mark.behaviour("AA-02")
def test_bad(): assert False

@pytest.mark.behaviour("BB-01")
@pytest.mark.skip(reason="later")
def test_later(): pass

def test_without_a_mark(): pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project whose tests may name the behaviours AA-01, AA-02 and BB-01."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.mkdir("docs")
    (pytester.path / "docs" / "behaviours.md").write_text(CATALOGUE, encoding="utf-8")
    pytester.makepyprojecttoml("[tool.pytest]\nstrict = true\n")
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run the project's tests with the plugin: here, or in new processes when workers are asked for."""
    start = project.runpytest_subprocess if "-n" in arguments else project.runpytest_inprocess
    return start("-p", "tests.support.behaviours", "-p", "xdist", *arguments)


def report(project: pytest.Pytester) -> dict[str, dict[str, str]]:
    """Return the written report as id to test to outcome."""
    raw = json.loads((project.path / "out" / "report.json").read_text(encoding="utf-8"))
    return {id: {test["test"]: test["outcome"] for test in tests} for id, tests in raw.items()}


def test_a_test_that_names_a_known_behaviour_runs(project: pytest.Pytester) -> None:
    project.makepyfile("import pytest\n@pytest.mark.behaviour('AA-01')\ndef test_it(): pass")
    run(project).assert_outcomes(passed=1)


def test_an_unknown_behaviour_is_a_collection_error_that_names_test_and_id(project: pytest.Pytester) -> None:
    project.makepyfile(test_x="import pytest\n@pytest.mark.behaviour('AA-01', 'ZZ-99')\ndef test_it(): pass")
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["test_x.py::test_it: unknown behaviour 'ZZ-99'.*docs/behaviours.md*"])


def test_all_unknown_behaviours_of_a_file_are_named_at_once(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_x="import pytest\npytestmark = pytest.mark.behaviour('ZZ-98')\ndef test_a(): pass\ndef test_b(): pass"
    )
    run(project).stdout.fnmatch_lines(["test_x.py::test_a: *'ZZ-98'*", "test_x.py::test_b: *'ZZ-98'*"])


def test_an_unknown_behaviour_on_a_class_is_found(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_x="import pytest\n@pytest.mark.behaviour('ZZ-97')\nclass TestIt:\n    def test_a(self): pass"
    )
    run(project).stdout.fnmatch_lines(["test_x.py::TestIt::test_a: unknown behaviour 'ZZ-97'*"])


def test_an_unknown_behaviour_is_a_collection_error_under_xdist(project: pytest.Pytester) -> None:
    project.makepyfile(test_x="import pytest\n@pytest.mark.behaviour('ZZ-99')\ndef test_it(): pass")
    result = run(project, "-n", "2")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["test_x.py::test_it: unknown behaviour 'ZZ-99'*"])


@pytest.mark.parametrize("mark", ["behaviour", "behaviour()", "behaviour(id='AA-01')"])
def test_a_mark_without_an_id_is_a_collection_error(project: pytest.Pytester, mark: str) -> None:
    project.makepyfile(f"import pytest\n@pytest.mark.{mark}\ndef test_it(): pass")
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*::test_it: a behaviour mark takes one or more ids.*"])


def test_a_project_without_a_catalogue_is_told_so(project: pytest.Pytester) -> None:
    (project.path / "docs" / "behaviours.md").unlink()
    project.makepyfile("import pytest\n@pytest.mark.behaviour('AA-01')\ndef test_it(): pass")
    run(project).stdout.fnmatch_lines(["*::test_it: *behaviours.md' does not exist.*"])


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_report_says_how_each_test_of_a_behaviour_ended(project: pytest.Pytester, workers: str) -> None:
    project.makepyfile(test_x=MIXED)
    run(project, "-n", workers, "--behaviours-report", "out/report.json")
    assert report(project) == {
        "AA-01": {"test_x.py::test_good": "passed"},
        "AA-02": {"test_x.py::test_bad": "failed", "test_x.py::test_good": "passed"},
        "BB-01": {"test_x.py::test_later": "skipped"},
    }


def test_a_failure_after_the_test_body_is_reported_as_failed(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_x="import pytest\n@pytest.fixture\ndef bad():\n    yield\n    assert False\n"
        "@pytest.mark.behaviour('AA-01')\ndef test_it(bad): pass"
    )
    run(project, "--behaviours-report", "out/report.json")
    assert report(project) == {"AA-01": {"test_x.py::test_it": "failed"}}


def test_a_test_expected_to_fail_is_not_reported_as_passed(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_x="import pytest\n@pytest.mark.xfail(reason='later')\n@pytest.mark.behaviour('AA-01')\n"
        "def test_it(): assert False"
    )
    run(project, "--behaviours-report", "out/report.json")
    assert report(project) == {"AA-01": {"test_x.py::test_it": "xfailed"}}


def test_the_catalogue_of_this_project_can_be_read() -> None:
    catalogue = read_catalogue(ROOT)
    assert catalogue["SC-02"].section == "System Context algebra"
    assert catalogue["BX-08"].text.startswith("Nested, configured")


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("## A\n- `AA-01` One.\n- `AA-01` Two.\n", r"behaviours\.md:3: behaviour 'AA-01' stands twice"),
        ("- `AA-01` One.\n", r"behaviours\.md:1: behaviour 'AA-01' stands before the first section"),
    ],
    ids=["twice", "no section"],
)
def test_a_catalogue_that_is_no_list_is_refused(tmp_path: Path, page: str, complaint: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "behaviours.md").write_text(page, encoding="utf-8")
    with pytest.raises(BadCatalogue, match=complaint):
        read_catalogue(tmp_path)
