"""Where a host looks for plugins, and what it does not let through before it is trusted."""

import json
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest

from opencode_core.config import Document, PluginSpec, document_from
from opencode_core.errors import PluginNotFoundError, PluginUntrustedError
from opencode_core.plugins.candidate import Candidate, ObjectCode
from opencode_core.plugins.finder import Finder, Found, Refused, pick
from opencode_core.plugins.trust import Changed, TrustStore, Unknown
from tests.host.making import PLUGINS, Person, distribution, site, write

__all__ = ["site"]

pytestmark = pytest.mark.anyio


@attrs.define
class StillClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


@attrs.define(eq=False)
class Installed:
    folder: Path
    asked: list[str] = attrs.field(factory=list)

    async def install(self, requirement: str) -> Path:
        self.asked.append(requirement)
        return self.folder


@pytest.fixture
def finder(tmp_path: Path) -> Finder:
    store = TrustStore(tmp_path / "data" / "trust.toml")
    installer = Installed(tmp_path / "installed")
    return Finder(trust=store, ask=None, installer=installer, clock=StillClock(), entry_points=False)


def spec(text: str, base: Path = Path("/")) -> PluginSpec:
    return PluginSpec(text=text, base=base, origin="the test")


def document(folder: Path, **values: object) -> Document:
    return Document(
        origin=str(folder / "opencode.json"), base=folder, folder=folder, values=json.loads(json.dumps(values))
    )


def names(found: Found) -> tuple[list[str], list[str]]:
    return [each.name for each in found.candidates], [each.candidate.name for each in found.refused]


# The host


async def test_what_cannot_be_found_is_refused_and_the_rest_is_found(finder: Finder, tmp_path: Path) -> None:
    write(tmp_path / "good.py", "")

    found = await finder.in_host([spec("./missing.py", tmp_path), spec("./good.py", tmp_path), spec("json")])

    assert names(found) == (["good", "json"], ["missing"])


async def test_installed_distributions_are_searched_only_when_they_should_be(finder: Finder) -> None:
    assert names(await finder.in_host([])) == ([], [])
    everything = await attrs.evolve(finder, entry_points=True).in_host([])
    assert {"date", "environment"} <= {each.name for each in everything.candidates}


@pytest.mark.behaviour("PL-10")
async def test_all_plugins_of_an_installed_requirement_are_found(finder: Finder, tmp_path: Path) -> None:
    distribution(tmp_path / "installed", "acme", {"one": "acme.one", "two": "acme.two"})

    found = await finder.in_host([spec("pip: acme >= 1 ")])

    assert names(found) == (["one", "two"], [])
    assert isinstance(finder.installer, Installed)
    assert finder.installer.asked == ["acme >= 1"]


# A project


async def test_a_project_that_is_not_trusted_has_only_refused_plugins(finder: Finder, tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "own.py", "")
    documents = [document(tmp_path, plugin=["json", "./x.py", "pip:acme"])]

    found = await finder.in_folder(tmp_path, root=tmp_path, documents=documents)

    assert not found.is_trusted
    assert found.candidates == ()
    assert {each.candidate.name for each in found.refused} == {"acme", "json", "own", "x"}
    assert all(isinstance(each.error, PluginUntrustedError) for each in found.refused)
    assert isinstance(finder.installer, Installed)
    assert finder.installer.asked == []


async def test_a_project_with_nothing_in_it_asks_nobody(finder: Finder, tmp_path: Path) -> None:
    finder.ask = person = Person()

    found = await finder.in_folder(tmp_path, root=tmp_path, documents=[])

    assert (found, person.asked) == (Found(), [])


async def test_a_decision_is_recorded_with_its_time(finder: Finder, tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "own.py", "")
    finder.ask = Person()

    await finder.in_folder(tmp_path, root=tmp_path, documents=[])

    (project,) = finder.trust.projects()
    assert (project.folder, project.when) == (tmp_path, "2026-01-02T03:04:05+00:00")


