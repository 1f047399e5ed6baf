"""Lets the command line reach a host in another process of the same person. Offers reload, and nothing else."""

from __future__ import annotations

import json
import logging
import os
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import attrs
from anyio.streams.buffered import BufferedByteReceiveStream

from opencode_core.errors import ControlError, OpencodeError
from opencode_core.plugins.directory import PluginDirectory

MOST_BYTES = 64 * 1024
MOST_CHARACTERS = 8 * 1024

_BROKEN = (  # whatever the other side of a socket can do to a conversation
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.DelimiterNotFound,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    RecursionError,
    ValueError,
)
_log = logging.getLogger("opencode.control")


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
    """Listens on a socket that only this person can open, for as long as the host is open.

    A host that cannot be reached this way works all the same, so a socket that cannot be made is only logged.
    """
    if not hasattr(socket, "AF_UNIX"):
        task_status.started()
        return
    path = folder / f"{os.getpid()}-{id(plugins):x}.sock"
    try:
        _make_room(folder)
        listener = await anyio.create_unix_listener(path, mode=stat.S_IRUSR | stat.S_IWUSR)
    except OSError as error:
        _log.warning("The control socket '%s' cannot be made: %s. 'plugins reload' will not reach it.", path, error)
        task_status.started()
        return
    try:
        async with listener:
            task_status.started()
            await listener.serve(partial(_handle, plugins, directory))
    finally:
        path.unlink(missing_ok=True)


async def _handle(plugins: PluginDirectory, directory: str, stream: anyio.abc.SocketStream) -> None:
    async with stream:
        with suppress(*_BROKEN):
            request = json.loads(await BufferedByteReceiveStream(stream).receive_until(b"\n", MOST_BYTES))
            await stream.send(json.dumps(await _reload(plugins, directory, request)).encode() + b"\n")


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


def _make_room(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)  # it may have been there already; a socket is open to all until its own mode is set


def _sockets(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.sock")) if folder.is_dir() else []


async def _ask(stream: anyio.abc.SocketStream, name: str, path: Path, patience: float) -> Answer:
    async with stream:
        try:
            with anyio.fail_after(patience):
                await stream.send(json.dumps({"reload": name}).encode() + b"\n")
                said = json.loads(await BufferedByteReceiveStream(stream).receive_until(b"\n", MOST_BYTES))
                return Answer(**said)
        except (TimeoutError, TypeError, *_BROKEN) as error:
            raise ControlError(f"The host at '{path}' did not answer.", "Restart it.") from error


async def _reload(plugins: PluginDirectory, directory: str, request: Any) -> dict[str, Any]:
    name = str(request.get("reload", "")) if isinstance(request, dict) else ""
    said: dict[str, Any] = {"process": os.getpid(), "directory": directory, "generation": 0}
    try:
        status = await plugins.reload(name)
    except OpencodeError as error:
        with suppress(OpencodeError):
            said["generation"] = plugins.get(name).generation
        words = {"problem": error.problem, "remedy": error.remedy, "place": str(error.place or "")}
        return {**said, **{key: text[:MOST_CHARACTERS] for key, text in words.items()}}
    return {**said, "generation": status.generation}
