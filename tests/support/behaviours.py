"""A pytest plugin: every behaviour a test names exists, and a run can report which were shown.

`--behaviours-report PATH` writes a JSON object of id to a list of `{"test": ..., "outcome": ...}`. The ids
travel with the reports, so it holds under xdist too.
"""

import json
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest

from tests.support.catalogue import BadCatalogue, Behaviour, read_catalogue

_PROPERTY = "behaviour"
_CATALOGUE = pytest.StashKey[dict[str, Behaviour]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("behaviours").addoption(
        "--behaviours-report",
        metavar="PATH",
        type=Path,
        help="write which behaviours the run showed, as JSON, to PATH",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "behaviour(*ids): the test shows these ids of docs/behaviours.md")
    path: Path | None = config.getoption("--behaviours-report")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(path), "behaviours-reporter")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    items = [node for node in report.result or () if isinstance(node, pytest.Item)]
    complaints = [complaint for item in items for complaint in _complaints(item)]
    if complaints:
        report.outcome = "failed"
        report.longrepr = "\n".join(complaints)
        report.result = []
    return report


def pytest_itemcollected(item: pytest.Item) -> None:
    item.user_properties.extend((_PROPERTY, id) for id in _ids(item))


class Reporter:
    """Gathers the outcome of every test that names a behaviour, in the process that hears all reports."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shown: dict[str, dict[str, str]] = defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome = _outcome(report)
        if outcome is None:
            return
        for name, id in report.user_properties:
            if name == _PROPERTY:
                self._shown[str(id)][report.nodeid] = outcome

    def pytest_sessionfinish(self) -> None:
        report = {
            id: [{"test": test, "outcome": outcome} for test, outcome in sorted(tests.items())]
            for id, tests in sorted(self._shown.items())
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def _outcome(report: pytest.TestReport) -> str | None:
    """Return what one phase says about its test; None when it adds nothing to what is known."""
    if hasattr(report, "wasxfail"):
        return "xpassed" if report.passed else "xfailed"
    return report.outcome if report.when == "call" or not report.passed else None


def _complaints(item: pytest.Item) -> Iterator[str]:
    marks = list(item.iter_markers("behaviour"))
    if not marks:
        return
    try:
        known = _catalogue(item.config)
    except BadCatalogue as exc:
        yield f"{item.nodeid}: {exc}"
        return
    if any(not mark.args or mark.kwargs for mark in marks):
        yield f"{item.nodeid}: a behaviour mark takes one or more ids. Write @pytest.mark.behaviour('SC-02')."
    for id in _unknown(_ids(item), known):
        yield f"{item.nodeid}: unknown behaviour {id!r}. Use an id of docs/behaviours.md, or add it there."


def _catalogue(config: pytest.Config) -> dict[str, Behaviour]:
    if _CATALOGUE not in config.stash:
        config.stash[_CATALOGUE] = read_catalogue(config.rootpath)
    return config.stash[_CATALOGUE]


def _ids(item: pytest.Item) -> list[str]:
    return sorted({str(id) for mark in item.iter_markers("behaviour") for id in mark.args})


def _unknown(ids: Iterable[str], known: dict[str, Behaviour]) -> list[str]:
    return [id for id in ids if id not in known]
