from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from opencode_core.config import (
    Document,
    PluginSettings,
    PluginSpec,
    document_from,
    plugin_settings,
    read_documents,
)
from opencode_core.errors import ConfigError, Place
from opencode_core.model.json import JSON
from opencode_core.project import find_location


@attrs.frozen
class Disk:
    """A person's configuration folder, and a git project in which they work two folders down."""

    config_dir: Path
    root: Path

    @property
    def directory(self) -> Path:
        return self.root / "a" / "b"

    def read(self, **environ: str) -> tuple[Document, ...]:
        return read_documents(find_location(self.directory), config_dir=self.config_dir, environ=environ)

    def value(self, key: str, **environ: str) -> JSON:
        """What the document with the highest priority says."""
        return self.read(**environ)[-1].values[key]

    def error(self, **environ: str) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            self.read(**environ)
        assert caught.value.remedy
        return caught.value


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    home = Path(os.path.realpath(tmp_path))
    disk = Disk(home / "config", home / "project")
    disk.config_dir.mkdir()
    disk.directory.mkdir(parents=True)
    (disk.root / ".git").mkdir()
    return disk


def write(path: Path, values: JSON) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")
    return path


def of(*layers: Mapping[str, JSON]) -> tuple[Document, ...]:
    return tuple(document_from(values, base=Path("/base"), origin=f"layer {at}") for at, values in enumerate(layers))


# Layers


@pytest.mark.behaviour("V1-25", "CF-04")
def test_documents_come_from_the_person_then_the_project_then_the_environment(disk: Disk) -> None:
    files = [
        disk.config_dir / "opencode.json",
        disk.config_dir / "opencode.jsonc",
        disk.root / "opencode.json",
        disk.root / "opencode.jsonc",
        disk.directory / "opencode.json",
        disk.root / ".opencode" / "opencode.json",
        disk.directory / ".opencode" / "opencode.json",
        disk.directory / ".opencode" / "opencode.jsonc",
        disk.root.parent / "named.json",
    ]
    for file in reversed(files):
        write(file, {})

    documents = disk.read(OPENCODE_CONFIG=str(files[-1]), OPENCODE_CONFIG_CONTENT="{}")

    assert [document.origin for document in documents] == [*map(str, files), "OPENCODE_CONFIG_CONTENT"]


@pytest.mark.behaviour("CF-04")
def test_nothing_above_the_project_root_is_read(disk: Disk) -> None:
    write(disk.root.parent / "opencode.json", {})
    write(disk.root.parent / ".opencode" / "opencode.json", {})

    assert disk.read() == ()


def test_other_names_are_ignored(disk: Disk) -> None:
    write(disk.config_dir / "config.json", {})
    write(disk.root / "opencode.yaml", {})

    assert disk.read() == ()


def test_both_endings_may_hold_comments(disk: Disk) -> None:
    for name in ("opencode.json", "opencode.jsonc"):
        (disk.root / name).write_text('\ufeff{"a": 1, /* why */}', encoding="utf-8")

    assert [document.values for document in disk.read()] == [{"a": 1}, {"a": 1}]


def test_a_document_knows_its_base_and_the_project_folder_that_holds_it(disk: Disk) -> None:
    named = write(disk.root / "extra" / "named.json", {})
    write(disk.config_dir / "opencode.json", {})
    write(disk.root / "a" / "opencode.json", {})
    write(disk.root / "a" / ".opencode" / "opencode.json", {})

    documents = disk.read(OPENCODE_CONFIG=str(named), OPENCODE_CONFIG_CONTENT="{}")

    assert [(document.base, document.folder) for document in documents] == [
        (disk.config_dir, None),
        (disk.root / "a", disk.root / "a"),
        (disk.root / "a" / ".opencode", disk.root / "a"),
        (named.parent, None),
        (disk.directory, None),
    ]


@pytest.mark.parametrize("truth", ["1", "true", "TRUE", "yes"])
def test_a_switch_in_the_environment_leaves_the_projects_documents_out(disk: Disk, truth: str) -> None:
    write(disk.config_dir / "opencode.json", {})
    (disk.root / "opencode.json").write_text("not even valid")

    documents = disk.read(OPENCODE_DISABLE_PROJECT_CONFIG=truth)

    assert [document.folder for document in documents] == [None]


@pytest.mark.parametrize("untruth", ["", "0", "false", "no"])
def test_the_switch_is_off_unless_it_says_true(disk: Disk, untruth: str) -> None:
    write(disk.root / "opencode.json", {})

    assert len(disk.read(OPENCODE_DISABLE_PROJECT_CONFIG=untruth)) == 1


def test_empty_variables_count_as_not_set(disk: Disk) -> None:
    assert disk.read(OPENCODE_CONFIG="", OPENCODE_CONFIG_CONTENT="") == ()


