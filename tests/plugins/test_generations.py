"""New code is imported beside the old, and either stays or leaves no trace in Python's modules."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from opencode_core.errors import PluginImportError, PluginNotFoundError
from opencode_core.plugins.candidate import Candidate, FileCode, ModuleCode
from opencode_core.plugins.generations import Importer
from tests.host.making import clean_imports, site, write

__all__ = ["clean_imports", "site"]


@pytest.fixture
def importer() -> Iterator[Importer]:
    importer = Importer()
    importer.open()
    yield importer
    importer.close()


def of_file(path: Path) -> Candidate:
    return Candidate(name="acme", origin="file", location=str(path), identity=str(path), code=FileCode(path=path))


def of_module(module: str, attribute: str = "") -> Candidate:
    code = ModuleCode(module=module, attribute=attribute)
    return Candidate(name=module, origin="module", location=module, identity=module, code=code)


def load(importer: Importer, candidate: Candidate) -> ModuleType:
    return cast("ModuleType", importer.load(candidate))


def reload(importer: Importer, candidate: Candidate) -> ModuleType:
    with importer.begin([candidate]) as replacement:
        plugin = replacement.load(candidate)
        replacement.commit()
    return cast("ModuleType", plugin)


def write_at_noon(path: Path, text: str) -> None:
    """Write a file as if always in the same second, which is all that cached bytecode knows of it."""
    os.utime(write(path, text), (1_000_000_000, 1_000_000_000))


@pytest.fixture(autouse=True)
def cached_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python keeps bytecode, whatever the environment of the tests says."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def modules(root: str) -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name == root or name.startswith(f"{root}.")}


# The first import


def test_a_file_knows_its_own_path_and_a_package_its_parts(importer: Importer, tmp_path: Path) -> None:
    file = write(tmp_path / "acme" / "__init__.py", "from .part import value\nfrom . import part\n")
    write(tmp_path / "acme" / "part.py", "value = 1\n")

    plugin = load(importer, of_file(tmp_path / "acme"))

    assert (plugin.__file__, plugin.value, plugin.part.value) == (str(file), 1, 1)


def test_a_folder_without_an_init_inside_a_package_is_a_package_too(importer: Importer, tmp_path: Path) -> None:
    write(tmp_path / "acme" / "__init__.py", "from .deep.deeper.part import value\n")
    write(tmp_path / "acme" / "deep" / "deeper" / "part.py", "value = 1\n")

    assert load(importer, of_file(tmp_path / "acme")).value == 1


def test_an_import_that_fails_leaves_no_modules(importer: Importer, tmp_path: Path) -> None:
    write(tmp_path / "acme" / "__init__.py", "from . import part\n1/0\n")
    write(tmp_path / "acme" / "part.py", "")
    before = dict(sys.modules)

    with pytest.raises(PluginImportError):
        importer.load(of_file(tmp_path / "acme"))

    assert sys.modules == before


def test_an_installed_package_that_fails_leaves_no_modules(importer: Importer, site: Path) -> None:
    write(site / "acme_failing" / "__init__.py", "from . import part\n1/0\n")
    write(site / "acme_failing" / "part.py", "")
    before = dict(sys.modules)

    with pytest.raises(PluginImportError):
        importer.load(of_module("acme_failing"))

    assert sys.modules == before


@pytest.mark.parametrize("name", ["my plugin.py", "a.b.py", "class.py", "über.py", "a-b.py"])
def test_a_file_may_have_a_name_that_no_module_can_have(importer: Importer, tmp_path: Path, name: str) -> None:
    assert load(importer, of_file(write(tmp_path / name, "value = 1\n"))).value == 1


def test_two_files_of_one_name_are_two_modules(importer: Importer, tmp_path: Path) -> None:
    paths = [write(tmp_path / folder / "acme.py", f"value = {folder!r}\n") for folder in ("a", "b")]

    assert [load(importer, of_file(path)).value for path in paths] == ["a", "b"]


def test_two_hosts_import_the_same_file_each_for_itself(importer: Importer, tmp_path: Path) -> None:
    candidate, other = of_file(write(tmp_path / "acme.py", "value = []\n")), Importer()
    other.open()

    assert load(importer, candidate) is not load(other, candidate)
    other.close()
    assert reload(importer, candidate).value == []


def test_two_hosts_do_not_share_a_file_that_failed_in_the_first(importer: Importer, tmp_path: Path) -> None:
    candidate, other = of_file(write(tmp_path / "acme.py", "1/0\n")), Importer()
    other.open()
    with pytest.raises(PluginImportError):
        importer.load(candidate)
    write(tmp_path / "acme.py", "value = 1\n")
    second = load(other, candidate)

    first = reload(importer, candidate)

    assert first is not second
    assert second in sys.modules.values()
    other.close()


def test_reloading_in_one_of_two_hosts_that_reloaded_before_finds_the_code(importer: Importer, site: Path) -> None:
    write(site / "acme_shared.py", "value = 1\n")
    candidate, other = of_module("acme_shared"), Importer()
    other.open()
    load(importer, candidate)
    load(other, candidate)

    assert [reload(each, candidate).value for each in (importer, other, importer)] == [1, 1, 1]
    other.close()


def test_a_missing_attribute_is_an_import_error(importer: Importer) -> None:
    with pytest.raises(PluginImportError, match="no_such_thing"):
        importer.load(of_module("json", "no_such_thing"))


# Again


def test_a_single_file_is_seen_as_it_is_now(importer: Importer, tmp_path: Path) -> None:
    candidate = of_file(write(tmp_path / "acme.py", "value = 1\n"))
    old = load(importer, candidate)
    write(tmp_path / "acme.py", "value = 2\n")

    new = reload(importer, candidate)

    assert (old.value, new.value, new.__name__ == old.__name__) == (1, 2, True)
    assert sys.modules[new.__name__] is new


@pytest.mark.parametrize("kind", ["file", "installed"])
def test_a_changed_part_of_a_package_is_seen(importer: Importer, tmp_path: Path, site: Path, kind: str) -> None:
    write(
        site / "acme_parts" / "__init__.py",
        "from acme_parts.part import value\n" if kind == "installed" else "from .part import value\n",
    )
    write(site / "acme_parts" / "part.py", "value = 1\n")
    candidate = of_module("acme_parts") if kind == "installed" else of_file(site / "acme_parts")
    load(importer, candidate)
    write(site / "acme_parts" / "part.py", "value = 2\n")

    assert reload(importer, candidate).value == 2


@pytest.mark.parametrize("kind", ["file", "installed"])
def test_edits_of_the_same_size_within_one_second_are_all_seen(importer: Importer, site: Path, kind: str) -> None:
    write(site / "acme_quick" / "__init__.py", "from . import part\nfrom .part import value\n")
    file = site / "acme_quick" / "part.py"
    candidate = of_module("acme_quick") if kind == "installed" else of_file(site / "acme_quick")
    write_at_noon(file, "value = 0\n")
    load(importer, candidate)

    for value in range(1, 10):
        write_at_noon(file, f"value = {value}\n")
        assert reload(importer, candidate).value == value


def test_a_part_that_is_imported_late_is_seen_as_it_is_then(importer: Importer, site: Path) -> None:
    source = "def value():\n    from . import late\n    return late.value\n"
    write(site / "acme_late" / "__init__.py", source)
    write_at_noon(site / "acme_late" / "late.py", "value = 0\n")
    candidate = of_module("acme_late")
    assert load(importer, candidate).value() == 0

    for value in range(1, 6):
        write_at_noon(site / "acme_late" / "late.py", f"value = {value}\n")
        assert reload(importer, candidate).value() == value


def test_a_new_part_is_found_and_one_that_is_gone_is_not(importer: Importer, site: Path) -> None:
    write(site / "acme_moving" / "__init__.py", "from .one import value\n")
    write(site / "acme_moving" / "one.py", "value = 1\n")
    candidate = of_module("acme_moving")
    load(importer, candidate)
    (site / "acme_moving" / "one.py").unlink()
    write(site / "acme_moving" / "two.py", "value = 2\n")
    write(site / "acme_moving" / "__init__.py", "from .two import value\n")

    assert reload(importer, candidate).value == 2
    assert set(modules("acme_moving")) == {"acme_moving", "acme_moving.two"}


def test_a_plugin_in_a_namespace_leaves_its_neighbours_alone(importer: Importer, site: Path) -> None:
    write(site / "acme_ns" / "one" / "__init__.py", "value = 1\n")
    write(site / "acme_ns" / "two" / "__init__.py", "value = 1\n")
    load(importer, of_module("acme_ns.one"))
    neighbour = load(importer, of_module("acme_ns.two"))
    write(site / "acme_ns" / "one" / "__init__.py", "value = 2\n")

    new = reload(importer, of_module("acme_ns.one"))

    assert new.value == 2
    assert sys.modules["acme_ns.two"] is neighbour
    assert sys.modules["acme_ns"].one is new


def test_two_plugins_of_one_package_are_imported_in_one_step(importer: Importer, site: Path) -> None:
    write(site / "acme_pair" / "__init__.py", "")
    write(site / "acme_pair" / "shared.py", "class Shared: pass\n")
    for name in ("one", "two"):
        write(site / "acme_pair" / f"{name}.py", "from .shared import Shared\n")
    pair = [of_module("acme_pair.one"), of_module("acme_pair.two")]
    old = [load(importer, each) for each in pair]

    with importer.begin(pair) as replacement:
        new = [cast("ModuleType", replacement.load(each)) for each in pair]
        replacement.commit()

    assert new[0].Shared is new[1].Shared
    assert new[0].Shared is not old[0].Shared


# What is the host's own


def test_modules_that_the_host_imported_before_are_not_unloaded(importer: Importer, site: Path) -> None:
    write(site / "acme_app" / "__init__.py", "")
    write(site / "acme_app" / "core.py", "state = []\n")
    write(site / "acme_app" / "plugin.py", "from . import core, helper\nvalue = 1\n")
    write(site / "acme_app" / "helper.py", "value = 1\n")
    core = __import__("acme_app.core").core
    candidate = of_module("acme_app.plugin")
    old = load(importer, candidate)

    new = reload(importer, candidate)

    assert new is not old
    assert new.core is old.core is core is sys.modules["acme_app.core"]
    assert new.helper is not old.helper


def test_a_part_that_the_new_code_does_not_import_is_not_left_in_the_hosts_package(
    importer: Importer, site: Path
) -> None:
    write(site / "acme_rest" / "__init__.py", "")
    write(site / "acme_rest" / "plugin.py", "from . import helper\n")
    write(site / "acme_rest" / "helper.py", "")
    package = __import__("acme_rest")
    candidate = of_module("acme_rest.plugin")
    load(importer, candidate)
    write(site / "acme_rest" / "plugin.py", "value = 1\n")

    new = reload(importer, candidate)

    assert package.plugin is new
    assert not hasattr(package, "helper")
    del sys.modules["acme_rest"]


# Rolling back


@pytest.mark.parametrize("kind", ["file", "installed"])
@pytest.mark.parametrize("fault", ["def (:\n", "1/0\n", "import acme_not_there\n", "raise SystemExit\n"])
def test_code_that_fails_leaves_the_modules_exactly_as_they_were(
    importer: Importer, site: Path, fault: str, kind: str
) -> None:
    write(site / "acme_back" / "__init__.py", "from . import part\nfrom .part import value\n")
    write(site / "acme_back" / "part.py", "value = 1\n")
    candidate = of_module("acme_back") if kind == "installed" else of_file(site / "acme_back")
    old = load(importer, candidate)
    part, before = old.part, dict(sys.modules)
    write(site / "acme_back" / "new.py", "")
    write(site / "acme_back" / "__init__.py", f"from . import new, part\n{fault}")

    with pytest.raises(PluginImportError), importer.begin([candidate]) as replacement:
        replacement.load(candidate)

    assert sys.modules == before
    assert old.part is part
    assert sys.modules[old.__name__] is old


def test_what_was_rolled_back_can_still_import_its_parts(importer: Importer, tmp_path: Path) -> None:
    write(tmp_path / "acme" / "__init__.py", "def value():\n    from .late import value\n    return value\n")
    write(tmp_path / "acme" / "late.py", "value = 'old'\n")
    candidate = of_file(tmp_path / "acme")
    old = load(importer, candidate)
    write(tmp_path / "acme" / "late.py", "value = 'new'\n")
    with importer.begin([candidate]) as replacement:
        replacement.load(candidate)

    assert old.value() == "old"


def test_rolling_back_takes_new_parts_out_of_the_hosts_package(importer: Importer, site: Path) -> None:
    write(site / "acme_kept" / "__init__.py", "")
    write(site / "acme_kept" / "plugin.py", "")
    package = __import__("acme_kept")
    candidate = of_module("acme_kept.plugin")
    old = load(importer, candidate)
    write(site / "acme_kept" / "fresh.py", "")
    write(site / "acme_kept" / "plugin.py", "from . import fresh\n1/0\n")

    with pytest.raises(PluginImportError), importer.begin([candidate]) as replacement:
        replacement.load(candidate)

    assert package.plugin is old
    assert not hasattr(package, "fresh")
    del sys.modules["acme_kept"]


def test_a_file_that_is_gone_says_so(importer: Importer, tmp_path: Path) -> None:
    candidate = of_file(write(tmp_path / "acme.py", ""))
    load(importer, candidate)
    (tmp_path / "acme.py").unlink()

    with pytest.raises(PluginNotFoundError, match="is gone"), importer.begin([candidate]) as replacement:
        replacement.load(candidate)


# Forgetting


def test_a_file_that_is_forgotten_leaves_no_modules(importer: Importer, tmp_path: Path) -> None:
    write(tmp_path / "acme" / "__init__.py", "from . import part\n")
    write(tmp_path / "acme" / "part.py", "")
    before = dict(sys.modules)
    candidate = of_file(tmp_path / "acme")
    load(importer, candidate)

    importer.forget(candidate)

    assert sys.modules == before


def test_closing_twice_is_harmless_and_puts_the_path_back(tmp_path: Path) -> None:
    before = list(sys.path), list(sys.meta_path)
    importer = Importer()
    importer.open()
    write(tmp_path / "acme_in_folder.py", "")
    code = ModuleCode(module="acme_in_folder", path=tmp_path)
    importer.load(Candidate(name="a", origin="entry point", location="a", identity="a", code=code))

    importer.close()
    importer.close()

    assert (sys.path, sys.meta_path) == before
