"""`plugins list` and `plugins show`: everything that was found, and what became of it."""

import json
from pathlib import Path

import pytest

from opencode_core.cli import main
from tests.cli.terminal import GREETS, TELLS, configure, run, write


@pytest.fixture
def two_plugins(tmp_path: Path) -> None:
    """One plugin that works and one that does not."""
    configure(
        plugin=[
            str(write(tmp_path / "greets.py", GREETS)),
            str(write(tmp_path / "broken.py", "x = 1\ndef broken(:\n")),
        ]
    )


@pytest.mark.usefixtures("two_plugins")
def test_every_plugin_is_a_row_and_every_fault_two_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "list"]) == 0
    table, faults = capsys.readouterr().out.split("\n\n")
    rows = {line.split()[0]: line.split() for line in table.splitlines()}
    assert rows["name"] == ["name", "state", "version", "origin", "gen", "errors", "hooks"]
    assert rows["greets"] == ["greets", "active", "-", "file", "1", "0", "opencode_cli"]
    assert rows["broken"] == ["broken", "failed", "-", "file", "0", "1", "-"]
    assert rows["date"][3:] == ["builtin", "1", "0", "opencode_context_sources"]
    first, second = faults.splitlines()
    assert first == (
        f"Error: The plugin 'broken' could not be imported: SyntaxError: invalid syntax. ({tmp_path / 'broken.py'}:2)"
    )
    assert second == "  Fix the file, or block the plugin."


def test_a_long_row_is_not_cut_off_in_a_pipe(tmp_path: Path) -> None:
    name = "long-" * 10 + "name"
    hooks = "\n".join(f"@hookimpl\ndef opencode_{each}(): return ()" for each in ("skills", "agents", "commands"))
    configure(plugin=[str(write(tmp_path / f"{name}.py", f"from plugin_sdk import hookimpl\n{hooks}\n"))])
    (row,) = [line for line in run("plugins", "list", COLUMNS="20").stdout.splitlines() if line.startswith(name)]
    assert row.endswith("opencode_agents,opencode_commands,opencode_skills")


@pytest.mark.usefixtures("two_plugins")
def test_timing_adds_times_a_total_and_the_slowest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "greets.py", f"import time; time.sleep(0.06)\n{GREETS}")
    assert main(["plugins", "list", "--timing"]) == 0
    out = capsys.readouterr().out
    assert "import ms  collect ms" in out
    assert "All plugins together took " in out
    assert "The slowest is 'greets', with " in out


@pytest.mark.usefixtures("two_plugins")
def test_json_says_everything_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "greets.py", f"print('noise')\n{GREETS}")
    assert main(["plugins", "list", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    plugins = {each["name"]: each for each in said["plugins"]}
    assert set(plugins) >= {"date", "environment", "greets", "broken"}
    assert plugins["greets"]["description"] == "Greets people."
    assert plugins["greets"]["hooks"] == ["opencode_cli"]
    assert plugins["greets"]["import_ms"] > 0
    (diagnostic,) = plugins["broken"]["diagnostics"]
    assert (diagnostic["file"], diagnostic["line"]) == (str(tmp_path / "broken.py"), 2)
    assert "traceback" not in diagnostic


@pytest.mark.usefixtures("two_plugins")
def test_json_has_tracebacks_with_debug(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--debug", "plugins", "list", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (broken,) = [each for each in said["plugins"] if each["name"] == "broken"]
    assert broken["diagnostics"][0]["traceback"].startswith("Traceback")


def test_options_for_a_plugin_that_is_not_there_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    configure(plugins={"dat": {"x": 1}})
    assert main(["plugins", "list"]) == 0
    first, second = capsys.readouterr().out.split("\n\n")[1].splitlines()
    assert first == "Warning: Options are configured for the plugin 'dat', which was not found."
    assert second == "  Did you mean 'date'?"


@pytest.mark.usefixtures("two_plugins")
def test_show_tells_everything_about_one_plugin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "greets.py", GREETS + TELLS.format(key="my/thing", text="x"))
    assert main(["plugins", "show", "greets"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith("greets Greets people. state active origin file")
    assert f"location {file}" in shown
    assert "generation 1" in shown
    assert "hooks opencode_cli opencode_context_sources" in shown
    assert "contributions context source: my/thing" in shown


@pytest.mark.usefixtures("two_plugins")
def test_show_tells_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "show", "broken"]) == 0
    out = capsys.readouterr().out
    assert "failed" in out
    assert f"({tmp_path / 'broken.py'}:2)" in out
    assert "Traceback" not in out


def test_show_says_how_else_a_plugin_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    configure(plugin=["plugins_builtin.date"])
    assert main(["plugins", "show", "date"]) == 0
    assert "also found     module: plugins_builtin.date" in capsys.readouterr().out


def test_an_unknown_name_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "show", "dtae"]) == 1
    assert capsys.readouterr().err.splitlines() == ["Error: There is no plugin called 'dtae'.", "Did you mean 'date'?"]


def test_control_characters_of_a_plugin_never_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = (
        "from plugin_sdk import PluginManifest, hookimpl\n"
        "opencode_plugin = PluginManifest(description='\\x1b[2Jgone\\nsecond')\n"
        "@hookimpl\ndef opencode_tools():\n    raise ValueError('\\x1b]0;title\\x07\\nsecond line')\n"
    )
    configure(plugin=[str(write(tmp_path / "evil.py", plugin))])
    for command in (["plugins", "list"], ["plugins", "show", "evil"], ["tour"]):
        assert main(command) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert "\x07" not in out
        assert not any(line.startswith("second") for line in out.splitlines())
