"""Diagnostics: what a plugin did wrong, in words that name the place and keep none of its code alive."""

import ast
import gc
import traceback
import weakref
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import opencode_core
from opencode_core.errors import InvalidKeyError, Place, PluginContractError, PluginError, PluginHookError
from opencode_core.model.keys import check_source_key
from opencode_core.plugins.diagnostics import diagnose, hook_error, import_error, place_of, sentence, words


def caught(code: str | CodeType, filename: str = "/plugins/acme.py") -> Exception:
    """What running this code as a plugin's file raises."""
    try:
        exec(compile(code, filename, "exec") if isinstance(code, str) else code, {"check": check_source_key})
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_a_diagnostic_says_what_where_and_whose() -> None:
    error = hook_error("acme", "opencode_tools", caught("\n\n1 / 0"))
    diagnostic = diagnose(error, plugin="acme", scope="/project")
    assert (diagnostic.plugin, diagnostic.hook, diagnostic.scope, diagnostic.severity) == (
        "acme",
        "opencode_tools",
        "/project",
        "error",
    )
    assert diagnostic.problem == (
        "The hook 'opencode_tools' of the plugin 'acme' raised: ZeroDivisionError: division by zero."
    )
    assert (diagnostic.remedy, diagnostic.place) == ("Fix the hook, or block the plugin.", "/plugins/acme.py:3")


def test_a_diagnostic_has_the_traceback_with_its_cause() -> None:
    inner = caught("1 / 0")
    error = hook_error("acme", "opencode_tools", inner)
    error.__cause__ = inner
    written = diagnose(error, plugin="acme").traceback
    assert "ZeroDivisionError: division by zero" in written
    assert 'File "/plugins/acme.py", line 1' in written
    assert written not in repr(diagnose(error, plugin="acme"))


def test_the_place_is_the_plugins_line_and_not_the_kernels() -> None:
    error = caught("def hook():\n    check('date')\nhook()")
    assert isinstance(error, InvalidKeyError)
    assert place_of(error) == Place("/plugins/acme.py", 2)


def test_the_place_of_a_key_without_namespace_is_the_plugins_line_and_not_generated_code() -> None:
    code = (
        "from plugin_sdk import ContextSource\n"
        "def hook():\n"
        "    return ContextSource(key='date', load=None, baseline=str, update=None)\n"
        "hook()"
    )
    error = caught(code)
    assert isinstance(error, InvalidKeyError)
    assert any(frame.filename.startswith("<attrs generated") for frame in traceback.extract_tb(error.__traceback__))
    assert place_of(error) == Place("/plugins/acme.py", 3)


@pytest.mark.parametrize(
    ("said", "ended"),
    [
        ("invalid syntax", "invalid syntax."),
        ("no disk.", "no disk."),
        ("really?", "really?"),
        ("no!", "no!"),
        ("as follows:", "as follows:"),
        ("broken \n", "broken."),
    ],
)
def test_words_of_others_end_as_a_sentence(said: str, ended: str) -> None:
    assert sentence(said) == ended


def test_a_plugin_beside_the_kernel_with_a_similar_name_is_not_the_kernel() -> None:
    beside = f"{Path(opencode_core.__file__).parent}_acme/plugin.py"
    assert place_of(caught("1 / 0", beside)) == Place(beside, 1)


def test_a_place_that_only_the_kernel_has_is_none() -> None:
    inside = str(Path(opencode_core.__file__).parent / "somewhere.py")
    error = caught("1 / 0", inside).with_traceback(None)
    assert place_of(error) is None


def test_the_preferred_file_is_named_although_another_raised() -> None:
    library = compile("def fail():\n    1 / 0", "/lib/library.py", "exec")
    namespace: dict[str, Any] = {}
    exec(library, namespace)
    with pytest.raises(ZeroDivisionError) as raised:
        exec(compile("\nfail()", "/plugins/acme.py", "exec"), namespace)
    found = place_of(raised.value), place_of(raised.value, prefer="/plugins/acme.py")
    assert found == (Place("/lib/library.py", 2), Place("/plugins/acme.py", 2))


def test_a_syntax_error_is_placed_in_its_own_file() -> None:
    with pytest.raises(SyntaxError) as raised:
        compile("x = 1\ndef (", "/plugins/acme.py", "exec")
    error = import_error("acme", raised.value, file="/plugins/acme.py")
    assert error.problem.startswith("The plugin 'acme' could not be imported: SyntaxError: ")
    assert error.place == Place("/plugins/acme.py", 2)


def test_a_syntax_error_in_what_a_plugin_parses_is_placed_where_it_parses() -> None:
    def parses() -> None:
        ast.parse("def (")

    with pytest.raises(SyntaxError) as raised:
        parses()
    place = place_of(raised.value, prefer=__file__)
    assert place is not None
    assert place.file == __file__


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("import no_such_module_at_all", "Install what provides 'no_such_module_at_all', or block the plugin."),
        ("from plugin_sdk import OfTomorrow", "run 'pip install --upgrade opencode-core'"),
        ("1 / 0", "Fix the file, or block the plugin."),
    ],
)
def test_an_import_that_fails_says_what_to_do(code: str, remedy: str) -> None:
    assert remedy in import_error("acme", caught(code)).remedy


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_exception_that_cannot_be_printed_is_named() -> None:
    error = hook_error("acme", "opencode_tools", Unprintable())
    assert error.problem.endswith("raised: Unprintable.")
    assert "Unprintable" in diagnose(Unprintable(), plugin="acme").traceback


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no"), ("ValueError: no", "")),
        (ValueError(), ("ValueError.", "")),
        (SystemExit(2), ("SystemExit: 2", "")),
        (InvalidKeyError("It is wrong.", "Change it."), ("It is wrong.", "Change it.")),
    ],
    ids=repr,
)
def test_an_errors_own_words_are_kept(error: BaseException, said: tuple[str, str]) -> None:
    assert words(error) == said


def test_an_error_that_already_blames_this_hook_is_kept_as_it_is() -> None:
    error = PluginContractError("It is wrong.", "Change it.", plugin="acme", hook="opencode_tools")
    assert hook_error("acme", "opencode_tools", error) is error


def test_a_plugin_cannot_blame_another() -> None:
    error = hook_error(
        "acme", "opencode_tools", PluginError("Not me.", "Ask zeta.", plugin="zeta", hook="opencode_tools")
    )
    assert isinstance(error, PluginHookError)
    assert (error.plugin, error.remedy) == ("acme", "Ask zeta.")


def test_a_diagnostic_keeps_no_exception_and_no_frame_alive() -> None:
    class Held:
        pass

    def fail() -> "weakref.ref[Held]":
        held = Held()
        reference = weakref.ref(held)
        kept.append(diagnose(_raised_with(held), plugin="acme"))
        return reference

    kept: list[Any] = []
    reference = fail()
    gc.collect()
    assert (len(kept), reference()) == (1, None)


def _raised_with(held: object) -> Exception:
    try:
        raise ValueError(held)
    except ValueError as error:
        return error


def test_a_deep_recursion_is_diagnosed() -> None:
    def down() -> None:
        down()

    with pytest.raises(RecursionError) as raised:
        down()
    assert diagnose(raised.value, plugin="acme").problem.startswith("RecursionError")
