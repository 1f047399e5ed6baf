"""Nothing of a project runs or counts before a person trusted it, and then only what they trusted."""

import json
import py_compile
import sys
from pathlib import Path

import pytest

from opencode_core.errors import PluginNotFoundError, PluginReloadError, PluginUntrustedError
from opencode_core.host import Host
from opencode_core.model.event.plugin import PluginAdded, PluginFailed
from opencode_core.plugins.finder import Finder
from opencode_core.plugins.project_code import ProjectCode
from opencode_core.plugins.trust import Changed, TrustStore, Unknown
from tests.host.making import (
    PLUGINS,
    Person,
    Saying,
    ask,
    clean_imports,
    distribution,
    marking,
    opened,
    site,
    tool_plugin,
    tools,
    write,
)

__all__ = ["clean_imports", "site"]

pytestmark = pytest.mark.anyio


# Before it is trusted


async def test_a_plugin_file_of_an_untrusted_project_is_never_imported(tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "acme.py", marking(tmp_path / "marker"))
    write(tmp_path / PLUGINS / "box" / "__init__.py", marking(tmp_path / "marker"))

    async with opened(tmp_path) as host:
        assert [(each.name, each.state) for each in host.plugins.list()] == [
            ("acme", "untrusted"),
            ("box", "untrusted"),
        ]
    assert not (tmp_path / "marker").exists()


async def test_an_untrusted_plugin_says_which_command_lets_it_run(tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "acme.py", tool_plugin("one"))

    async with opened(tmp_path) as host:
        (diagnostic,) = host.plugins.get("acme").diagnostics
        assert f"opencode-core plugins trust {tmp_path}" in diagnostic.remedy


async def test_what_an_untrusted_project_configures_is_neither_imported_nor_installed(
    tmp_path: Path, site: Path
) -> None:
    work, marker = tmp_path / "work", tmp_path / "marker"
    write(site / "acme_named.py", marking(marker))
    write(work / "own.py", marking(marker))
    config = {"plugin": ["acme_named", "./own.py", "pip:acme"]}
    write(work / "opencode.json", json.dumps(config))

    class Installer:
        async def install(self, requirement: str) -> Path:
            raise AssertionError(requirement)

    async with opened(work, installer=Installer()) as host:
        states = {each.name: each.state for each in host.plugins.list()}
        assert states == {"acme": "untrusted", "acme_named": "untrusted", "own": "untrusted"}
    assert not marker.exists()


async def test_the_settings_of_an_untrusted_project_do_not_count(tmp_path: Path) -> None:
    work = tmp_path / "work"
    settings = {
        "plugin_block": ["saying"],
        "plugin_allow": [],
        "plugin_strict": True,
        "plugin_watch": True,
        "plugins": {"saying": {"unknown": 1}},
    }
    write(work / "opencode.json", json.dumps(settings))
    broken = write(tmp_path / "broken.py", "1/0")

    async with opened(work, plugins=[Saying("one"), broken]) as host:
        assert await ask(host) == "one"
        assert host.plugins.get("saying").diagnostics == ()


async def test_the_settings_of_a_trusted_project_count_in_its_locations_only(tmp_path: Path) -> None:
    work = tmp_path / "work"
    write(work / "opencode.json", json.dumps({"plugin_block": ["saying"]}))

    async with (
        opened(tmp_path / "other", plugins=[Saying("one")], ask_trust=Person()) as host,
        host.open_location(work) as place,
    ):
        assert await ask(place) == "unknown"
        assert await ask(host) == "one"


async def test_the_allow_list_of_a_trusted_project_keeps_others_out_of_its_locations(tmp_path: Path) -> None:
    write(tmp_path / "work" / "opencode.json", json.dumps({"plugin_allow": ["mine"]}))
    plugins = {"mine": Saying("mine", "mine"), "yours": Saying("yours", "yours")}

    async with (
        opened(tmp_path / "other", plugins=plugins, ask_trust=Person()) as host,
        host.open_location(tmp_path / "work") as place,
    ):
        assert tools(place) == ["mine"]
        assert tools(host) == ["mine", "yours"]


# Asking


