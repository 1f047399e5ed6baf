"""Options: what is configured fits the plugin's class exactly, or is refused without ever being repeated."""

import contextlib
import gc
import linecache
import traceback
import weakref
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest

from opencode_core.config import PluginSettings
from opencode_core.errors import PluginOptionsError
from opencode_core.model.plugin import PluginManifest
from opencode_core.plugins.diagnostics import diagnose
from opencode_core.plugins.options import configured_options, structure_options

SECRET = "hunter2-do-not-repeat"


@attrs.frozen
class Server:
    port: int
    host: str = "localhost"


@attrs.frozen
class Options:
    token: str = ""
    count: int = 1
    ratio: float = 0.5
    is_on: bool = False
    names: list[str] = attrs.field(factory=list)
    pairs: tuple[str, int] = ("a", 1)
    tags: frozenset[str] = frozenset()
    limits: dict[str, int] = attrs.field(factory=dict)
    server: Server | None = None
    servers: tuple[Server, ...] = ()
    folder: Path | None = None
    level: Literal["low", "high"] = "low"
    port: int | str = 0
    anything: Any = None
    even: int = attrs.field(default=2, validator=attrs.validators.in_([2, 4]))
    _private: str = ""


@attrs.frozen
class Required:
    token: str
    region: str
    count: int = 1


def structured(configured: dict[str, Any], kind: type = Options) -> Any:
    return structure_options("acme", PluginManifest(options=kind), configured)


