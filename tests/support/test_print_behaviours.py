"""The table of behaviours says, per section, what a passing test shows and what nothing shows."""

import json
from pathlib import Path

import pytest

from tests.support.print_behaviours import compact, main

PAGE = """
## Alpha
- `AA-01` One.
- `AA-02` Two.
- `AA-03` Three.
- `AA-04` Four.

## Beta, longer
- `BB-01` Five.
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "behaviours.md").write_text(PAGE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_section_counts_what_passes_and_names_what_does_not(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = {"AA-01": ["passed"], "AA-02": ["passed", "failed"], "BB-01": ["passed", "skipped"]}
    report = {id: [{"test": "t", "outcome": one} for one in all] for id, all in outcomes.items()}
    (root / "report.json").write_text(json.dumps(report), encoding="utf-8")
    assert main(["report.json"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Alpha           1 of   4",
        "    named, but not passing: AA-02",
        "    no test: AA-03..04",
        "Beta, longer    1 of   1",
        "",
        "2 of 5 behaviours have a passing test.",
    ]


def test_a_missing_report_is_an_error_that_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gone.json"]) == 1
    assert "No report at 'gone.json'" in capsys.readouterr().err


def test_consecutive_numbers_are_folded() -> None:
    ids = ["SC-02", "SC-03", "SC-05", "V1-06", "V1-07", "V1-08"]
    assert compact(ids) == ["SC-02..03", "SC-05", "V1-06..08"]
