"""Lets the command line reach a host in another process of the same person. Offers reload, and nothing else."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import attrs
from anyio.streams.buffered import BufferedByteReceiveStream

from opencode_core.errors import ControlError, PluginError
from opencode_core.plugins.directory import PluginDirectory

MOST_BYTES = 64 * 1024


@attrs.frozen(kw_only=True)
class Answer:
    """What one running host said to a reload."""

    process: int
    directory: str
    generation: int
    problem: str = ""
    remedy: str = ""
    place: str = ""


async def serve_control(
    plugins: PluginDirectory,
    directory: str,
    folder: Path,
    *,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Listens on a socket that only this person can open, for as long as the host is open."""
    if not hasattr(socket, "AF_UNIX"):
        task_status.started()
        return
    path = _make_room(folder) / f"{os.getpid()}-{id(plugins):x}.sock"

    async def handle(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound):
                request = json.loads(await BufferedByteReceiveStream(stream).receive_until(b"\n", MOST_BYTES))
                await stream.send(json.dumps(await _reload(plugins, directory, request)).encode() + b"\n")

    listener = await anyio.create_unix_listener(path, mode=stat.S_IRUSR | stat.S_IWUSR)
    try:
        async with listener:
            task_status.started()
            await listener.serve(handle)
    finally:
        path.unlink(missing_ok=True)


async def reload_everywhere(name: str, folder: Path, *, patience: float = 30.0) -> AsyncIterator[Answer]:
    """Asks every running host of this person to reload a plugin, and yields what each says.

    Raises:
        ControlError: A host is there and does not answer.
    """
    for path in _sockets(folder):
        try:
            stream = await anyio.connect_unix(path)
        except (ConnectionRefusedError, FileNotFoundError):  # its process was killed: nobody listens any more
            path.unlink(missing_ok=True)
            continue
        except OSError as error:
            raise ControlError(f"The host at '{path}' cannot be reached: {error.strerror}.", "Restart it.") from error
        yield await _ask(stream, name, path, patience)


def _make_room(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _sockets(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.sock")) if folder.is_dir() else []


async def _ask(stream: anyio.abc.SocketStream, name: str, path: Path, patience: float) -> Answer:
    async with stream:
        try:
            with anyio.fail_after(patience):
                await stream.send(json.dumps({"reload": name}).encode() + b"\n")
                said = json.loads(await BufferedByteReceiveStream(stream).receive_until(b"\n", MOST_BYTES))
        except (TimeoutError, anyio.IncompleteRead, anyio.BrokenResourceError, ValueError) as error:
            raise ControlError(f"The host at '{path}' did not answer.", "Restart it.") from error
    return Answer(**said)


async def _reload(plugins: PluginDirectory, directory: str, request: Any) -> dict[str, Any]:
    name = str(request.get("reload", "")) if isinstance(request, dict) else ""
    said: dict[str, Any] = {"process": os.getpid(), "directory": directory, "generation": 0}
    try:
        status = await plugins.reload(name)
    except PluginError as error:
        with suppress(PluginError):
            said["generation"] = plugins.get(name).generation
        return {**said, "problem": error.problem, "remedy": error.remedy, "place": str(error.place or "")}
    return {**said, "generation": status.generation}