async def test_what_a_trusted_project_blocks_in_every_open_location_is_listed_as_blocked(tmp_path: Path) -> None:
    work = tmp_path / "work"
    write(work / "opencode.json", json.dumps({"plugin_block": ["saying"]}))

    async with opened(work, plugins=[Saying("x")], ask_trust=Person()) as host:
        assert [(each.name, each.state) for each in host.plugins.list()] == [("saying", "blocked")]
        async with host.open_location(tmp_path) as place:
            assert host.plugins.get("saying").state == "active"  # it serves the other Location
            assert (tools(host), tools(place)) == ([], ["answer"])
        assert host.plugins.get("saying").state == "blocked"


@pytest.mark.parametrize("key", ["plugin_allow", "plugin_block"])
async def test_an_unknown_name_in_a_list_of_a_trusted_project_is_a_notice(tmp_path: Path, key: str) -> None:
    write(tmp_path / "opencode.json", json.dumps({key: ["sayin"]}))

    async with opened(tmp_path, plugins=[Saying("x")], ask_trust=Person()) as host:
        (notice,) = host.plugins.notices
        assert (
            notice.problem == f"The settings of the project '{tmp_path}' name the plugin 'sayin', which was not found."
        )
        assert (notice.severity, notice.remedy) == ("warning", "Did you mean 'saying'?")


async def test_a_person_who_says_yes_is_not_asked_again(tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "acme.py", tool_plugin("one"))
    person = Person()

    for _ in range(2):
        async with opened(tmp_path, ask_trust=person) as host:
            assert await ask(host) == "one"
    assert person.asked == [Unknown()]


async def test_a_person_who_says_no_keeps_it_out_and_nothing_is_recorded(tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "acme.py", marking(tmp_path / "marker"))
    person = Person(answer=False)

    async with opened(tmp_path, ask_trust=person, data_dir=tmp_path / "data") as host:
        assert host.plugins.get("acme").state == "untrusted"
    assert person.asked == [Unknown()]
    assert TrustStore(tmp_path / "data" / "trust.toml").projects() == ()
    assert not (tmp_path / "marker").exists()


async def test_a_changed_file_asks_again_and_says_what_changed(tmp_path: Path) -> None:
    file = write(tmp_path / PLUGINS / "acme.py", tool_plugin("one"))
    async with opened(tmp_path, ask_trust=Person()):
        pass
    write(file, marking(tmp_path / "marker"))
    person = Person(answer=False)

    async with opened(tmp_path, ask_trust=person) as host:
        assert host.plugins.get("acme").state == "untrusted"
    assert person.asked == [Changed(added=(), removed=(), modified=(".opencode/plugins/acme.py",), declarations=False)]
    assert not (tmp_path / "marker").exists()


async def test_changed_settings_ask_again(tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "acme.py", tool_plugin("one"))
    async with opened(tmp_path, ask_trust=Person()):
        pass
    write(tmp_path / "opencode.json", json.dumps({"plugin_watch": True}))
    person = Person()

    async with opened(tmp_path, ask_trust=person):
        pass
    (asked,) = person.asked
    assert isinstance(asked, Changed)
    assert asked.declarations


async def test_trust_that_is_given_while_the_host_runs_counts_at_the_next_look(tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "acme.py", tool_plugin("one"))
    write(tmp_path / "opencode.json", json.dumps({"plugin_block": ["saying"]}))
    person = Person(answer=False)

    async with opened(tmp_path, ask_trust=person, plugins=[Saying("x", "x")]) as host:
        person.answer = True
        await host.refresh()
        assert await ask(host) == "one"
        assert host.location.settings.block == ("saying",)
        assert [each.name for each in host.plugins.list()] == ["acme", "saying"]


async def test_trust_that_is_given_while_the_host_runs_lets_a_reload_add_the_plugin(tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "acme.py", tool_plugin("one"))
    person = Person(answer=False)

    async with opened(tmp_path, ask_trust=person) as host, host.events.subscribe(PluginAdded) as added:
        person.answer = True
        await host.plugins.reload("acme")
        assert await ask(host) == "one"
        assert (await anext(added)).plugin == "acme"


# What runs is what was hashed


