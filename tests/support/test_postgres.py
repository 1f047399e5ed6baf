"""The server for tests is shared, ends with its users, and is missed aloud."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.postgres import do_without
from tests.support.postgres_server import PostgresMissing, find_postgres, private_postgres, shared_postgres

ROOT = Path(__file__).parents[2]
WITHOUT_POSTGRES = """
import tests.support.postgres_server as machine
from tests.support.postgres import postgres_server, postgres_url, pytest_terminal_summary
machine._PLACES = ()
"""
USES_IT = """
import sys
from pathlib import Path
from tests.support.postgres_server import shared_postgres
with shared_postgres(Path(sys.argv[1])) as server:
    print(server.folder, server.port, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def has_postgres() -> None:
    try:
        find_postgres()
    except PostgresMissing as missing:
        do_without(missing)


@pytest.fixture
def without_postgres(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A run of two tests on a machine that has no PostgreSQL."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", "")
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST")]:
        monkeypatch.delenv(name)
    pytester.makeconftest(WITHOUT_POSTGRES)
    pytester.makepyfile("def test_one(postgres_url): ...\ndef test_two(postgres_server): ...\ndef test_three(): ...")
    return pytester


def test_without_postgres_its_tests_are_skipped_and_counted(without_postgres: pytest.Pytester) -> None:
    result = without_postgres.runpytest_subprocess("-rs")
    result.assert_outcomes(skipped=2, passed=1)
    result.stdout.fnmatch_lines(["*PostgreSQL is not installed: no folder with initdb*"])
    result.stdout.fnmatch_lines(["2 tests were SKIPPED because PostgreSQL is not installed.*"])


def test_without_postgres_its_tests_fail_where_it_is_required(
    without_postgres: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENCODE_REQUIRE_POSTGRES", "1")
    result = without_postgres.runpytest_subprocess()
    result.assert_outcomes(errors=2, passed=1)
    result.stdout.no_fnmatch_line("*SKIPPED*")


def user_of(meeting: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", USES_IT, str(meeting)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.usefixtures("has_postgres")
def test_those_who_meet_use_one_server_and_the_last_ends_it_even_when_killed(tmp_path: Path) -> None:
    with shared_postgres(tmp_path) as server, user_of(tmp_path) as other:
        assert said(other) == f"{server.folder} {server.port}\n"
        other.kill()
        other.communicate()
        assert server.execute("SELECT 1") == [(1,)]
        with user_of(tmp_path) as last:
            assert said(last)
            guardian = (server.folder / "guardian.lock").read_text()
            last.kill()
            last.communicate()
    wait_until_ended(int(guardian))
    assert not server.folder.exists()


@pytest.mark.usefixtures("has_postgres")
def test_the_server_of_a_killed_guardian_is_swept_away(tmp_path: Path) -> None:
    with shared_postgres(tmp_path) as left_over:
        postmaster = int((left_over.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        os.kill(int((left_over.folder / "guardian.lock").read_text()), signal.SIGKILL)
    with private_postgres() as server:
        assert server.execute("SELECT 1") == [(1,)]
        assert not left_over.folder.exists()
        wait_until_ended(postmaster)


def wait_until_ended(pid: int) -> None:
    """Return when a process is gone, or nothing of it but its number."""
    while True:
        state = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False)
        if state.stdout.strip() in ("", "Z"):
            return