def test_a_named_file_may_be_relative_to_the_directory_or_the_home(disk: Disk) -> None:
    write(disk.directory / "here.json", {"a": "here"})
    write(disk.config_dir / "there.json", {"a": "there"})

    assert disk.value("a", OPENCODE_CONFIG="here.json") == "here"
    assert disk.value("a", OPENCODE_CONFIG="~/there.json", HOME=str(disk.config_dir)) == "there"


def test_a_named_file_that_is_missing_is_an_error(disk: Disk) -> None:
    error = disk.error(OPENCODE_CONFIG="gone.json")

    assert error.problem == f"The file '{disk.directory}/gone.json' that OPENCODE_CONFIG names does not exist."


def test_the_persons_own_folder_keeps_its_authority_when_they_work_in_it(disk: Disk) -> None:
    write(disk.config_dir / "opencode.json", {"key": "{env:SECRET}"})
    location = find_location(disk.config_dir)

    documents = read_documents(location, config_dir=disk.config_dir, environ={"SECRET": "s"})

    assert [(document.folder, document.values["key"]) for document in documents] == [(None, "s")]


def test_a_file_where_the_opencode_folder_would_be_is_no_document(disk: Disk) -> None:
    (disk.root / ".opencode").write_text("something else")

    assert disk.read() == ()


# What is wrong with a file


@pytest.mark.behaviour("V1-25")
def test_an_invalid_file_is_an_error_with_its_line_and_column(disk: Disk) -> None:
    path = disk.root / "opencode.json"
    path.write_text('{\n  "a": 1\n  "b": 2\n}')

    error = disk.error()

    assert error.place == Place(str(path), 3, 3)
    assert f"'{path}:3:3' is not valid: " in str(error)


def test_invalid_inline_content_is_an_error_that_names_the_variable(disk: Disk) -> None:
    assert disk.error(OPENCODE_CONFIG_CONTENT="{a}").place == Place("OPENCODE_CONFIG_CONTENT", 1, 2)


def test_a_top_level_that_is_not_an_object_is_refused(disk: Disk) -> None:
    path = disk.root / "opencode.json"
    path.write_text("// empty\n []")

    assert disk.error().problem == f"'{path}:2:2' is not valid: it is not an object."


def test_a_file_that_is_not_utf_8_is_an_error_with_its_line_and_column(disk: Disk) -> None:
    path = disk.root / "opencode.json"
    path.write_bytes(b'{\n "\xc3\xbc\xff": 1}')

    assert disk.error().place == Place(str(path), 2, 4)


def test_a_file_over_1_mib_is_refused(disk: Disk) -> None:
    path = disk.root / "opencode.json"
    path.write_bytes(b"{}".ljust(1024 * 1024))
    assert len(disk.read()) == 1

    path.write_bytes(b"{}".ljust(1024 * 1024 + 1))
    assert disk.error().problem == f"The file '{path}' is larger than 1 MiB."


def test_a_folder_with_the_name_of_a_document_is_an_error(disk: Disk) -> None:
    (disk.root / "opencode.json").mkdir()

    assert disk.error().problem == f"'{disk.root}/opencode.json' is not a file."


def test_a_file_that_cannot_be_read_is_an_error_with_the_reason(disk: Disk) -> None:
    path = disk.config_dir / "opencode.json"
    path.symlink_to(path)

    assert disk.error().problem.startswith(f"The file '{path}' cannot be read (Too many levels")


def test_a_named_path_that_no_system_allows_is_an_error(disk: Disk) -> None:
    assert "cannot be read" in disk.error(OPENCODE_CONFIG="a\0b").problem


def test_a_project_document_that_links_out_of_the_project_is_refused(disk: Disk) -> None:
    outside = write(disk.root.parent / "outside.json", {})
    (disk.root / "opencode.json").symlink_to(outside)

    assert "is outside the project root" in disk.error().problem


def test_an_opencode_folder_that_links_out_of_the_project_is_refused(disk: Disk) -> None:
    write(disk.root.parent / "outside" / "opencode.json", {})
    (disk.root / ".opencode").symlink_to(disk.root.parent / "outside")

    assert "is outside the project root" in disk.error().problem


def test_a_project_document_may_link_to_a_file_inside_the_project(disk: Disk) -> None:
    write(disk.root / "shared.json", {"a": 1})
    (disk.directory / "opencode.json").symlink_to(disk.root / "shared.json")

    assert disk.value("a") == 1


def test_the_persons_own_document_may_link_anywhere(disk: Disk) -> None:
    outside = write(disk.root.parent / "dotfiles" / "opencode.json", {"a": 1})
    (disk.config_dir / "opencode.json").symlink_to(outside)

    assert disk.value("a") == 1


# Substitution


