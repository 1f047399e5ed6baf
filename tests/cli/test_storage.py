"""`storage check`, `storage migrate` and `storage stats`: what a store is, what is wrong with it, what was done."""

import json
import os
from pathlib import Path

import pytest

from opencode_core.cli import main
from tests.cli.stores import content, files_in, filled, made_empty, made_first_generation, with_store
from tests.cli.terminal import configure, run, write
from tests.storage.filling import SECRET, first_generation, put

COMMANDS = ("check", "migrate", "stats")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with two sessions."""
    return filled(f"sqlite://{tmp_path}/store.db")


def spoil(url: str) -> None:
    gone = ("message", ("ses_1", "msg_ses_1_c"))
    with_store(url, lambda storage: storage.transact(lambda rows: rows.delete(*gone)))


def test_the_group_says_what_it_can_do_without_opening_anything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("opencode_core.host.Host.open", None)
    assert main(["storage"]) == 0
    out = capsys.readouterr().out
    for command in ("check", "copy", "migrate", "stats", "OPENCODE_STORAGE", "postgresql://"):
        assert command in out
    for command in ("check", "copy", "migrate", "stats"):
        assert main(["storage", command, "--help"]) == 0


def test_a_store_that_is_right_is_said_to_be(url: str, tmp_path: Path) -> None:
    done = run("storage", "check", url)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"The store '{tmp_path}/store.db' is right: 2 logs with 22 events.\n"


def test_a_store_that_is_wrong_is_shown_by_table_and_key_and_exits_with_1(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(url)
    before = content(url)
    assert main(["storage", "check", url]) == 1
    captured = capsys.readouterr()
    assert "rows: ses_1: In the table 'message' the row ('ses_1', 'msg_ses_1_c') is missing." in captured.out
    first, second = captured.err.splitlines()
    assert first == f"Error: The store '{tmp_path}/store.db' is not right: 2 logs with 22 events."
    assert second.startswith("Make a copy of it")
    assert SECRET not in captured.out + captured.err
    assert content(url) == before


def test_check_as_json_says_everything_and_nothing_else(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["storage", "check", url, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["kind"], said["right"], said["logs"], said["events"], said["findings"]) == ("sqlite", True, 2, 22, [])
    spoil(url)
    assert main(["storage", "check", url, "--json"]) == 1
    captured = capsys.readouterr()
    said = json.loads(captured.out)
    assert captured.err == ""
    assert said["right"] is False
    assert {"area", "problem", "session"} == set(said["findings"][0])


def test_a_damaged_file_is_two_lines(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "store.db"
    file.write_bytes(file.read_bytes()[:5000])
    for command in COMMANDS:
        assert main(["storage", command, url]) == 1
        first, _second = capsys.readouterr().err.splitlines()
        assert first.startswith("Error: ")
        assert str(file) in first


@pytest.mark.parametrize("command", COMMANDS)
def test_a_store_that_is_not_there_is_an_error_and_none_is_made(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for url in (f"sqlite://{tmp_path}/deep/x.db", f"jsonfiles://{tmp_path}/deep/x"):
        assert main(["storage", command, url]) == 1
        assert capsys.readouterr().err.startswith("Error: There is no store")
    assert main(["storage", command]) == 1
    assert capsys.readouterr().err.startswith("Error: There is no store at '" + os.environ["OPENCODE_DATA_DIR"])
    assert list(tmp_path.iterdir()) == []
    assert not (Path(os.environ["OPENCODE_DATA_DIR"]) / "opencode.db").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_url_is_two_lines_without_its_secrets(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["storage", command, "redis://me:hunter2@there/x"]) == 1
    captured = capsys.readouterr()
    assert captured.err.splitlines()[0] == "Error: No plugin offers the storage scheme 'redis'."
    assert "'jsonfiles:', 'memory:', 'postgres:', 'postgresql:', 'sqlite:'" in captured.err
    assert "hunter2" not in captured.err + captured.out
    assert main(["storage", command, "x.db"]) == 1
    assert "'sqlite:x.db'" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "says"), [("check", "is empty"), ("migrate", "is empty"), ("stats", "is empty")])
def test_a_store_in_memory_is_always_empty(command: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["storage", command, "memory:"]) == 0
    assert says in capsys.readouterr().out


def test_the_configured_store_is_meant_when_no_url_is_given(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(storage=url)
    assert main(["storage", "check"]) == 0
    assert "2 logs" in capsys.readouterr().out
    monkeypatch.setenv("OPENCODE_STORAGE", filled(f"jsonfiles://{tmp_path}/other", "ses_9"))
    assert main(["storage", "check"]) == 0
    assert "1 log " in capsys.readouterr().out


def test_a_project_does_not_choose_the_store(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "project" / "opencode.json", json.dumps({"storage": url}))
    assert main(["-C", str(tmp_path / "project"), "storage", "check"]) == 1
    assert "There is no store" in capsys.readouterr().err
    assert main(["-C", str(tmp_path / "project"), "plugins", "list"]) == 0
    assert "Warning: The key 'storage' in" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["check", "stats"])
def test_looking_at_an_older_store_does_not_migrate_it(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = made_first_generation(f"jsonfiles://{tmp_path}/old")
    before = content(url)
    assert main(["storage", command, url]) == 1
    captured = capsys.readouterr()
    assert captured.err.splitlines()[1] == "Run 'opencode-core storage migrate' with its URL."
    assert content(url) == before


def test_migrate_lists_sessions_of_the_first_generation_also_those_that_came_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = made_first_generation(f"jsonfiles://{tmp_path}/old")
    done = run("storage", "migrate", url)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "The session tables were brought from version 0 to 1.",
        "3 sessions of the first generation can be listed now.",
        f"The store '{tmp_path}/old' is up to date.",
    ]
    assert main(["storage", "check", url]) == 0
    with_store(url, lambda storage: put(storage, first_generation(1, start=7)))
    assert main(["storage", "check", url]) == 1
    assert "is in no list; run 'opencode-core storage migrate'" in capsys.readouterr().out
    assert main(["storage", "migrate", url]) == 0
    assert "1 session of the first generation" in capsys.readouterr().out
    assert main(["storage", "migrate", url]) == 0
    assert capsys.readouterr().out == f"The store '{tmp_path}/old' is up to date.\n"
    assert main(["storage", "check", url]) == 0


def test_migrate_names_what_it_cannot_read_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = made_first_generation(f"jsonfiles://{tmp_path}/old", 2)
    with_store(url, lambda storage: put(storage, {("session", ("abc", "ses_bad")): {"title": SECRET}}))
    assert main(["storage", "migrate", url]) == 0
    captured = capsys.readouterr()
    assert "2 sessions of the first generation" in captured.out
    assert captured.err.startswith("Warning: The stored session in session 'ses_bad' does not fit")
    assert captured.err.count("\n") == 1
    assert SECRET not in captured.err


def test_migrate_says_where_the_backup_of_an_old_layout_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "old"
    for (table, key), document in first_generation(2).items():
        write(folder.joinpath(table, *map(str, key)).with_suffix(".json"), json.dumps(document))
    write(folder / "migration", "1")
    assert main(["storage", "migrate", f"jsonfiles://{folder}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"The layout of '{folder}' was brought from 1 to 2."
    assert lines[1].startswith("What was there before is in '")
    assert Path(lines[1].split("'")[1]).exists()
    assert lines[-1] == f"The store '{folder}' is up to date."


def test_a_newer_store_is_refused_by_every_command(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with_store(url, lambda storage: put(storage, {("store", ("schema",)): {"version": 9}}))
    before = content(url)
    for command in COMMANDS:
        assert main(["storage", command, url]) == 1
        assert capsys.readouterr().err.splitlines()[1] == "Use a newer program."
    assert content(url) == before


def test_stats_show_tables_sessions_and_what_is_left_over(url: str, tmp_path: Path) -> None:
    done = run("storage", "stats", url)
    assert (done.returncode, done.stderr) == (0, "")
    facts, tables, largest = done.stdout.split("\n\n")
    said = {line.split("  ")[0]: line.split("  ", 1)[1].strip() for line in facts.splitlines()}
    assert said["store"] == f"{tmp_path}/store.db"
    assert said["kind"].startswith("sqlite, layout ")
    assert said["sessions"] == "2"
    assert said["events"].startswith("22, ")
    assert said["left over"] == "0 B in 0 documents"
    assert ["event", "22"] in [line.split()[:2] for line in tables.splitlines()]
    assert [line.split()[0] for line in largest.splitlines()[1:]] == ["ses_1", "ses_2"]
    assert SECRET not in done.stdout


def test_stats_as_json_say_everything_and_nothing_else(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["storage", "stats", url, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["sessions"], said["events"], said["version"]) == (2, 22, 1)
    assert said["facts"]["kind"] == "sqlite"
    assert {"name": "store", "documents": 1, "bytes": said["tables"][-1]["bytes"]} == said["tables"][-1]
    assert said["orphans"] == {"name": "", "documents": 0, "bytes": 0}


@pytest.mark.parametrize("args", [["copy"], ["copy", "memory:"], ["check", "a:", "b:"], ["nope"], ["check", "--quiet"]])
def test_wrong_usage_is_two_lines_and_exit_code_2(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["storage", *args]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_looking_at_a_store_of_files_leaves_every_file_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = made_empty(f"jsonfiles://{tmp_path}/files")
    assert main(["storage", "check", url]) == 0
    before = files_in(tmp_path)
    for command in ("check", "stats"):
        assert main(["storage", command, url]) == 0
    assert files_in(tmp_path) == before
