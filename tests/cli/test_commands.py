"""Commands that plugins add: found when they are needed, and broken alone."""

from pathlib import Path

import pytest

from opencode_core.cli import main
from tests.cli.terminal import GREETS, configure, run, write

HOOK = "import click\nfrom plugin_sdk import hookimpl\n@hookimpl\ndef opencode_cli(cli):\n"


def command(name: str, body: str) -> str:
    """Return a plugin with one command."""
    return f"{HOOK}    @cli.command({name!r})\n    @click.pass_context\n    def run(ctx):\n        {body}\n"


@pytest.fixture
def plugins(tmp_path: Path) -> None:
    """Plugins that break in every way, around one that works."""
    codes = {
        "a_raises": HOOK + "    raise RuntimeError('no\\nway')\n",
        "b_adds_a_text": HOOK + "    cli.commands['text'] = 'not a command'\n",
        "c_takes_a_core_name": command("tour", "click.echo('mine')"),
        "greets": GREETS,
        "h_takes_hello": command("hello", "click.echo('mine')"),
        "i_fails": command("fail", "raise ValueError('too\\nbad')"),
    }
    configure(plugin=[str(write(tmp_path / f"{name}.py", code)) for name, code in codes.items()])


@pytest.mark.usefixtures("plugins")
def test_a_command_of_a_plugin_runs_whatever_others_break(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hello", "Ada"]) == 0
    said = capsys.readouterr()
    assert said.out == "hello Ada\n"
    warnings = said.err.splitlines()
    assert len(warnings) == 4
    for name, line in zip(("a_raises", "b_adds_a_text", "c_takes_a_core_name", "h_takes_hello"), warnings, strict=True):
        assert line.startswith(f"Warning: The commands of the plugin '{name}' are missing: ")


@pytest.mark.usefixtures("plugins")
def test_the_help_lists_commands_under_the_name_of_their_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    sections = capsys.readouterr().out.split("\n\n")
    assert "Commands of the plugin 'greets':\n  hello  Say hello." in sections
    assert any(section.startswith("Commands:\n  context") for section in sections)


@pytest.mark.usefixtures("plugins")
def test_a_core_command_wins_and_loads_no_plugin_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "trust", "--list"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("No project was trusted.\n", "")


@pytest.mark.usefixtures("plugins")
def test_a_command_that_raises_is_two_lines_naming_plugin_and_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fail"]) == 1
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "Error: The command 'fail' of the plugin 'i_fails' failed: ValueError: too bad",
        "Run again with --debug to see the traceback.",
    ]


@pytest.mark.usefixtures("plugins")
def test_a_command_that_raises_has_a_traceback_with_debug(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--debug", "fail"]) == 1
    err = capsys.readouterr().err
    assert "Traceback (most recent call last):" in err
    assert "i_fails.py" in err
    assert err.splitlines()[-1] == "The traceback is above."


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("ctx.exit(7)", 7),
        ("raise SystemExit(8)", 8),
        ("raise SystemExit('gone')", 1),
        ("return 9", 0),
        ("raise click.UsageError('no')", 2),
        ("raise click.ClickException('no')", 1),
        ("raise KeyboardInterrupt", 130),
        ("raise click.Abort", 130),
    ],
)
def test_a_command_ends_as_it_says(body: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(plugin=[str(write(tmp_path / "ends.py", command("end", body)))])
    assert main(["end"]) == code
    assert "of the plugin" not in capsys.readouterr().err


def test_a_command_may_start_an_event_loop_and_import_its_own_modules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "import anyio; from . import inner; anyio.run(inner.speak)"
    package = write(tmp_path / "bundle" / "__init__.py", command("speak", body)).parent
    write(package / "inner.py", "import click\nasync def speak(): click.echo('spoken')\n")
    configure(plugin=[str(package)])
    assert main(["speak"]) == 0
    assert capsys.readouterr().out == "spoken\n"


def test_a_plugins_command_gets_its_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import attrs, click\nfrom plugin_sdk import PluginManifest, hookimpl\n"
        "@attrs.frozen\nclass Options:\n    word: str = 'x'\n"
        "opencode_plugin = PluginManifest(options=Options)\n"
        "@hookimpl\ndef opencode_cli(cli, options):\n"
        "    @cli.command()\n    def say(): click.echo(options.word)\n"
    )
    configure(plugin=[str(write(tmp_path / "says.py", code))], plugins={"says": {"word": "configured"}})
    assert main(["say"]) == 0
    assert capsys.readouterr().out == "configured\n"


def test_an_unknown_command_names_the_plugins_that_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(plugin=[str(write(tmp_path / "broken.py", "def broken(:\n"))])
    assert main(["hello"]) == 2
    first, *error = capsys.readouterr().err.splitlines()
    assert first.startswith("Warning: 1 plugin is not active: 'broken' (failed).")
    assert error == ["Error: No such command 'hello'.", "Try 'opencode-core --help'."]


def test_the_help_is_shown_when_the_configuration_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    configure(plugin="not a list")
    assert main(["--help"]) == 0
    said = capsys.readouterr()
    assert "Commands:" in said.out
    assert said.err.startswith("Warning: Plugins and their commands are missing: ")


def test_the_plugins_of_another_directory_are_found_for_help(tmp_path: Path) -> None:
    write(tmp_path / "project" / ".opencode" / "plugins" / "greets.py", GREETS)
    assert run("plugins", "trust", "--yes", "project", cwd=tmp_path).returncode == 0
    assert "hello" in run("-C", "project", "--help", cwd=tmp_path).stdout
    assert "hello" not in run("--help", cwd=tmp_path).stdout
    assert run("-C", "project", "hello", "Bob", cwd=tmp_path).stdout == "hello Bob\n"