async def test_a_file_that_is_swapped_after_it_was_read_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / PLUGINS / "acme.py", tool_plugin("trusted"))

    class Swapping(Person):
        async def __call__(self, code: ProjectCode, verdict: Unknown | Changed) -> bool:
            write(file, marking(tmp_path / "marker"))
            return True

    async with opened(tmp_path, ask_trust=Swapping()) as host:
        assert await ask(host) == "trusted"
    assert not (tmp_path / "marker").exists()


async def test_cached_bytecode_beside_a_file_does_not_run(tmp_path: Path) -> None:
    file = write(tmp_path / PLUGINS / "box" / "__init__.py", tool_plugin("trusted"))
    evil = write(tmp_path / "evil.py", marking(tmp_path / "marker"))
    for target in (file, file.with_name("lazy.py")):
        cached = file.parent / "__pycache__" / f"{target.stem}.{sys.implementation.cache_tag}.pyc"
        py_compile.compile(
            str(evil), cfile=str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
        )

    async with opened(tmp_path, ask_trust=Person()) as host:
        assert await ask(host) == "trusted"
    assert not (tmp_path / "marker").exists()


async def test_a_part_that_was_not_there_when_the_package_was_trusted_cannot_be_imported(tmp_path: Path) -> None:
    source = tool_plugin("x").replace("return ToolOutput(text='x')", "from . import late")
    file = write(tmp_path / PLUGINS / "box" / "__init__.py", source)

    async with opened(tmp_path, ask_trust=Person()) as host:
        write(file.with_name("late.py"), marking(tmp_path / "marker"))
        with pytest.raises(ImportError, match="late"):
            await ask(host)
    assert not (tmp_path / "marker").exists()


async def test_settings_that_are_swapped_after_they_were_read_do_not_count(tmp_path: Path) -> None:
    config = write(tmp_path / "opencode.json", json.dumps({"plugin_watch": False}))

    class Swapping(Person):
        async def __call__(self, code: ProjectCode, verdict: Unknown | Changed) -> bool:
            write(config, json.dumps({"plugin_block": ["saying"]}))
            return True

    async with opened(tmp_path, plugins=[Saying("one")], ask_trust=Swapping()) as host:
        assert await ask(host) == "one"


async def test_a_file_that_becomes_a_link_out_of_the_project_is_refused_even_after_trust(tmp_path: Path) -> None:
    work = tmp_path / "work"
    file = write(work / PLUGINS / "acme.py", tool_plugin("inside"))
    outside = write(tmp_path / "outside.py", marking(tmp_path / "marker"))

    async with opened(work, ask_trust=Person()) as host:
        file.unlink()
        file.symlink_to(outside)
        with pytest.raises(PluginUntrustedError, match="outside of the project"):
            await host.plugins.reload("acme")
        await host.refresh()
        assert await ask(host) == "inside"
        assert [each.name for each in host.plugins.list()] == ["acme"]
    async with opened(work, ask_trust=Person()) as host:
        assert host.plugins.get("acme").state == "untrusted"
    assert not (tmp_path / "marker").exists()


# Reloading


async def test_reloading_a_changed_file_without_new_trust_keeps_the_old_generation(tmp_path: Path) -> None:
    file = write(tmp_path / PLUGINS / "acme.py", tool_plugin("old"))
    person = Person()

    async with opened(tmp_path, ask_trust=person) as host, host.events.subscribe(PluginFailed) as failed:
        person.answer = False
        write(file, marking(tmp_path / "marker"))
        with pytest.raises(PluginUntrustedError, match="changed since it was trusted") as caught:
            await host.plugins.reload("acme")
        assert f"opencode-core plugins trust {tmp_path}" in caught.value.remedy
        assert await ask(host) == "old"
        assert (await anext(failed)).generation == 1
    assert not (tmp_path / "marker").exists()


async def test_reloading_sees_trust_that_was_given_elsewhere_also_for_changed_settings(tmp_path: Path) -> None:
    file = write(tmp_path / PLUGINS / "acme.py", tool_plugin("old"))
    config = write(tmp_path / "opencode.json", json.dumps({"plugin_watch": False}))
    data = tmp_path / "data"

    async with opened(tmp_path, ask_trust=Person(), data_dir=data) as host:
        host._boarding.finder.ask = None
        write(file, tool_plugin("new"))
        write(config, json.dumps({"plugin_block": ["other"]}))
        trust_as_the_command_line_does(host, data)
        await host.plugins.reload("acme")
        assert await ask(host) == "new"
        assert host.location.settings.block == ("other",)


