"""A host loads what it finds, each plugin once, and says what it left out and why."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import attrs
import pytest

from opencode_core.errors import ConfigError, PluginContractError, PluginError, PluginImportError, PluginInstallError
from opencode_core.plugins.slots import TOOLS
from plugin_sdk import CatalogDraft, PluginManifest, PluginScope, Tool, hookimpl
from tests.host.making import (
    PLUGINS,
    Person,
    Saying,
    a_tool,
    ask,
    distribution,
    marking,
    opened,
    tool_plugin,
    tools,
    write,
)

pytestmark = pytest.mark.anyio


# Every way to be found


async def test_an_installed_plugin_is_found_by_its_entry_point(tmp_path: Path, site: Path) -> None:
    write(site / "acme_found.py", tool_plugin("installed"))
    distribution(site, "acme-dist", {"acme": "acme_found"})

    async with opened(tmp_path / "work", entry_points=True) as host:
        status = host.plugins.get("acme")
        assert (status.state, status.origin, status.version) == ("active", "entry point", "1.0")
        assert await ask(host) == "installed"


async def test_a_configured_module_is_loaded(tmp_path: Path, site: Path) -> None:
    write(site / "acme_module.py", tool_plugin("module"))

    async with opened(tmp_path / "work", config={"plugin": ["acme_module"]}) as host:
        assert await ask(host) == "module"


async def test_a_configured_attribute_is_made_and_loaded(tmp_path: Path, site: Path) -> None:
    source = """
    from plugin_sdk import *
    from tests.host.making import a_tool

    class Box:
        class Thing:
            @hookimpl
            def opencode_tools(self):
                return {"answer": a_tool("attribute")}
    """
    write(site / "acme_attribute.py", source)

    async with opened(tmp_path / "work", config={"plugin": ["acme_attribute:Box.Thing"]}) as host:
        assert await ask(host) == "attribute"


@pytest.mark.behaviour("PL-07")
async def test_a_configured_path_is_relative_to_the_file_that_says_it(tmp_path: Path) -> None:
    config = tmp_path / "config"
    write(config / "plugins" / "acme.py", tool_plugin("from config"))
    write(config / "opencode.json", json.dumps({"plugin": ["./plugins/acme.py"]}))

    async with opened(tmp_path / "work", config_dir=config) as host:
        assert await ask(host) == "from config"


async def test_a_configured_package_may_import_its_own_parts(tmp_path: Path) -> None:
    write(tmp_path / "acme" / "__init__.py", "from .part.deep import opencode_tools\n")
    write(tmp_path / "acme" / "part" / "deep.py", tool_plugin("package"))

    async with opened(tmp_path / "work", plugins=[tmp_path / "acme"]) as host:
        assert await ask(host) == "package"


@pytest.mark.behaviour("PL-11")
@pytest.mark.parametrize("folder", ["plugins", "plugin"])
async def test_what_lies_in_a_plugin_folder_of_the_project_is_loaded(tmp_path: Path, folder: str) -> None:
    write(tmp_path / ".opencode" / folder / "single.py", tool_plugin("single", tool="single"))
    write(tmp_path / ".opencode" / folder / "package" / "__init__.py", "from .part import *\n")
    write(tmp_path / ".opencode" / folder / "package" / "part.py", tool_plugin("package", tool="package"))

    async with opened(tmp_path, ask_trust=Person()) as host:
        assert (await ask(host, "single"), await ask(host, "package")) == ("single", "package")


async def test_a_host_hands_over_modules_instances_and_classes_with_names_of_its_own(tmp_path: Path) -> None:
    module = ModuleType("acme_handed_over")
    exec(tool_plugin("module", tool="of_module"), vars(module))

    class OfClass:
        @hookimpl
        def opencode_tools(self) -> Mapping[str, Tool]:
            return {"of_class": a_tool("class")}

    plugins = {"mine": module, "yours": Saying("instance", "of_instance"), "theirs": OfClass}
    async with opened(tmp_path, plugins=plugins) as host:
        assert [status.name for status in host.plugins.list()] == ["mine", "theirs", "yours"]
        assert tools(host) == ["of_class", "of_instance", "of_module"]


@attrs.define(eq=False)
class Installing:
    """An installer that has the distribution already."""

    folder: Path
    asked: list[str] = attrs.field(factory=list)

    async def install(self, requirement: str) -> Path:
        self.asked.append(requirement)
        if not self.folder.is_dir():
            raise PluginInstallError("It is not there.", plugin=requirement)
        return self.folder


@pytest.mark.behaviour("PL-10")
async def test_a_requirement_is_installed_as_it_is_written_and_its_entry_point_loaded(tmp_path: Path) -> None:
    write(tmp_path / "target" / "acme_required.py", tool_plugin("required"))
    installer = Installing(distribution(tmp_path / "target", "acme", {"acme": "acme_required"}))

    config = {"plugin": ["pip:acme[extra] ==1.0; python_version > '3'"]}
    async with opened(tmp_path / "work", config=config, installer=installer) as host:
        assert installer.asked == ["acme[extra] ==1.0; python_version > '3'"]
        assert await ask(host) == "required"


@pytest.mark.behaviour("PL-10", "PL-09")
async def test_a_requirement_that_cannot_be_installed_costs_only_itself(tmp_path: Path) -> None:
    good = write(tmp_path / "good.py", tool_plugin("good"))

    config = {"plugin": ["pip:acme", str(good)]}
    async with opened(tmp_path / "work", config=config, installer=Installing(tmp_path / "no")) as host:
        assert host.plugins.get("acme").state == "failed"
        assert await ask(host) == "good"


async def test_a_distribution_without_a_plugin_says_what_it_lacks(tmp_path: Path) -> None:
    installer = Installing(distribution(tmp_path / "target", "acme", {}))

    async with opened(tmp_path / "work", config={"plugin": ["pip:acme"]}, installer=installer) as host:
        (diagnostic,) = host.plugins.get("acme").diagnostics
        assert "declares no plugin" in diagnostic.problem
        assert "opencode.plugins" in diagnostic.remedy


# Once


async def test_an_entry_point_that_is_also_configured_loads_once_and_says_so(tmp_path: Path, site: Path) -> None:
    write(site / "acme_twice.py", tool_plugin("once"))
    distribution(site, "acme", {"acme": "acme_twice"})

    config = {"plugin": ["acme_twice", str(site / "acme_twice.py")]}
    async with opened(tmp_path / "work", entry_points=True, config=config) as host:
        found = [status for status in host.plugins.list() if "acme_twice" in status.location]
        assert [(status.name, status.generation) for status in found] == [("acme", 1)]
        assert found[0].also_found == ("module: acme_twice", f"file: {site / 'acme_twice.py'}")


async def test_a_file_by_its_name_and_by_a_link_loads_once(tmp_path: Path) -> None:
    write(tmp_path / "acme.py", tool_plugin("once"))
    (tmp_path / "link.py").symlink_to(tmp_path / "acme.py")
    (tmp_path / "sub").mkdir()

    async with opened(tmp_path, config={"plugin": ["./acme.py", "./sub/../acme.py", "./link.py"]}) as host:
        (status,) = host.plugins.list()
        assert (status.name, status.also_found) == ("acme", (f"file: {tmp_path / 'link.py'}",))


async def test_a_module_of_the_host_that_is_also_configured_loads_once(tmp_path: Path, site: Path) -> None:
    file = write(site / "acme_both.py", tool_plugin("once"))
    __import__("acme_both")

    async with opened(tmp_path / "work", plugins=[sys.modules.pop("acme_both"), file]) as host:
        (status,) = host.plugins.list()
        assert len(status.also_found) == 1
        assert await ask(host) == "once"


async def test_looking_again_is_not_another_way_to_be_found(tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "acme.py", tool_plugin("one"))

    async with opened(tmp_path, ask_trust=Person()) as host:
        await host.refresh()
        (status,) = host.plugins.list()
        assert (status.also_found, status.generation) == ((), 1)


async def test_of_two_plugins_with_one_name_the_first_stays_and_both_places_are_named(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "acme.py", tool_plugin("first"))
    second = write(tmp_path / "b" / "acme.py", tool_plugin("second"))

    async with opened(tmp_path / "work", plugins=[first, second]) as host:
        assert await ask(host) == "first"
        active, failed = host.plugins.list()
        assert (active.state, failed.state) == ("active", "failed")
        assert str(first) in failed.diagnostics[0].problem
        assert str(second) in failed.diagnostics[0].problem


async def test_the_second_of_one_name_can_take_over_when_the_first_is_gone(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "acme.py", tool_plugin("first"))
    second = write(tmp_path / "b" / "acme.py", tool_plugin("second"))

    async with opened(tmp_path / "work", plugins=[first, second]) as host:
        with pytest.raises(PluginContractError, match="Two plugins"):
            await host.plugins.reload("acme#2")
        await host.plugins.remove("acme")
        await host.plugins.reload("acme#2")
        assert await ask(host) == "second"


async def test_the_same_object_cannot_be_added_under_a_second_name(tmp_path: Path) -> None:
    plugin = Saying("one")

    async with opened(tmp_path, plugins=[plugin]) as host:
        with pytest.raises(PluginContractError, match="here already, as 'saying'"):
            await host.plugins.add(plugin, name="other")
        assert await ask(host) == "one"


# Allow and block


async def test_only_allowed_plugins_are_imported(tmp_path: Path) -> None:
    good, marker = write(tmp_path / "good.py", tool_plugin("good")), tmp_path / "marker"
    bad = write(tmp_path / "bad.py", marking(marker))

    async with opened(tmp_path / "work", plugins=[good, bad], config={"plugin_allow": ["good"]}) as host:
        assert host.plugins.get("bad").state == "blocked"
        assert await ask(host) == "good"
    assert not marker.exists()


async def test_the_allow_list_does_not_concern_builtins_but_the_block_list_does(tmp_path: Path) -> None:
    config = {"plugin_allow": ["saying"], "plugin_block": ["date"]}
    async with opened(tmp_path, entry_points=True, plugins=[Saying("one")], config=config) as host:
        states = {status.name: status.state for status in host.plugins.list()}
        assert states["environment"] == "active"
        assert states["date"] == "blocked"


async def test_a_blocked_plugin_is_never_imported_not_even_to_reload_it(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    bad = write(tmp_path / "bad.py", marking(marker))

    async with opened(tmp_path / "work", plugins=[bad], config={"plugin_block": ["bad"]}) as host:
        with pytest.raises(PluginError, match="blocked"):
            await host.plugins.reload("bad")
        with pytest.raises(PluginError, match="is blocked"):
            await host.plugins.wait("bad")
    assert not marker.exists()


async def test_a_host_cannot_add_what_the_person_blocked(tmp_path: Path) -> None:
    async with opened(tmp_path, plugins=[Saying("x")], config={"plugin_block": ["saying"]}) as host:
        with pytest.raises(PluginError, match="'saying' is blocked"):
            await host.plugins.add(Saying("one"))
        assert tools(host) == []


@pytest.mark.parametrize("key", ["plugin_allow", "plugin_block"])
async def test_an_unknown_name_in_a_list_is_an_error_that_suggests_the_right_one(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=f"'{key}' names the plugin 'syaing'.*Did you mean 'saying'"):
        async with opened(tmp_path, plugins=[Saying("one")], config={key: ["syaing"]}):
            raise AssertionError("unreachable")


async def test_options_for_an_unknown_plugin_are_warned_about(tmp_path: Path) -> None:
    async with opened(tmp_path, plugins=[Saying("one")], config={"plugins": {"syaing": {"a": 1}}}) as host:
        (notice,) = host.plugins.notices
        assert "'syaing', which was not found" in notice.problem
        assert "Did you mean 'saying'" in notice.remedy


# One bad plugin


@pytest.mark.behaviour("PL-09")
async def test_a_missing_and_an_invalid_plugin_do_not_stop_the_valid_one_after_them(tmp_path: Path) -> None:
    write(tmp_path / "invalid.py", "def (:\n")
    write(tmp_path / "valid.py", tool_plugin("valid"))

    config = {"plugin": ["./missing.py", "acme_not_installed", "./invalid.py", "./valid.py"]}
    async with opened(tmp_path, config=config) as host:
        states = {status.name: status.state for status in host.plugins.list()}
        assert states == {"acme_not_installed": "failed", "invalid": "failed", "missing": "failed", "valid": "active"}
        assert await ask(host) == "valid"


async def test_a_class_that_cannot_be_made_costs_only_itself(tmp_path: Path) -> None:
    class Broken:
        def __init__(self) -> None:
            raise ValueError("no")

    async with opened(tmp_path, plugins=[Broken, Saying("good")]) as host:
        assert "ValueError: no" in host.plugins.get("broken").diagnostics[0].problem
        assert await ask(host) == "good"


# Options


@attrs.frozen
class Options:
    model: str = "none"


class Configured:
    opencode_plugin = PluginManifest(options=Options)

    @hookimpl
    def opencode_catalog(self, catalog: CatalogDraft, options: Options) -> None:
        catalog.provider("acme")
        catalog.model("acme", options.model)


@pytest.mark.behaviour("PL-05")
async def test_an_object_gets_its_options_and_its_catalog_edits_apply(tmp_path: Path) -> None:
    config = {"plugins": {"configured": {"model": "large"}}}
    async with opened(tmp_path, plugins=[Configured()], config=config) as host:
        assert [model.id for model in host.location.catalog.current.models] == ["large"]


@pytest.mark.behaviour("PL-08", "PL-07")
async def test_a_configured_file_gets_its_options_and_its_catalog_edits_apply(tmp_path: Path) -> None:
    source = """
    from tests.host.test_finding import Configured
    plugin = Configured()
    opencode_plugin, opencode_catalog = plugin.opencode_plugin, plugin.opencode_catalog
    """
    write(tmp_path / "config" / "acme.py", source)
    config = {"plugin": ["./acme.py"], "plugins": {"acme": {"model": "small"}}}
    write(tmp_path / "config" / "opencode.json", json.dumps(config))

    async with opened(tmp_path / "work", config_dir=tmp_path / "config") as host:
        assert [model.id for model in host.location.catalog.current.models] == ["small"]


async def test_a_project_plugin_takes_required_options_from_its_own_project(tmp_path: Path) -> None:
    source = """
    import attrs
    from plugin_sdk import *
    from tests.host.making import a_tool

    @attrs.frozen
    class Options:
        says: str

    opencode_plugin = PluginManifest(options=Options)

    @hookimpl
    def opencode_tools(options):
        return {"answer": a_tool(options.says)}
    """
    write(tmp_path / PLUGINS / "acme.py", source)
    write(tmp_path / "opencode.json", json.dumps({"plugins": {"acme": {"says": "from the project"}}}))

    async with opened(tmp_path, ask_trust=Person()) as host:
        assert await ask(host) == "from the project"


# While the host runs


@pytest.mark.behaviour("PL-06", "AT-05")
async def test_a_registration_that_is_closed_during_the_hook_leaves_nothing(tmp_path: Path) -> None:
    class Fickle:
        @hookimpl
        def opencode_tools(self, scope: PluginScope) -> Mapping[str, Tool]:
            scope.add_tool("gone", a_tool("gone")).close()
            scope.add_tool("kept", a_tool("kept"))
            return {}

    async with opened(tmp_path, plugins=[Fickle()]) as host:
        assert [each.key for each in host.location.read().all(TOOLS)] == ["kept"]


@pytest.mark.behaviour("PL-12")
async def test_a_plugin_added_to_a_live_host_changes_its_locations_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path / "work") as host, host.open_location(tmp_path) as place:
        await host.plugins.add(Configured())
        await host.plugins.add(Saying("live"))
        for where in (host.location, place):
            assert await ask(where) == "live"
            assert [model.id for model in where.catalog.current.models] == ["none"]


@pytest.mark.behaviour("PL-04", "AT-06")
async def test_a_removed_plugin_is_gone_with_everything_it_contributed(tmp_path: Path) -> None:
    async with opened(tmp_path, plugins=[Saying("one"), Configured()]) as host:
        await host.plugins.remove("saying")
        await host.plugins.remove("configured")
        assert await ask(host) == "unknown"
        assert host.location.catalog.current.models == ()
        assert host.plugins.list() == ()


# Strict


async def test_strict_raises_and_leaves_nothing_behind(tmp_path: Path) -> None:
    before = set(sys.modules), list(sys.meta_path), list(sys.path)
    write(tmp_path / "bad" / "__init__.py", "from . import part\nraise ValueError('no')")
    write(tmp_path / "bad" / "part.py", "")
    good = write(tmp_path / "a_good.py", tool_plugin("good"))

    with pytest.raises(PluginImportError, match="ValueError: no"):
        async with opened(tmp_path / "w", plugins=[good, tmp_path / "bad"], config={"plugin_strict": True}):
            raise AssertionError("unreachable")

    assert set(sys.modules) - before[0] == set()
    assert (sys.meta_path, sys.path) == before[1:]


async def test_strict_raises_when_a_hook_fails_in_the_first_location(tmp_path: Path) -> None:
    class Broken:
        @hookimpl
        def opencode_tools(self) -> Mapping[str, Tool]:
            raise ValueError("no")

    with pytest.raises(PluginError, match="'opencode_tools' of the plugin 'broken' raised: ValueError: no"):
        async with opened(tmp_path, plugins=[Broken()], config={"plugin_strict": True}):
            raise AssertionError("unreachable")


async def test_strict_keeps_a_plugin_that_fails_in_a_location_out_of_the_whole_host(tmp_path: Path) -> None:
    closed: list[str] = []

    class Broken:
        @hookimpl
        def opencode_tools(self, scope: PluginScope) -> Mapping[str, Tool]:
            scope.on_close(lambda: closed.append(scope.name))
            return None if scope.name.endswith("work") else 1  # type: ignore[return-value]

    config = {"plugin_strict": True}
    async with opened(tmp_path / "work", config=config) as host, host.open_location(tmp_path):
        with pytest.raises(PluginContractError):
            await host.plugins.add(Broken())
        assert host.plugins.get("broken").contributions == ()
        assert sorted(closed) == sorted([str(tmp_path), str(tmp_path / "work")])


async def test_strict_does_not_open_a_location_in_which_a_plugin_fails(tmp_path: Path) -> None:
    class Picky:
        @hookimpl
        def opencode_tools(self, scope: PluginScope) -> Mapping[str, Tool]:
            if not scope.name.endswith("work"):
                raise ValueError("not here")
            return {}

    async with opened(tmp_path / "work", plugins=[Picky()], config={"plugin_strict": True}) as host:
        with pytest.raises(PluginError, match="not here"):
            async with host.open_location(tmp_path):
                raise AssertionError("unreachable")
        assert host.plugins.places == (host.location,)
