"""`plugins check`: one plugin alone, and what is right or wrong with it."""

import os
from pathlib import Path

import pytest

from opencode_core.cli import main
from tests.cli.terminal import GREETS, TELLS, configure, run, write

OPTIONS = """\
import attrs
from plugin_sdk import ContextSource, PluginManifest, hookimpl

@attrs.frozen
class Options:
    count: int
    word: str = "x"

opencode_plugin = PluginManifest(options=Options)

@hookimpl
def opencode_context_sources(options):
    async def load(): return ""
    yield ContextSource(key=f"o/{options.word}-{options.count}", load=load, baseline=str, update=str)
"""


def test_a_plugin_that_is_right_is_shown_with_what_it_contributes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "greets.py", GREETS + TELLS.format(key="my/thing", text="x"))
    assert main(["plugins", "check", str(file)]) == 0
    out = capsys.readouterr().out
    assert "context source: my/thing" in out
    assert "command line: hello" in out
    assert out.endswith("'greets' is right.\n")


@pytest.mark.parametrize(
    ("code", "problem", "line"),
    [
        ("x = 1\nraise ValueError('no\\nway')\n", "ValueError: no way", 2),
        ("def broken(:\n", "SyntaxError: invalid syntax", 1),
        ("from plugin_sdk import hookimpl\n@hookimpl\ndef opencode_tool(): ...\n", "does not exist", 2),
        ("from plugin_sdk import hookimpl\n@hookimpl\ndef opencode_tools(here): ...\n", "takes 'here'", 2),
        ("from plugin_sdk import hookimpl\n@hookimpl\ndef opencode_skills():\n    return 1 / 0\n", "ZeroDivision", 4),
        ("from plugin_sdk import hookimpl\n@hookimpl\ndef opencode_cli(cli):\n    return 1 / 0\n", "ZeroDivision", 4),
        ("from plugin_sdk import hookimpl\n@hookimpl\ndef opencode_cli(cli):\n    cli.commands['x'] = 1\n", "'int'", 2),
    ],
)
def test_a_fault_is_two_lines_with_the_place_and_exit_code_1(
    code: str, problem: str, line: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "wrong.py", code)
    assert main(["plugins", "check", str(file)]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("Error: ")
    assert problem in first
    assert first.endswith(f"({file}:{line})")
    assert second


def test_warnings_are_shown_and_are_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "from plugin_sdk import hookimpl\n@hookimpl\ndef opencode_skills():\n    return ()\n"
        "def opencode_tools():\n    return {}\n"
    )
    file = write(tmp_path / "forgets.py", code)
    assert main(["plugins", "check", str(file)]) == 0
    out = capsys.readouterr().out
    assert "Warning: The function 'opencode_tools'" in out
    assert out.endswith("'forgets' is right, with 1 warning.\n")


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("def opencode_tools():\n    return {}\n", "Mark 'opencode_tools' with @hookimpl."),
        ("", "Mark a function with @hookimpl."),
    ],
)
def test_a_plugin_without_a_hook_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, remedy: str
) -> None:
    assert main(["plugins", "check", str(write(tmp_path / "forgets.py", code))]) == 1
    assert capsys.readouterr().err.splitlines() == ["Error: The plugin 'forgets' implements no hook.", remedy]


def test_a_clean_up_that_raises_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "from plugin_sdk import hookimpl\n@hookimpl\ndef opencode_tools(scope):\n"
        "    scope.on_close(lambda: 1 / 0)\n    return {}\n"
    )
    assert main(["plugins", "check", str(write(tmp_path / "untidy.py", code))]) == 0
    assert "Warning: The clean-up" in capsys.readouterr().out


def test_options_are_json_or_else_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(write(tmp_path / "opts.py", OPTIONS))
    assert main(["plugins", "check", file, "--option", "count=3", "--option", "word=abc"]) == 0
    assert "context source: o/abc-3" in capsys.readouterr().out


def test_wrong_options_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(write(tmp_path / "opts.py", OPTIONS))
    assert main(["plugins", "check", file, "--option", "count=many"]) == 1
    assert "'count' that should be 'int', not 'str'" in capsys.readouterr().err


def test_an_option_without_a_value_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "check", "date", "--option", "count"]) == 2
    assert "'count' is not NAME=VALUE." in capsys.readouterr().err


@pytest.mark.parametrize("target", ["gone.py", "./gone", "pip:thing"])
def test_a_path_where_nothing_is_is_two_lines(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plugins", "check", target]) == 1
    first, _second = capsys.readouterr().err.splitlines()
    assert first == f"Error: '{target}' does not exist."


def test_a_module_is_found_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "check", "plugins_builtin.date"]) == 0
    assert "context source: core/date" in capsys.readouterr().out


def test_a_module_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "check", "no.such.module"]) == 1
    assert "'no.such.module'" in capsys.readouterr().err.splitlines()[0]


def test_a_package_folder_is_checked_by_its_plain_name_in_the_shells_directory(tmp_path: Path) -> None:
    write(tmp_path / "bundle" / "__init__.py", "from .inner import opencode_cli\n")
    write(tmp_path / "bundle" / "inner.py", GREETS)
    done = run("plugins", "check", "bundle", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "command line: hello" in done.stdout


def test_the_location_is_the_directory_that_was_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "from plugin_sdk import hookimpl\n@hookimpl\ndef opencode_tools(location):\n    raise ValueError(location)\n"
    file = write(tmp_path / "plugin.py", code)
    (tmp_path / "elsewhere").mkdir()
    assert main(["-C", str(tmp_path / "elsewhere"), "plugins", "check", str(file)]) == 1
    assert "elsewhere" in capsys.readouterr().err


def test_other_plugins_and_the_persons_folders_are_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "alone.py", TELLS.format(key="core/date", text="mine"))
    configure(plugin=[str(write(tmp_path / "other.py", "raise SystemExit(3)\n"))], plugin_strict=True)
    write(tmp_path / ".opencode" / "plugins" / "third.py", "raise SystemExit(3)\n")
    assert main(["-C", str(tmp_path), "plugins", "check", str(file)]) == 0
    assert "context source: core/date" in capsys.readouterr().out
    assert not Path(os.environ["OPENCODE_DATA_DIR"]).exists()


def test_a_plugin_in_a_projects_folder_is_checked_like_any_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / ".opencode" / "plugins" / "mine.py"
    file.parent.mkdir(parents=True)
    file.write_text("from plugin_sdk import *\n@hookimpl\ndef opencode_agents():\n    yield Agent(name='a')\n")

    assert main(["-C", str(tmp_path), "plugins", "check", str(file)]) == 0
    assert "'mine' is right." in capsys.readouterr().out
