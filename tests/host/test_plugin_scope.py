"""What a plugin may ask of the scope it is handed: facts of the host, a thing of its own, a warning, all skills."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from opencode_core.host import Host
from opencode_core.plugins.slots import SKILL_SOURCES
from plugin_sdk import HostFacts, PluginManifest, PluginScope, Skill, SkillSource, Tool, hookimpl
from plugin_sdk.testing import StillClock


async def execute(call: object) -> Any:
    raise AssertionError


@attrs.define(eq=False)
class Curious:
    """A plugin that keeps the scopes it was handed."""

    scopes: list[PluginScope] = attrs.field(factory=list)

    @hookimpl
    def opencode_tools(self, scope: PluginScope) -> Mapping[str, Tool]:
        self.scopes.append(scope)
        return {"look": Tool(description="Looks.", execute=execute)}

    @hookimpl
    def opencode_skills(self, scope: PluginScope) -> Iterator[Skill]:
        self.scopes.append(scope)
        return iter(())


@attrs.define(eq=False)
class Skilled:
    """A plugin with one skill that it has, and others that it finds."""

    name: str
    found: Any = ()
    asked: int = 0

    @hookimpl
    def opencode_skills(self) -> Iterator[Skill | SkillSource]:
        async def load() -> Any:
            self.asked += 1
            if isinstance(self.found, Exception):
                raise self.found
            return self.found

        yield Skill(name="shared", body=self.name)
        yield SkillSource(key="found", load=load)


def opened(directory: Path, plugins: Mapping[str, object], **settings: Any) -> Any:
    return Host.open(directory, plugins=plugins, **{"config": {}, "entry_points": False, **settings})


async def test_a_plugin_knows_the_host_around_it(tmp_path: Path) -> None:
    clock, environ, plugin = StillClock(), {"COLOUR": "blue"}, Curious()
    folders = {"config_dir": tmp_path / "config", "data_dir": tmp_path / "data"}
    async with opened(tmp_path, {"curious": plugin}, clock=clock, environ=environ, **folders):
        facts = plugin.scopes[0].host
        environ["COLOUR"] = "red"
        assert (facts.now(), facts.environ["COLOUR"]) == (clock.at, "red")
        assert (facts.config_dir, facts.data_dir) == (folders["config_dir"], folders["data_dir"])


def test_what_a_plugin_knows_never_shows_the_environment(tmp_path: Path) -> None:
    facts = HostFacts(environ={"TOKEN": "hunter2"}, config_dir=tmp_path, data_dir=tmp_path, now=StillClock().now)
    assert "hunter2" not in repr(facts)


async def test_two_hooks_of_one_plugin_share_a_thing_of_their_own_in_one_location(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first, second = Curious(), Curious()
    async with opened(tmp_path, {"first": first, "second": second}) as host:
        tools, skills = first.scopes
        mine = tools.share(dict, dict)
        assert skills.share(dict, dict) is mine
        assert second.scopes[0].share(dict, dict) is not mine
        async with host.open_location(tmp_path / "other"):
            assert first.scopes[2].share(dict, dict) is not mine


async def test_a_warning_stands_beside_the_plugin_once(tmp_path: Path) -> None:
    plugin = Curious()
    async with opened(tmp_path, {"curious": plugin}) as host:
        for _ in range(3):
            plugin.scopes[0].warn("The folder is odd.", "Look at it.")
        (diagnostic,) = host.plugins.get("curious").diagnostics
        assert (diagnostic.problem, diagnostic.remedy, diagnostic.severity) == (
            "The folder is odd.",
            "Look at it.",
            "warning",
        )
        assert host.plugins.get("curious").state == "active"


async def test_all_skills_are_seen_by_everybody_and_those_of_the_later_plugin_win(tmp_path: Path) -> None:
    plugin, acme, zeta = Curious(), Skilled("acme", [Skill(name="b", body="1")]), Skilled("zeta")
    async with opened(tmp_path, {"zeta": zeta, "curious": plugin, "acme": acme}):
        scope = plugin.scopes[0]
        skills = await scope.skills()
        assert [(name, skill.body) for name, skill in skills.items()] == [("b", "1"), ("shared", "zeta")]
        zeta.found = [Skill(name="a", body="2"), Skill(name="b", body="2")]
        assert {name: skill.body for name, skill in (await scope.skills()).items()} == {
            "a": "2",
            "b": "2",
            "shared": "zeta",
        }
        assert zeta.asked == 2


@pytest.mark.parametrize("found", [OSError("disk"), ["not a skill"]])
async def test_a_source_of_skills_that_fails_keeps_what_it_found_last_and_is_reported(
    tmp_path: Path, found: Any
) -> None:
    plugin, acme = Curious(), Skilled("acme", [Skill(name="b", body="1")])
    async with opened(tmp_path, {"curious": plugin, "acme": acme}) as host:
        await plugin.scopes[0].skills()
        acme.found = found
        assert list(await plugin.scopes[0].skills()) == ["b", "shared"]
        (diagnostic,) = host.plugins.get("acme").diagnostics
        assert "The hook 'opencode_skills' of the plugin 'acme' raised" in diagnostic.problem


async def test_skills_say_that_they_may_not_be_complete_until_every_source_could_be_asked(tmp_path: Path) -> None:
    plugin, acme = Curious(), Skilled("acme", OSError("disk"))
    async with opened(tmp_path, {"curious": plugin, "acme": acme}):
        found = await plugin.scopes[0].skills()
        assert (list(found), found.is_complete) == (["shared"], False)
        acme.found = []
        assert (await plugin.scopes[0].skills()).is_complete
        acme.found = OSError("disk")
        assert (await plugin.scopes[0].skills()).is_complete


async def test_sources_of_skills_are_listed_and_go_with_their_plugin(tmp_path: Path) -> None:
    async with opened(tmp_path, {"acme": Skilled("acme")}) as host:
        assert [each.key for each in host.location.read().all(SKILL_SOURCES)] == ["plugin/acme/found"]
        assert "skill source: plugin/acme/found" in host.plugins.get("acme").contributions
        await host.plugins.remove("acme")
        assert host.location.read().all(SKILL_SOURCES) == ()


@attrs.frozen
class Options:
    files: tuple[str, ...] = ()


@attrs.define(eq=False)
class Configured:
    opencode_plugin: ClassVar = PluginManifest(options=Options, keys={"instructions": "files"})
    seen: list[tuple[str, ...]] = attrs.field(factory=list)

    @hookimpl
    def opencode_skills(self, options: Options) -> Iterator[Skill]:
        self.seen.append(options.files)
        return iter(())


async def test_a_top_level_key_reaches_the_plugin_that_owns_it(tmp_path: Path) -> None:
    plugin = Configured()
    config = {"instructions": ["a.md"], "plugins": {"mine": {"files": ["b.md"]}}}
    async with opened(tmp_path, {"mine": plugin}, config=config):
        assert plugin.seen == [("a.md", "b.md")]


async def test_a_source_of_skills_cannot_be_registered_twice_under_one_key(tmp_path: Path) -> None:
    class Twice:
        @hookimpl
        def opencode_skills(self) -> list[SkillSource]:
            async def load() -> list[Skill]:
                return []

            return [SkillSource(key="same", load=load), SkillSource(key="same", load=load)]

    async with opened(tmp_path, {"twice": Twice()}) as host:
        status = host.plugins.get("twice")
        assert status.state == "quarantined"
        assert "contributed twice" in status.diagnostics[0].problem


@pytest.mark.parametrize(
    ("environ", "path", "expected"),
    [
        ({"HOME": "/home/me"}, "~/notes", "/home/me/notes"),
        ({"USERPROFILE": "/users/me"}, "~/notes", "/users/me/notes"),
        ({}, "~/notes", "/base/~/notes"),
        ({"HOME": "/home/me"}, "notes", "/base/notes"),
        ({"HOME": "/home/me"}, "/notes", "/notes"),
        ({"HOME": "/home/me"}, "~other/notes", "/base/~other/notes"),
    ],
)
def test_a_configured_path_leads_home_or_from_its_base(environ: dict[str, str], path: str, expected: str) -> None:
    facts = HostFacts(environ=environ, config_dir=Path("/c"), data_dir=Path("/d"), now=StillClock().now)
    assert facts.located(path, Path("/base")) == Path(expected)
