"""The command line reaches a running host through a socket, and nobody hurts the host through it."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from opencode_core.control import Answer, reload_everywhere
from opencode_core.host import Host
from opencode_core.plugins.candidate import Candidate
from tests.host.making import PLUGINS, Person, ask, opened, tool_plugin, write

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs sockets in the file system"),
]


@pytest.fixture
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a short name: the paths of sockets are limited."""
    return tmp_path_factory.mktemp("d")


@asynccontextmanager
async def reachable(tmp_path: Path, data: Path) -> AsyncIterator[tuple[Host, Path]]:
    file = write(tmp_path / "acme.py", tool_plugin("old"))
    async with opened(tmp_path / "work", plugins=[file], data_dir=data, control=True) as host:
        yield host, file


async def answers(data: Path, name: str = "acme", **settings: float) -> list[Answer]:
    with anyio.fail_after(10):
        return [answer async for answer in reload_everywhere(name, data / "hosts", **settings)]


def only_socket(data: Path) -> Path:
    (path,) = (data / "hosts").glob("*.sock")
    return path


async def test_a_reload_from_outside_reaches_the_host(tmp_path: Path, data: Path) -> None:
    async with reachable(tmp_path, data) as (host, file):
        write(file, tool_plugin("new"))
        (answer,) = await answers(data)
        assert answer == Answer(process=os.getpid(), directory=str(tmp_path / "work"), generation=2)
        assert await ask(host) == "new"


async def test_a_reload_that_fails_is_answered_with_the_reason_and_the_place(tmp_path: Path, data: Path) -> None:
    async with reachable(tmp_path, data) as (host, file):
        write(file, "x = 1\n1/0\n")
        (answer,) = await answers(data)
        assert (answer.generation, answer.place) == (1, f"{file}:2")
        assert "ZeroDivisionError" in answer.problem
        assert await ask(host) == "old"


async def test_an_unknown_name_is_answered(tmp_path: Path, data: Path) -> None:
    async with reachable(tmp_path, data):
        (answer,) = await answers(data, "acne")
        assert (answer.generation, answer.remedy) == (0, "Did you mean 'acme'?")


async def test_a_wrong_configuration_is_answered(tmp_path: Path, data: Path) -> None:
    write(tmp_path / PLUGINS / "acme.py", tool_plugin("old"))
    async with opened(tmp_path, ask_trust=Person(), data_dir=data, control=True) as host:
        write(tmp_path / "opencode.json", "{")
        (answer,) = await answers(data)
        assert str(tmp_path / "opencode.json") in answer.problem
        assert await ask(host) == "old"


async def test_every_host_is_asked(tmp_path: Path, data: Path) -> None:
    async with reachable(tmp_path / "one", data), reachable(tmp_path / "two", data):
        assert [answer.generation for answer in await answers(data)] == [2, 2]


async def test_only_the_person_can_open_the_socket_and_its_folder(tmp_path: Path, data: Path) -> None:
    (data / "hosts").mkdir(mode=0o755)

    async with reachable(tmp_path, data):
        assert stat.S_IMODE(only_socket(data).stat().st_mode) == 0o600
        assert stat.S_IMODE((data / "hosts").stat().st_mode) == 0o700


async def test_the_socket_is_gone_when_the_host_has_closed(tmp_path: Path, data: Path) -> None:
    async with reachable(tmp_path, data):
        assert only_socket(data).exists()
    assert await answers(data) == []
    assert list((data / "hosts").iterdir()) == []


def leave_socket(data: Path, name: str) -> Path:
    """Leave a socket behind that nobody listens on."""
    path = data / "hosts" / name
    path.parent.mkdir(exist_ok=True)
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    return path


def ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return process.pid


async def test_the_socket_of_a_process_that_was_killed_is_removed(data: Path) -> None:
    leave_socket(data, f"{ended_process()}-2.sock")
    leave_socket(data, f"{'9' * 40}-2.sock")

    assert await answers(data) == []
    assert list((data / "hosts").iterdir()) == []


