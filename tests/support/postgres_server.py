"""Runs a real PostgreSQL server from the machine's own binaries, in a temporary folder, on a free loopback port.

A guardian process owns the server. Whoever uses the server holds a connection to the guardian's socket, and when the
last one is gone, however its process ended, the guardian stops the server and removes the folder. Knows no pytest.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs

__all__ = [
    "PostgresMissing",
    "PostgresServer",
    "find_postgres",
    "private_postgres",
    "running_postgres",
    "shared_postgres",
]

USER = "opencode"
_PREFIX = "opencode-pg-"
_PROGRAMS = ("initdb", "pg_ctl", "postgres")
_PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/usr/local/opt/postgresql*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
)
_SETTINGS = {
    "listen_addresses": "'127.0.0.1'",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "jit": "off",
    "log_min_messages": "warning",
    "timezone": "'UTC'",
}
# The role 'locked' is the only one that needs a password.
_ACCESS = """
local all all trust
host all locked 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
"""


class PostgresMissing(Exception):
    """There is no PostgreSQL here that can be started."""


@attrs.frozen(kw_only=True)
class PostgresServer:
    """A server that a guardian keeps."""

    folder: Path
    binaries: Path
    port: int

    def url(self, database: str = "postgres", *, user: str = USER, password: str = "", **switches: object) -> str:
        """Returns the URL of one of its databases."""
        who = f"{quote(user)}:{quote(password)}" if password else quote(user)
        query = "&".join(f"{name}={quote(str(value))}" for name, value in switches.items())
        return f"postgresql://{who}@127.0.0.1:{self.port}/{quote(database)}" + (f"?{query}" if query else "")

    def execute(self, statement: str, *, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Runs one statement on a connection of its own, and returns the rows."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return [] if cursor.description is None else cursor.fetchall()

    def fresh_database(self, *, options: str = "") -> str:
        """Makes an empty database and returns its name."""
        name = f"db_{uuid.uuid4().hex[:16]}"
        self.execute(f"CREATE DATABASE {name} {options}")
        return name

    def kill_backends(self, *, where: str = "true", database: str = "") -> int:
        """Ends the connections of others that a condition on ``pg_stat_activity`` selects; returns how many."""
        and_database = f"AND datname = '{database}'" if database else ""
        rows = self.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE backend_type = 'client backend' "
            f"AND pid <> pg_backend_pid() AND ({where}) {and_database}"
        )
        return len(rows)

    def stop(self, how: str = "fast") -> None:
        """Stops the server: ``smart``, ``fast``, or ``immediate``, which is a crash."""
        _run(self.binaries / "pg_ctl", "stop", "-D", self.folder / "data", "-m", how, "-w", "-t", "30")

    def start(self) -> None:
        """Starts the server, and returns when it answers."""
        log = self.folder / "log"
        _run(self.binaries / "pg_ctl", "start", "-D", self.folder / "data", "-l", log, "-w", "-t", "60")


@contextlib.contextmanager
def running_postgres(*, fsync: bool = True) -> Iterator[str]:
    """Runs a server of one's own, and yields the URL of an empty database.

    Raises:
        PostgresMissing: There is none that can be started.
    """
    with private_postgres(fsync=fsync) as server:
        yield server.url(server.fresh_database())


@contextlib.contextmanager
def private_postgres(*, fsync: bool = True) -> Iterator[PostgresServer]:
    """Runs a server of one's own, which may be stopped and started.

    Raises:
        PostgresMissing: There is none that can be started.
    """
    with tempfile.TemporaryDirectory(prefix="opencode-pgd-") as folder:
        with shared_postgres(Path(folder), fsync=fsync) as server:
            yield server
        _wait_until_gone(server.folder)


@contextlib.contextmanager
def shared_postgres(meeting: Path, *, fsync: bool = True) -> Iterator[PostgresServer]:
    """Uses the server of all processes that meet in this folder; the first starts it, the last ends it.

    Raises:
        PostgresMissing: There is none that can be started.
    """
    binaries = find_postgres()
    with _locked(meeting / "postgres.lock"):
        joined = _join(meeting / "postgres.place")
        if joined is None:
            _start_guardian(meeting, binaries, fsync=fsync)
            joined = _join(meeting / "postgres.place")
    if joined is None:
        raise PostgresMissing(f"PostgreSQL in {binaries} did not start: {_tail(meeting / 'postgres.log')}")
    connection, server = joined
    with connection:
        yield server


def find_postgres() -> Path:
    """Returns the folder of the newest PostgreSQL programs on this machine.

    Raises:
        PostgresMissing: There are none.
    """
    on_path = shutil.which("initdb")
    candidates = [Path(on_path).resolve().parent] if on_path else []
    for place in _PLACES:
        candidates += sorted(Path("/").glob(place[1:]), key=_version, reverse=True)
    for candidate in candidates:
        if all(os.access(candidate / program, os.X_OK) for program in _PROGRAMS):
            return candidate
    raise PostgresMissing(f"no folder with {', '.join(_PROGRAMS)} on PATH or in {', '.join(_PLACES)}")


def _version(binaries: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", str(binaries)))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _join(place: Path) -> tuple[socket.socket, PostgresServer] | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(place.read_text())
        greeting = connection.makefile().readline()
    except OSError:
        greeting = ""
    if not greeting:  # none yet, or one that is just ending
        connection.close()
        return None
    told = json.loads(greeting)
    return connection, PostgresServer(
        folder=Path(told["folder"]), binaries=Path(told["binaries"]), port=int(told["port"])
    )


def _start_guardian(meeting: Path, binaries: Path, *, fsync: bool) -> None:
    """Returns when the guardian accepts connections, or has given up."""
    ready, told = os.pipe()
    command = [
        sys.executable,
        __file__,
        str(meeting / "postgres.place"),
        str(binaries),
        "1" if fsync else "0",
        str(told),
    ]
    with (meeting / "postgres.log").open("w") as log:
        # A session of its own: the guardian must outlive an interrupt from the keyboard, to clean up after it.
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(told,),
            start_new_session=True,
        ).returncode = 0  # nobody waits for it: it ends after us, on purpose
    os.close(told)
    with open(ready, "rb") as pipe:
        pipe.read()


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _wait_until_gone(folder: Path) -> None:
    deadline = time.monotonic() + 30
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.02)


# What follows runs in the guardian.


def _guard(place: Path, binaries: Path, *, fsync: bool, told: int) -> None:
    """Starts a server, greets everybody who connects, and ends it when all are gone."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix="opencode-new-"))
    with (folder / "guardian.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        print(os.getpid(), file=lock, flush=True)
        # Only what is locked gets the name that a sweep looks for.
        folder = folder.rename(str(folder).replace("opencode-new-", _PREFIX))
        try:
            server = _initialized(folder, binaries, fsync=fsync)
            try:
                server.start()
                _serve(place, server, told)
            finally:
                # Nobody is there any more, and the folder goes: a crash is the fastest end. A test may have stopped it.
                with contextlib.suppress(RuntimeError):
                    server.stop("immediate")
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _initialized(folder: Path, binaries: Path, *, fsync: bool) -> PostgresServer:
    person = _unprivileged()
    if person is not None:
        os.chown(folder, person.pw_uid, person.pw_gid)
    data = folder / "data"
    _run(binaries / "initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    server = PostgresServer(folder=folder, binaries=binaries, port=_free_port())
    settings = {
        **_SETTINGS,
        "port": server.port,
        "unix_socket_directories": f"'{folder}'",
        "fsync": "on" if fsync else "off",
    }
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = {value}\n" for name, value in settings.items())
    (data / "pg_hba.conf").write_text(_ACCESS)
    return server


def _serve(place: Path, server: PostgresServer, told: int) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        # Beside the server, because the path of a socket must be short, and the meeting's need not be.
        listening.bind(str(server.folder / "guardian"))
        listening.listen(64)
        place.write_text(str(server.folder / "guardian"))
        os.close(told)
        greeting = {"folder": str(server.folder), "binaries": str(server.binaries), "port": server.port}
        _greet_until_all_are_gone(listening, json.dumps(greeting).encode() + b"\n")


def _greet_until_all_are_gone(listening: socket.socket, greeting: bytes) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(listening, selectors.EVENT_READ)
        listening.settimeout(0)
        users = 0
        # The one that started this guardian has a while to come back for it.
        while users or selector.select(timeout=60):
            for key, _ in selector.select(timeout=None if users else 0):
                if key.fileobj is listening:
                    connection, _address = listening.accept()
                    connection.sendall(greeting)
                    selector.register(connection, selectors.EVENT_READ)
                    users += 1
                else:
                    gone = key.fileobj
                    assert isinstance(gone, socket.socket)
                    selector.unregister(gone)
                    gone.close()
                    users -= 1
            if not users:
                return


def _sweep() -> None:
    """Ends servers whose guardian was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), (folder / "guardian.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(OSError, ValueError, IndexError):
                first = (folder / "data" / "postmaster.pid").read_text().splitlines()[0]
                _end_postmaster(int(first), folder)
            shutil.rmtree(folder, ignore_errors=True)


def _end_postmaster(pid: int, folder: Path) -> None:
    """Ends the server that left its number in this folder, if the number is still its own."""
    said = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False)
    if str(folder) in said.stdout:
        os.kill(pid, signal.SIGQUIT)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _unprivileged() -> pwd.struct_passwd | None:
    """Returns whom the server runs as; None for ourselves. PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise PostgresMissing("PostgreSQL does not run as root, and there is neither a user 'postgres' nor 'nobody'")


def _run(program: Path, *arguments: object) -> None:
    person = _unprivileged()
    switched: dict[str, Any] = {}
    if person is not None:
        switched = {"user": person.pw_uid, "group": person.pw_gid, "extra_groups": []}
    # What the server would inherit and keep open, nobody could wait for the end of; so its output goes to a file.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [str(program), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env={"PATH": os.defpath, "LC_ALL": "C"},
            check=False,
            **switched,
        )
        if done.returncode:
            output.seek(0)
            raise RuntimeError(f"{program.name} failed: {output.read().decode(errors='replace').strip()}")


if __name__ == "__main__":
    _guard(Path(sys.argv[1]), Path(sys.argv[2]), fsync=sys.argv[3] == "1", told=int(sys.argv[4]))