def trust_as_the_command_line_does(host: Host, data: Path) -> None:
    location = host.location.location
    code = Finder.read(location.root, root=location.root, documents=host._boarding.documents.of(location))
    TrustStore(data / "trust.toml").trust(code, when="2026-01-01T00:00:00Z")


async def test_a_declared_file_goes_on_when_its_project_changed_without_new_trust(tmp_path: Path) -> None:
    file = write(tmp_path / "own.py", tool_plugin("old"))
    write(tmp_path / "opencode.json", json.dumps({"plugin": ["./own.py"]}))
    person = Person()

    async with opened(tmp_path, ask_trust=person) as host:
        person.answer = False
        write(file, tool_plugin("new"))
        await host.refresh()
        assert await ask(host) == "old"


async def test_an_installed_plugin_goes_on_when_the_project_that_names_it_changed_without_new_trust(
    tmp_path: Path,
) -> None:
    work, target = tmp_path / "work", tmp_path / "target"
    write(target / "acme_kept_on.py", tool_plugin("old"))
    distribution(target, "acme-dist", {"acme": "acme_kept_on"})
    write(work / "opencode.json", json.dumps({"plugin": ["pip:acme-dist"]}))
    person = Person()

    class Installer:
        async def install(self, requirement: str) -> Path:
            return target

    async with opened(work, ask_trust=person, installer=Installer()) as host:
        person.answer = False
        write(work / PLUGINS / "late.py", marking(tmp_path / "marker"))
        await host.refresh()
        assert await ask(host) == "old"
    assert not (tmp_path / "marker").exists()


async def test_a_declared_file_that_is_missing_in_a_trusted_project_is_refused_once(tmp_path: Path) -> None:
    write(tmp_path / "opencode.json", json.dumps({"plugin": ["./own.py"]}))

    async with opened(tmp_path, ask_trust=Person()) as host:
        (status,) = host.plugins.list()
        assert (status.name, status.generation) == ("own", 0)
        assert "does not exist" in status.diagnostics[0].problem


# Projects side by side


async def test_a_project_plugin_is_seen_in_its_own_project_only(tmp_path: Path) -> None:
    write(tmp_path / "one" / PLUGINS / "acme.py", tool_plugin("one"))

    async with opened(tmp_path / "two", ask_trust=Person()) as host:
        async with host.open_location(tmp_path / "one") as place:
            assert await ask(place) == "one"
            assert await ask(host) == "unknown"
        assert host.plugins.list() == ()


async def test_two_projects_may_have_a_plugin_of_one_name_and_then_the_name_is_not_enough(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name / PLUGINS / "acme.py", tool_plugin(name))

    async with opened(tmp_path / "one", ask_trust=Person()) as host, host.open_location(tmp_path / "two") as place:
        assert (await ask(host), await ask(place)) == ("one", "two")
        with pytest.raises(PluginNotFoundError, match="Several plugins are called 'acme'") as caught:
            await host.plugins.reload("acme")
        assert f"'acme@{tmp_path / 'one'}', 'acme@{tmp_path / 'two'}'" in caught.value.remedy
        with pytest.raises(PluginNotFoundError, match="Several"):
            await host.plugins.wait("acme")
        write(tmp_path / "two" / PLUGINS / "acme.py", tool_plugin("new"))
        await host.plugins.reload(f"acme@{tmp_path / 'two'}")
        assert (await ask(host), await ask(place)) == ("one", "new")


async def test_a_project_plugin_with_the_name_of_one_that_serves_it_already_is_kept_out(tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "saying.py", tool_plugin("project"))

    async with opened(tmp_path, plugins=[Saying("host")], ask_trust=Person()) as host:
        assert await ask(host) == "host"
        (diagnostic,) = host.plugins.get(f"saying@{tmp_path}").diagnostics
        assert "Another plugin that is called 'saying'" in diagnostic.problem