@pytest.mark.parametrize(("name", "process"), [("1-2.sock", 1), ("nobody.sock", 0)])
async def test_a_socket_that_refuses_is_kept_unless_its_process_is_gone(data: Path, name: str, process: int) -> None:
    path = leave_socket(data, name)

    (answer,) = await answers(data)
    assert (answer.process, answer.generation) == (process, 0)
    assert f"'{path}' cannot be reached" in answer.problem
    assert path.exists()


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\n",
        b"not json\n",
        b"\xff\xfe\x00\n",
        b"[]\n",
        b"{}\n",
        b'{"reload": {"a": 1}}\n',
        b"no end of line",
        b"[" * 60_000 + b"\n",
        b"x" * 100_000,
    ],
)
async def test_garbage_does_not_hurt_the_host(tmp_path: Path, data: Path, garbage: bytes) -> None:
    async with reachable(tmp_path, data) as (host, _file):
        async with await anyio.connect_unix(only_socket(data)) as stream:
            try:
                await stream.send(garbage)
                await stream.send_eof()
                with anyio.fail_after(5):
                    await stream.receive()
            except (anyio.BrokenResourceError, anyio.EndOfStream):
                await anyio.lowlevel.checkpoint()
        assert [answer.generation for answer in await answers(data)] == [2]
        assert await ask(host) == "old"


async def test_somebody_who_connects_and_says_nothing_holds_up_nobody(tmp_path: Path, data: Path) -> None:
    async with reachable(tmp_path, data):
        async with await anyio.connect_unix(only_socket(data)):
            assert [answer.generation for answer in await answers(data)] == [2]
        # anyio 4.16 trips over a socket that ends in the same step of the event loop in which its reader is cancelled.
        await anyio.wait_all_tasks_blocked()


async def test_a_host_that_does_not_answer_is_named(data: Path) -> None:
    (data / "hosts").mkdir()
    path = data / "hosts" / "1-2.sock"
    async with await anyio.create_unix_listener(path):
        (answer,) = await answers(data, patience=0.05)
    assert (answer.process, answer.generation, answer.remedy) == (1, 0, "Restart it.")
    assert answer.problem == f"The host at '{path}' did not answer."


async def test_the_others_are_asked_though_a_host_does_not_answer(tmp_path: Path, data: Path) -> None:
    async with reachable(tmp_path, data), await anyio.create_unix_listener(data / "hosts" / "0-first.sock"):
        silent, reloaded = await answers(data, patience=2)
        assert "did not answer" in silent.problem
        assert (reloaded.problem, reloaded.generation) == ("", 2)


async def test_a_fault_that_nobody_foresaw_is_answered_and_the_host_goes_on(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(candidate: object) -> Candidate:
        raise OSError("disk on fire")

    async with reachable(tmp_path, data) as (host, _file):
        with monkeypatch.context() as patch:
            patch.setattr(host.plugins, "find_again", fail)
            (answer,) = await answers(data)
        assert (answer.generation, answer.problem) == (1, "OSError: disk on fire.")
        assert [answer.generation for answer in await answers(data)] == [2]


async def test_a_conversation_that_fails_does_not_end_the_host(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*args: object) -> None:
        raise KeyError("unforeseen")

    async with reachable(tmp_path, data):
        with monkeypatch.context() as patch:
            patch.setattr("opencode_core.control._reload", fail)
            (answer,) = await answers(data)
        assert "did not answer" in answer.problem
        assert "unforeseen" in caplog.text
        assert [answer.generation for answer in await answers(data)] == [2]


@pytest.mark.parametrize("said", [b"nonsense\n", b'{"unexpected": 1}\n', b""])
async def test_an_answer_that_is_none_is_named(data: Path, said: bytes) -> None:
    (data / "hosts").mkdir()
    listener = await anyio.create_unix_listener(data / "hosts" / "1-2.sock")

    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            if said:
                await stream.send(said)

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        (named,) = await answers(data)
        assert "did not answer" in named.problem
        group.cancel_scope.cancel()


async def test_a_host_opens_though_its_socket_cannot_be_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    deep = tmp_path / ("x" * 120)

    async with reachable(tmp_path, deep) as (host, _file):
        assert await ask(host) == "old"
    assert "cannot be made" in caplog.text


async def test_nobody_listens_unless_asked_to(tmp_path: Path, data: Path) -> None:
    async with opened(tmp_path, data_dir=data):
        assert not (data / "hosts").exists()
