"""Plugins are found in every way they can be offered, without running any of their code."""

import sys
from pathlib import Path

import pytest

from opencode_core.config import PluginSpec
from opencode_core.errors import PluginNotFoundError
from opencode_core.plugins.candidate import Candidate, FileCode, ModuleCode, ObjectCode, name_from
from opencode_core.plugins.loader import (
    from_entry_points,
    from_object,
    from_project,
    from_spec,
    locate,
    once,
    root_package,
)
from opencode_core.plugins.project_code import read_project_code
from tests.host.making import PLUGINS, distribution, site, write

__all__ = ["site"]


def spec(text: str, base: Path = Path("/base")) -> PluginSpec:
    return PluginSpec(text=text, base=base, origin="the test")


# Entry points


def test_an_installed_distribution_offers_its_entry_points(tmp_path: Path) -> None:
    distribution(tmp_path, "acme-plugin", {"acme": "acme.plugin:Thing"})

    (found,) = from_entry_points([str(tmp_path)])

    assert (found.name, found.origin, found.distribution, found.version) == (
        "acme",
        "entry point",
        "acme-plugin",
        "1.0",
    )
    assert found.code == ModuleCode(module="acme.plugin", attribute="Thing", path=tmp_path)


def test_entry_points_of_other_groups_are_no_plugins(tmp_path: Path) -> None:
    distribution(tmp_path, "acme", {})
    write(tmp_path / "acme-1.0.dist-info" / "entry_points.txt", "[console_scripts]\nacme = acme:main\n")

    assert from_entry_points([str(tmp_path)]) == []


def test_entry_points_are_ordered_by_name_whatever_the_order_of_their_distributions(tmp_path: Path) -> None:
    distribution(tmp_path, "one", {"zebra": "z", "cat": "c"})
    distribution(tmp_path, "two", {"dog": "d"})

    assert [each.name for each in from_entry_points([str(tmp_path)])] == ["cat", "dog", "zebra"]


def test_the_builtins_come_first_and_say_so() -> None:
    found = from_entry_points()

    builtins = [each.name for each in found if each.builtin]
    assert {"date", "environment"} <= set(builtins)
    assert [each.name for each in found][: len(builtins)] == builtins


def test_an_editable_install_is_watched_where_its_package_is(tmp_path: Path, site: Path) -> None:
    write(site / "acme" / "__init__.py", "")
    distribution(site, "acme", {"acme": "acme.plugin"}, editable=site)

    (found,) = [each for each in from_entry_points() if each.name == "acme"]

    assert found.watched == (site.resolve() / "acme",)


def test_an_ordinary_install_is_not_watched(tmp_path: Path, site: Path) -> None:
    write(site / "acme" / "__init__.py", "")
    distribution(site, "acme", {"acme": "acme.plugin"})

    (found,) = [each for each in from_entry_points() if each.name == "acme"]

    assert found.watched == ()


def test_finding_imports_nothing(tmp_path: Path, site: Path) -> None:
    write(site / "acme_quiet" / "__init__.py", "raise SystemExit('imported')")
    write(site / "acme_quiet" / "plugin.py", "raise SystemExit('imported')")
    distribution(site, "acme", {"acme": "acme_quiet.plugin"})

    from_entry_points()
    from_spec(spec("acme_quiet.plugin"))

    assert "acme_quiet" not in sys.modules


# Configured entries


def test_a_configured_module_is_named_after_its_last_part() -> None:
    found = from_spec(spec("json.decoder"))

    assert (found.name, found.origin, found.code) == ("decoder", "module", ModuleCode(module="json.decoder"))


def test_a_configured_attribute_of_a_module_is_another_plugin_than_the_module() -> None:
    module, attribute = from_spec(spec("json.decoder")), from_spec(spec("json.decoder:JSONDecoder"))

    assert attribute.code == ModuleCode(module="json.decoder", attribute="JSONDecoder")
    assert module.identity != attribute.identity


def test_a_configured_file_resolves_against_the_document_that_names_it(tmp_path: Path) -> None:
    file = write(tmp_path / "sub" / "acme.py", "")

    found = from_spec(spec("./sub/acme.py", tmp_path))

    assert (found.name, found.origin, found.code, found.watched) == ("acme", "file", FileCode(path=file), (file,))