async def test_of_two_files_with_one_name_in_a_project_removing_the_second_keeps_the_first(tmp_path: Path) -> None:
    write(tmp_path / ".opencode" / "plugin" / "acme.py", tool_plugin("first"))
    second = write(tmp_path / ".opencode" / "plugins" / "acme.py", tool_plugin("second"))

    async with opened(tmp_path, ask_trust=Person()) as host:
        second.unlink()
        await host.refresh()
        assert [(each.name, each.state) for each in host.plugins.list()] == [("acme", "active")]
        assert await ask(host) == "first"


async def test_a_location_inside_a_project_sees_the_plugins_of_the_folders_above(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write(tmp_path / PLUGINS / "outer.py", tool_plugin("outer", tool="outer"))
    write(tmp_path / "sub" / PLUGINS / "inner.py", tool_plugin("inner", tool="inner"))

    async with opened(tmp_path / "sub", ask_trust=Person()) as host, host.open_location(tmp_path) as above:
        assert tools(host) == ["inner", "outer"]
        assert tools(above) == ["outer"]


async def test_a_new_file_that_the_project_blocks_is_not_imported_when_it_is_found(tmp_path: Path) -> None:
    write(tmp_path / "opencode.json", json.dumps({"plugin_block": ["late"]}))

    async with opened(tmp_path, ask_trust=Person()) as host:
        write(tmp_path / PLUGINS / "late.py", marking(tmp_path / "marker"))
        await host.refresh()
        assert host.plugins.get("late").state == "blocked"
    assert not (tmp_path / "marker").exists()


async def test_an_installed_plugin_that_a_project_names_is_confined_to_it(tmp_path: Path, site: Path) -> None:
    write(site / "acme_confined.py", tool_plugin("confined"))
    distribution(site, "acme", {})
    write(tmp_path / "work" / "opencode.json", json.dumps({"plugin": ["acme_confined"]}))

    async with (
        opened(tmp_path / "other", ask_trust=Person()) as host,
        host.open_location(tmp_path / "work") as place,
    ):
        assert await ask(place) == "confined"
        assert await ask(host) == "unknown"


async def test_a_module_that_a_project_names_and_holds_itself_is_refused_even_when_trusted(
    tmp_path: Path, site: Path
) -> None:
    write(site / "helper_of_project.py", marking(tmp_path / "marker"))
    write(tmp_path / "opencode.json", json.dumps({"plugin": ["helper_of_project"]}))

    async with opened(tmp_path, ask_trust=Person()) as host:
        status = host.plugins.get("helper_of_project")
        assert status.state == "untrusted"
        assert "Name it by its path" in status.diagnostics[-1].remedy
    assert not (tmp_path / "marker").exists()


async def test_reloading_never_runs_what_the_person_blocked_however_it_is_trusted(tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "evil.py", marking(tmp_path / "marker"))

    async with opened(tmp_path, config={"plugin_block": ["evil"]}, ask_trust=Person(False)) as host:
        host._boarding.finder.ask = Person()
        with pytest.raises(PluginReloadError, match="blocked"):
            await host.plugins.reload("evil")
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("requirement", ["./mine", "/tmp/mine", "mine @ file:///tmp/mine", "-e .", "~/mine"])
async def test_a_project_cannot_have_a_local_path_installed(tmp_path: Path, requirement: str) -> None:
    write(tmp_path / "opencode.json", json.dumps({"plugin": [f"pip:{requirement}"]}))

    class Installer:
        async def install(self, requirement: str) -> Path:
            raise AssertionError(requirement)

    async with opened(tmp_path, installer=Installer(), ask_trust=Person()) as host:
        [status] = host.plugins.list()
        assert status.state == "untrusted"
        assert "may not have a local path installed" in status.diagnostics[-1].problem


async def test_a_file_that_the_person_names_needs_no_trust_of_the_project_it_is_in(tmp_path: Path) -> None:
    file = write(tmp_path / PLUGINS / "acme.py", tool_plugin("one"))

    async with opened(tmp_path, plugins=[file]) as host:
        [status] = host.plugins.list()
        assert (status.state, status.diagnostics) == ("active", ())
        assert status.also_found == (f"project: {file}",)