@pytest.mark.behaviour("V1-25")
def test_env_is_replaced_everywhere_in_the_persons_strings(disk: Disk) -> None:
    write(disk.config_dir / "opencode.json", {"a": [{"b": "x-{env:ONE}-{env:TWO}"}, 1, None]})

    assert disk.value("a", ONE="1", TWO="{env:ONE}") == [{"b": "x-1-{env:ONE}"}, 1, None]


def test_env_that_is_not_set_becomes_nothing(disk: Disk) -> None:
    assert disk.value("a", OPENCODE_CONFIG_CONTENT='{"a": "<{env:MISSING}>"}') == "<>"


def test_keys_are_not_substituted(disk: Disk) -> None:
    assert disk.value("{env:HOME}", OPENCODE_CONFIG_CONTENT='{"{env:HOME}": 1}') == 1


@pytest.mark.behaviour("V1-25")
def test_file_is_replaced_by_its_stripped_content_relative_to_the_document(disk: Disk) -> None:
    write(disk.root / ".opencode" / "opencode.json", {"a": "<{file:prompts/one.txt}>"})
    (disk.root / ".opencode" / "prompts").mkdir()
    (disk.root / ".opencode" / "prompts" / "one.txt").write_text('\ufeff two\n"lines"\n', encoding="utf-8")

    assert disk.value("a") == '<two\n"lines">'


def test_file_may_name_one_in_the_persons_home(disk: Disk) -> None:
    write(disk.config_dir / "opencode.json", {"a": "{file:~/key}"})
    (disk.root.parent / "key").write_text("k\n")

    assert disk.value("a", HOME=str(disk.root.parent)) == "k"


def test_a_file_that_is_missing_is_an_error_that_names_the_document(disk: Disk) -> None:
    path = write(disk.root / "opencode.json", {"a": "{file:gone}"})

    error = disk.error()

    assert error.problem == f"'{path}' names the file '{disk.root}/gone', which does not exist."
    assert error.place == Place(str(path))


def test_a_reference_in_a_comment_is_not_followed(disk: Disk) -> None:
    (disk.root / "opencode.json").write_text('{ // "a": "{file:gone}"\n}')

    assert disk.read()[0].values == {}


def test_a_project_cannot_read_the_environment(disk: Disk) -> None:
    write(disk.root / "opencode.json", {"url": "http://evil/{env:SECRET}"})

    assert disk.value("url", SECRET="s3cret") == "http://evil/{env:SECRET}"


@pytest.mark.parametrize("name", ["../key", "{root}/../key", "~/key", "link"])
def test_a_project_cannot_read_files_outside_its_root(disk: Disk, name: str) -> None:
    (disk.root.parent / "key").write_text("s3cret")
    (disk.root / "link").symlink_to(disk.root.parent / "key")
    write(disk.root / "opencode.json", {"a": f"{{file:{name.format(root=disk.root)}}}"})

    error = disk.error(HOME=str(disk.root.parent))

    assert "is outside the project root" in error.problem
    assert "s3cret" not in str(error)


def test_a_nested_project_document_may_name_files_up_to_the_root(disk: Disk) -> None:
    write(disk.directory / "opencode.json", {"a": "{file:../../top}"})
    (disk.root / "top").write_text("t")

    assert disk.value("a") == "t"


def test_a_project_cannot_fill_the_memory_by_naming_one_file_often(disk: Disk) -> None:
    (disk.root / "large").write_bytes(b"x" * 400_000)
    write(disk.root / "opencode.json", {"a": ["{file:large}"] * 2})
    assert disk.read()

    write(disk.root / "opencode.json", {"a": ["{file:large}"] * 3})
    assert "are together larger than 1 MiB" in disk.error().problem


def test_what_a_host_hands_over_is_not_substituted() -> None:
    document = document_from({"a": "{env:HOME}"}, base=Path("/base"))

    assert document.values == {"a": "{env:HOME}"}
    assert (document.folder, document.origin) == (None, "the host's config argument")


def test_a_document_does_not_show_its_values() -> None:
    (document,) = of({"key": "s3cret"})

    assert "s3cret" not in repr(document)


# What they say about plugins


def test_without_documents_nothing_is_configured() -> None:
    assert plugin_settings(()) == PluginSettings(load=(), options={}, allow=None, block=(), strict=False, watch=False)


@pytest.mark.behaviour("V1-25")
def test_plugin_lists_concatenate() -> None:
    settings = plugin_settings(of({"plugin": ["one", "pip:two>=1"]}, {}, {"plugin": ["./three.py"]}))

    assert settings.load == (
        PluginSpec(text="one", base=Path("/base"), origin="layer 0"),
        PluginSpec(text="pip:two>=1", base=Path("/base"), origin="layer 0"),
        PluginSpec(text="./three.py", base=Path("/base"), origin="layer 2"),
    )