def test_a_configured_folder_with_an_init_is_a_package(tmp_path: Path) -> None:
    write(tmp_path / "acme" / "__init__.py", "")

    found = from_spec(spec("./acme", tmp_path))

    assert (found.name, found.origin) == ("acme", "package")


@pytest.mark.parametrize(("text", "why"), [("./no.py", "not there"), ("./folder", "without"), ("./a.txt", "Python")])
def test_a_configured_path_without_a_plugin_says_what_is_there_instead(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "folder").mkdir()
    write(tmp_path / "a.txt", "")

    with pytest.raises(PluginNotFoundError, match=why) as caught:
        from_spec(spec(text, tmp_path))

    assert "the test" in caught.value.problem


# Objects


def test_a_module_object_is_the_same_plugin_as_its_file() -> None:
    import json.decoder

    assert from_object(json.decoder).identity == from_spec(spec(str(json.decoder.__file__))).identity


def test_an_object_is_named_after_its_class_and_a_class_after_itself() -> None:
    class AcmePlugin:
        pass

    assert [from_object(each).name for each in (AcmePlugin(), AcmePlugin)] == ["acmeplugin", "acmeplugin"]
    assert isinstance(from_object(AcmePlugin()).code, ObjectCode)


def test_a_given_name_wins(tmp_path: Path) -> None:
    assert from_object(object(), "mine").name == "mine"


# Projects


@pytest.mark.behaviour("PL-11")
@pytest.mark.parametrize("folder", ["plugins", "plugin"])
def test_the_plugin_folders_of_a_project_hold_files_and_packages(tmp_path: Path, folder: str) -> None:
    write(tmp_path / ".opencode" / folder / "one.py", "")
    write(tmp_path / ".opencode" / folder / "two" / "__init__.py", "")
    write(tmp_path / ".opencode" / folder / "two" / "part.py", "")
    write(tmp_path / ".opencode" / folder / "three" / "part.py", "")

    found = from_project(read_project_code(tmp_path, project_root=tmp_path))

    assert [each.name for each in found] == ["one", "two"]
    assert all(each.folder == tmp_path and each.origin == "project" for each in found)


def test_a_project_plugin_carries_only_the_bytes_of_its_own_files(tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "one.py", "1")
    write(tmp_path / PLUGINS / "two" / "__init__.py", "2")

    one, two = from_project(read_project_code(tmp_path, project_root=tmp_path))

    assert isinstance(one.code, FileCode)
    assert isinstance(two.code, FileCode)
    assert one.code.trusted == {tmp_path / PLUGINS / "one.py": b"1"}
    assert two.code.trusted == {tmp_path / PLUGINS / "two" / "__init__.py": b"2"}


# Once


def candidate(name: str, identity: str) -> Candidate:
    code = ObjectCode(value=name)
    return Candidate(name=name, origin="host", location=name, identity=identity, code=code)


def test_of_candidates_with_the_same_code_the_first_is_kept() -> None:
    first, again, other = candidate("a", "1"), candidate("b", "1"), candidate("c", "2")

    assert once([first, again, other]) == ([first, other], [again])


# Locating


def test_a_module_is_located_without_importing_its_package(site: Path) -> None:
    file = write(site / "acme_located" / "part.py", "")
    write(site / "acme_located" / "__init__.py", "raise SystemExit")

    assert locate("acme_located.part") == file.resolve()
    assert locate("acme_located.missing") is None


def test_the_root_of_a_module_stops_below_a_namespace_that_others_share(site: Path) -> None:
    write(site / "acme_space" / "plugin" / "__init__.py", "")
    write(site / "acme_whole" / "__init__.py", "")

    assert root_package("acme_space.plugin.part") == "acme_space.plugin"
    assert root_package("acme_whole.plugin") == "acme_whole"


@pytest.mark.parametrize(
    ("text", "name"), [("MyPlugin", "myplugin"), ("a b", "a-b"), ("_x_", "x"), ("---", "plugin"), ("x" * 99, "x" * 64)]
)
def test_a_name_is_made_from_whatever_a_file_or_class_is_called(text: str, name: str) -> None:
    assert name_from(text) == name