async def test_the_person_is_asked_with_what_would_run(finder: Finder, tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "own.py", "content")
    asked = []

    async def ask(code: object, verdict: Unknown | Changed) -> bool:
        asked.append((code, verdict))
        return False

    finder.ask = ask
    await finder.in_folder(tmp_path, root=tmp_path, documents=[document(tmp_path, plugin_watch=True)])

    ((code, verdict),) = asked
    assert [(file.relative, file.content) for file in code.files] == [(f"{PLUGINS}/own.py", b"content")]  # type: ignore[attr-defined]
    assert "plugin_watch" in code.declarations  # type: ignore[attr-defined]
    assert verdict == Unknown()


async def test_settings_that_no_plugin_is_told_do_not_concern_trust(finder: Finder, tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "own.py", "")
    finder.ask = person = Person()

    for storage in ("memory:", "sqlite:x"):
        await finder.in_folder(tmp_path, root=tmp_path, documents=[document(tmp_path, storage=storage)])

    assert person.asked == [Unknown()]


async def test_any_setting_that_a_plugin_may_own_counts_only_when_it_is_trusted(finder: Finder, tmp_path: Path) -> None:
    said = document(tmp_path, instructions=["~/.ssh/id_rsa"])
    found = await finder.in_folder(tmp_path, root=tmp_path, documents=[said])
    assert (found.is_trusted, found.ignored, finder.admits(said)) == (False, (said.origin,), False)

    finder.ask = person = Person()
    found = await finder.in_folder(tmp_path, root=tmp_path, documents=[said])
    assert (found.is_trusted, finder.admits(said), person.asked) == (True, True, [Unknown()])


async def test_a_package_with_a_file_that_is_refused_is_not_imported_by_half(finder: Finder, tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(project / PLUGINS / "box" / "__init__.py", "")
    write(tmp_path / "outside.py", "")
    (project / PLUGINS / "box" / "link.py").symlink_to(tmp_path / "outside.py")
    finder.ask = Person()

    found = await finder.in_folder(project, root=project, documents=[])

    assert names(found) == ([], ["box"])


async def test_documents_count_when_they_are_the_persons_or_as_they_were_trusted(
    finder: Finder, tmp_path: Path
) -> None:
    mine = document_from({}, base=tmp_path)
    theirs, changed = document(tmp_path, plugin_watch=True), document(tmp_path, plugin_watch=False)
    assert [finder.admits(each) for each in (mine, theirs)] == [True, False]

    finder.ask = Person()
    await finder.in_folder(tmp_path, root=tmp_path, documents=[theirs])

    assert [finder.admits(each) for each in (mine, theirs, changed)] == [True, True, False]


# Again


def candidate(name: str, location: str) -> Candidate:
    return Candidate(name=name, origin="project", location=location, identity=location, code=ObjectCode(value=name))


def refused(name: str, location: str) -> Refused:
    return Refused(candidate=candidate(name, location), error=PluginUntrustedError("No.", plugin=name))


def test_a_plugin_is_found_again_at_its_place_though_another_has_its_name() -> None:
    found = Found(candidates=(candidate("a", "/one"), candidate("a", "/two")), refused=(refused("a", "/three"),))

    assert pick(found, candidate("a", "/two")).location == "/two"


def test_a_plugin_that_moved_is_found_again_by_its_name() -> None:
    assert pick(Found(candidates=(candidate("a", "/new"),)), candidate("a", "/old")).location == "/new"


def test_a_plugin_that_is_refused_now_says_why() -> None:
    with pytest.raises(PluginUntrustedError, match="No"):
        pick(Found(refused=(refused("a", "/one"),)), candidate("a", "/one"))


def test_a_plugin_that_is_gone_says_so() -> None:
    with pytest.raises(PluginNotFoundError, match="'a' is no longer found at '/one'"):
        pick(Found(candidates=(candidate("b", "/two"),)), candidate("a", "/one"))


async def test_an_installed_plugin_is_looked_up_again_in_its_own_distribution(
    finder: Finder, tmp_path: Path, site: Path
) -> None:
    distribution(site, "acme", {"acme": "json.tool"})
    (before,) = [
        each for each in (await attrs.evolve(finder, entry_points=True).in_host([])).candidates if each.name == "acme"
    ]
    distribution(site, "acme", {"acme": "json.decoder"})

    assert finder.again(before).location == "json.decoder"