def test_entries_that_name_the_same_plugin_load_once() -> None:
    settings = plugin_settings(
        [
            document_from({"plugin": ["one", "./p.py", "../x/p.py", "one"]}, base=Path("/x")),
            document_from({"plugin": ["x/p.py", "/x/p.py", "p.py"]}, base=Path("/")),
        ]
    )

    assert [spec.text for spec in settings.load] == ["one", "./p.py", "p.py"]


@pytest.mark.parametrize("person_first", [True, False])
def test_what_both_the_person_and_a_project_list_is_the_persons(person_first: bool) -> None:
    (person,) = of({"plugin": ["one"]})
    project = attrs.evolve(person, origin="project", folder=Path("/project"))

    settings = plugin_settings([person, project] if person_first else [project, person])

    assert [spec.folder for spec in settings.load] == [None]


def test_a_plugin_that_a_project_lists_carries_the_projects_folder() -> None:
    (document,) = of({"plugin": ["one"]})

    settings = plugin_settings([attrs.evolve(document, folder=Path("/project"))])

    assert settings.load[0].folder == Path("/project")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("package.module", None),
        ("pip:name @ https://host/x.py", None),
        ("plugin.py", "/base/plugin.py"),
        ("./folder", "/base/folder"),
        ("../folder", "/folder"),
        ("inner/folder", "/base/inner/folder"),
        ("/abs/plugin.py", "/abs/plugin.py"),
        ("~/plugin.py", "/home/me/plugin.py"),
    ],
)
def test_an_entry_says_whether_it_is_a_path(text: str, path: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    spec = PluginSpec(text=text, base=Path("/base"), origin="f")

    assert spec.path == (None if path is None else Path(path))


def test_options_are_replaced_one_by_one_and_not_merged_deeper() -> None:
    settings = plugin_settings(
        of(
            {"plugins": {"one": {"a": {"x": 1}, "b": 2}, "two": {"c": 3}}},
            {"plugins": {"one": {"a": {"y": 4}}, "three": {}}},
        )
    )

    assert settings.options == {"one": {"a": {"y": 4}, "b": 2}, "two": {"c": 3}, "three": {}}


def test_merging_options_changes_no_document() -> None:
    documents = of({"plugins": {"one": {"a": 1}}}, {"plugins": {"one": {"a": 2}}})

    plugin_settings(documents)

    assert documents[0].values == {"plugins": {"one": {"a": 1}}}


@pytest.mark.behaviour("CF-01")
def test_of_allow_strict_and_watch_the_last_document_that_says_it_wins() -> None:
    settings = plugin_settings(
        of(
            {"plugin_allow": ["a"], "plugin_strict": False, "plugin_watch": True},
            {"plugin_allow": ["b"], "plugin_strict": True},
            {},
        )
    )

    assert (settings.allow, settings.strict, settings.watch) == (("b",), True, True)


def test_an_empty_allow_list_allows_nothing() -> None:
    assert plugin_settings(of({"plugin_allow": []})).allow == ()


def test_blocks_add_up() -> None:
    settings = plugin_settings(of({"plugin_block": ["b", "a"]}, {"plugin_block": ["c", "b"]}))

    assert settings.block == ("b", "a", "c")


@pytest.mark.parametrize(
    ("key", "value", "named", "expected"),
    [
        ("plugin", "s3cret", "plugin", "a list of strings"),
        ("plugin", {"s3cret": 1}, "plugin", "a list of strings"),
        ("plugin", ["one", ["s3cret"]], "plugin", "a list of strings"),
        ("plugin", [""], "plugin", "a list of strings that are not empty"),
        ("plugins", ["s3cret"], "plugins", "an object"),
        ("plugins", {"one": "s3cret"}, "plugins.one", "an object"),
        ("plugin_allow", None, "plugin_allow", "a list of strings"),
        ("plugin_block", [1], "plugin_block", "a list of strings"),
        ("plugin_strict", 1, "plugin_strict", "true or false"),
        ("plugin_watch", "s3cret", "plugin_watch", "true or false"),
    ],
)
def test_a_wrong_type_is_an_error_that_names_the_key_and_never_the_value(
    key: str, value: JSON, named: str, expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        plugin_settings(of({}, {key: value}))

    assert caught.value.problem == f"The key '{named}' in 'layer 1' has the wrong type."
    assert caught.value.remedy.startswith(f"Make it {expected}")
    assert caught.value.place == Place("layer 1")
    assert "s3cret" not in str(caught.value)


def test_unknown_keys_are_left_to_those_who_read_them() -> None:
    found = plugin_settings(of({"theme": 1, "agent": {}}, {"theme": 2, "list": [1]}, {"list": [2], "storage": "s"}))
    assert found == PluginSettings(keys={"theme": 2, "agent": {}, "list": [1, 2]})