def refusal(configured: dict[str, Any], kind: type = Options) -> PluginOptionsError:
    with pytest.raises(PluginOptionsError) as caught:
        structured(configured, kind)
    assert caught.value.plugin == "acme"
    assert "Look under 'plugins.acme'." in caught.value.remedy
    return caught.value


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("token", "text", "text"),
        ("count", 7, 7),
        ("ratio", 0.25, 0.25),
        ("ratio", 2, 2.0),
        ("is_on", True, True),
        ("names", ["a", "b"], ["a", "b"]),
        ("pairs", ["b", 2], ("b", 2)),
        ("tags", ["a", "a"], frozenset({"a"})),
        ("limits", {"a": 1}, {"a": 1}),
        ("server", {"port": 80}, Server(port=80)),
        ("server", None, None),
        ("servers", [{"port": 1}, {"port": 2, "host": "x"}], (Server(port=1), Server(port=2, host="x"))),
        ("folder", "/tmp/x", Path("/tmp/x")),
        ("folder", None, None),
        ("level", "high", "high"),
        ("port", "http", "http"),
        ("port", 80, 80),
        ("anything", {"deep": [1]}, {"deep": [1]}),
    ],
)
def test_what_fits_is_taken(name: str, value: Any, expected: Any) -> None:
    taken = getattr(structured({name: value}), name)
    assert (taken, type(taken)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("configured", "path", "wanted"),
    [
        ({"token": 7}, "token", "should be 'str', not 'int'"),
        ({"token": True}, "token", "should be 'str', not 'bool'"),
        ({"token": None}, "token", "should be 'str', not 'NoneType'"),
        ({"count": "7"}, "count", "should be 'int', not 'str'"),
        ({"count": True}, "count", "should be 'int', not 'bool'"),
        ({"count": 7.0}, "count", "should be 'int', not 'float'"),
        ({"ratio": "0.5"}, "ratio", "should be 'float', not 'str'"),
        ({"ratio": True}, "ratio", "should be 'float', not 'bool'"),
        ({"is_on": 1}, "is_on", "should be 'bool', not 'int'"),
        ({"is_on": "yes"}, "is_on", "should be 'bool', not 'str'"),
        ({"names": "abc"}, "names", "should be a list, not 'str'"),
        ({"names": {"a": 1}}, "names", "should be a list, not 'dict'"),
        ({"names": ["a", 7]}, "names.1", "should be 'str', not 'int'"),
        ({"pairs": "ab"}, "pairs", "should be a list, not 'str'"),
        ({"tags": "abc"}, "tags", "should be a list, not 'str'"),
        ({"limits": ["a"]}, "limits", "should be a table, not 'list'"),
        ({"limits": {"a": "1"}}, "limits.a", "should be 'int', not 'str'"),
        ({"server": "x:80"}, "server", "should be a table, not 'str'"),
        ({"server": {"port": "80"}}, "server.port", "should be 'int', not 'str'"),
        ({"servers": [{"port": 1}, {"port": "2"}]}, "servers.1.port", "should be 'int', not 'str'"),
        ({"servers": [{"port": 1}, 7]}, "servers.1", "should be a table, not 'int'"),
        ({"folder": 7}, "folder", "should be 'str', not 'int'"),
        ({"level": "middle"}, "level", "does not fit its type"),
        ({"port": 1.5}, "port", "does not fit its type"),
        ({"port": True}, "port", "not 'bool'"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_and_never_converted(configured: dict[str, Any], path: str, wanted: str) -> None:
    error = refusal(configured)
    assert f"'{path}' that" in error.problem
    assert wanted in error.problem


def test_a_list_of_the_wrong_length_is_refused() -> None:
    assert "refused its option 'pairs'" in refusal({"pairs": ["a"]}).problem


def test_an_unknown_option_is_refused_with_the_one_that_was_probably_meant() -> None:
    error = refusal({"tokn": "x"})
    assert "The plugin 'acme' has no option 'tokn'." in error.problem
    assert "Did you mean 'token'?" in error.remedy


def test_an_option_like_no_other_is_refused_with_all_there_are() -> None:
    assert "It has: port, host." in refusal({"zzz": 1, "port": 1}, Server).remedy


def test_an_unknown_option_inside_a_table_is_named_with_its_path() -> None:
    error = refusal({"server": {"port": 1, "hst": "x"}})
    assert "has no option 'server.hst'" in error.problem
    assert "Did you mean 'host'?" in error.remedy


def test_a_missing_option_is_named() -> None:
    error = refusal({"token": "x"}, Required)
    assert "needs the option 'region', which is not configured" in error.problem
    assert "Set 'region'." in error.remedy


def test_a_missing_option_is_named_when_nothing_is_configured() -> None:
    assert "needs the option 'token'" in refusal({}, Required).problem


def test_a_missing_option_inside_a_table_is_named_with_its_path() -> None:
    assert "needs the option 'server.port'" in refusal({"server": {"host": "x"}}).problem


def test_several_faults_are_all_named() -> None:
    error = refusal({"tokn": "x", "count": "y"}, Required)
    assert all(f"'{name}'" in error.problem for name in ("tokn", "token", "region", "count"))


def test_a_plugin_without_options_takes_none() -> None:
    assert structure_options("acme", PluginManifest(), {}) == {}
    with pytest.raises(PluginOptionsError, match="takes no options, but 'a' is configured"):
        structure_options("acme", PluginManifest(), {"b": 1, "a": 2})


def test_a_plugin_with_defaults_gets_them() -> None:
    assert structured({}) == Options()


def test_a_private_field_is_configured_by_its_public_name() -> None:
    assert structured({"private": "x"})._private == "x"


def test_the_class_may_be_written_with_postponed_annotations() -> None:
    @attrs.frozen
    class Postponed:
        folder: "Path"
        servers: "list[Server]"

    taken = structured({"folder": "/tmp", "servers": [{"port": 1}]}, Postponed)
    assert (taken.folder, taken.servers) == (Path("/tmp"), [Server(port=1)])


# A class that refuses


@attrs.frozen
class Picky:
    token: str = "x"

    def __attrs_post_init__(self) -> None:
        raise ValueError(f"I do not like {SECRET}")


@attrs.frozen
class Exiting:
    token: str = "x"

    def __attrs_post_init__(self) -> None:
        raise SystemExit(SECRET)


@pytest.mark.parametrize("kind", [Picky, Exiting])
@pytest.mark.parametrize("configured", [{}, {"token": "y"}], ids=["defaults", "configured"])
def test_a_class_that_refuses_its_own_values_is_the_plugins_fault(kind: type, configured: dict[str, Any]) -> None:
    error = refusal(configured, kind)
    assert "refused its options (" in error.problem
    assert SECRET not in str(error)


def test_a_validator_that_refuses_names_the_option() -> None:
    assert "refused its option 'even' (ValueError)" in refusal({"even": 3}).problem


# Secrets


@pytest.mark.parametrize(
    "configured",
    [
        {"token": [SECRET]},
        {"count": SECRET},
        {"ratio": SECRET},
        {"is_on": SECRET},
        {"names": SECRET},
        {"names": [[SECRET]]},
        {"limits": {"a": SECRET}},
        {"server": SECRET},
        {"server": {"port": SECRET}},
        {"servers": [{"port": SECRET}]},
        {"folder": [SECRET]},
        {"level": SECRET},
        {"even": SECRET},
        {"port": [SECRET]},
        {"unknown": SECRET},
        {"server": {"port": 1, "unknown": SECRET}},
    ],
    ids=str,
)
def test_a_value_never_appears_in_words_tracebacks_or_diagnostics(configured: dict[str, Any]) -> None:
    error = refusal(configured)
    written = [str(error), repr(error), "".join(traceback.format_exception(error)), repr(error.__dict__)]
    diagnostic = diagnose(error, plugin="acme")
    assert SECRET not in "".join([*written, str(diagnostic), diagnostic.traceback, *map(str, error.args)])


# Generations


def test_the_classes_of_old_generations_are_not_kept_alive() -> None:
    def one_generation(configured: dict[str, Any]) -> "weakref.ref[type]":
        @attrs.frozen
        class Inner:
            port: int

        @attrs.frozen
        class Generation:
            port: int | str | None = None
            inner: Inner | None = None

        with contextlib.suppress(PluginOptionsError):
            structured(configured, Generation)
        return weakref.ref(Generation)

    remembered = len(linecache.cache)
    generations = [
        one_generation(configured)
        for configured in ({}, {"port": 1}, {"inner": {"port": 1}}, {"inner": {"port": ""}}, {"x": 1})
        for _ in range(4)
    ]
    gc.collect()
    assert [each() for each in generations if each() is not None] == []
    assert len(linecache.cache) - remembered < 20


# Top-level keys that a plugin owns


@attrs.frozen
class Owning:
    files: tuple[str, ...] = ()
    level: str = ""


OWNS = PluginManifest(options=Owning, keys={"instructions": "files", "level": "level"})


@pytest.mark.parametrize(
    ("keys", "named", "expected"),
    [
        ({}, {}, {}),
        ({"instructions": ["a"], "other": 1}, {}, {"files": ["a"]}),
        ({"instructions": ["a"]}, {"files": ["b"]}, {"files": ["a", "b"]}),
        ({"level": "low"}, {"level": "high"}, {"level": "high"}),
        ({}, {"files": ["b"]}, {"files": ["b"]}),
    ],
)
def test_a_plugin_finds_the_top_level_keys_that_it_owns_among_its_options(
    keys: dict[str, Any], named: dict[str, Any], expected: dict[str, Any]
) -> None:
    settings = PluginSettings(options={"acme": named}, keys=keys)
    assert configured_options("acme", OWNS, settings) == expected


def test_a_plugin_that_owns_no_key_finds_none() -> None:
    settings = PluginSettings(options={"acme": {"level": "low"}}, keys={"instructions": ["a"]})
    assert configured_options("acme", PluginManifest(options=Owning), settings) == {"level": "low"}


def test_a_top_level_key_of_the_wrong_type_is_refused_as_the_option_is() -> None:
    settings = PluginSettings(keys={"instructions": "a.md"})
    with pytest.raises(PluginOptionsError, match="'files' that should be a list"):
        structure_options("acme", OWNS, configured_options("acme", OWNS, settings))
