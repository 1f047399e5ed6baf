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
from opencode_core.plugins.diagnostics import sentence, words
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
    """What one running host said to a reload, or why it said nothing."""

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
    try:
        async with stream:
            with suppress(*_BROKEN):
                request = json.loads(await BufferedByteReceiveStream(stream).receive_until(b"\n", MOST_BYTES))
                await stream.send(json.dumps(await _reload(plugins, directory, request)).encode() + b"\n")
    except Exception:  # one conversation is not worth the host
        _log.warning("A conversation on the control socket failed.", exc_info=True)


async def reload_everywhere(name: str, folder: Path, *, patience: float = 30.0) -> AsyncIterator[Answer]:
    """Asks every running host of this person to reload a plugin, and yields what each says.

    A host that does not answer is one with a problem; the others are asked all the same.
    """
    for path in _sockets(folder):
        process = _process_of(path)
        try:
            answer = await _ask(name, path, patience)
        except FileNotFoundError:  # it closed just now
            continue
        except ControlError as error:
            if isinstance(error.__cause__, ConnectionRefusedError) and process and not _is_running(process):
                path.unlink(missing_ok=True)  # it was killed: nobody will listen any more
                continue
            answer = Answer(
                process=process,
                directory="an unknown directory",
                generation=0,
                problem=error.problem,
                remedy=error.remedy,
            )
        yield answer


def _make_room(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)  # it may have been there already; a socket is open to all until its own mode is set


def _sockets(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.sock")) if folder.is_dir() else []


def _process_of(path: Path) -> int:
    """Returns the process that a socket's name tells of; 0 when it tells of none."""
    number, _dash, _rest = path.name.partition("-")
    return int(number) if number.isascii() and number.isdecimal() else 0


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is there, and somebody else's
        return True
    return True


async def _ask(name: str, path: Path, patience: float) -> Answer:
    try:
        with anyio.fail_after(patience):
            async with await anyio.connect_unix(path) as stream:
                await stream.send(json.dumps({"reload": name}).encode() + b"\n")
                said = json.loads(await BufferedByteReceiveStream(stream).receive_until(b"\n", MOST_BYTES))
                return Answer(**said)
    except FileNotFoundError:
        raise
    except (TimeoutError, TypeError, *_BROKEN) as error:  # a timeout is an OSError too
        raise ControlError(f"The host at '{path}' did not answer.", "Restart it.") from error
    except OSError as error:
        remedy = "Restart it; if that process is no host, delete the file."
        raise ControlError(f"The host at '{path}' cannot be reached: {error.strerror}.", remedy) from error


async def _reload(plugins: PluginDirectory, directory: str, request: Any) -> dict[str, Any]:
    name = str(request.get("reload", "")) if isinstance(request, dict) else ""
    said: dict[str, Any] = {"process": os.getpid(), "directory": directory, "generation": 0}
    try:
        status = await plugins.reload(name)
    except Exception as error:  # whatever it is, it is answered
        with suppress(OpencodeError):
            said["generation"] = plugins.get(name).generation
        return {**said, **{key: text[:MOST_CHARACTERS] for key, text in _told(error).items()}}
    return {**said, "generation": status.generation}


def _told(error: Exception) -> dict[str, str]:
    problem, remedy = words(error)
    if isinstance(error, OpencodeError):
        return {"problem": problem, "remedy": remedy, "place": str(error.place or "")}
    return {"problem": sentence(problem), "remedy": "Try again, or restart the host."}
