"""The process that forks children and waits for them. Does no deed itself."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from typing import NoReturn

from tests.faults import deeds


def main(descriptor: int) -> None:
    """Answers requests until nobody is left to make any."""
    deeds.import_everything()
    living: set[int] = set()
    try:
        with socket.socket(fileno=descriptor) as line:
            _serve(line, living)
    finally:
        for pid in living:  # whoever wanted them is gone
            os.kill(pid, signal.SIGKILL)
            _ended(pid)


def _serve(line: socket.socket, living: set[int]) -> None:
    while True:
        request, fds, _, _ = socket.recv_fds(line, 65_536, 2)
        if not request:
            return
        what, *about = json.loads(request)
        if what == "fork":
            answer = _forked(line, fds, *about)
            living.add(answer)
        else:
            answer = _ended(*about)
            living.discard(*about)
        line.send(str(answer).encode())


def _forked(line: socket.socket, fds: list[int], deed: str, arguments: list[object]) -> int:
    pid = os.fork()
    if pid == 0:
        line.close()
        _do(deed, arguments, *fds)
    for fd in fds:
        os.close(fd)
    return pid


def _do(deed: str, arguments: list[object], mouth: int, gate: int | None = None) -> NoReturn:
    try:
        os.dup2(mouth, sys.stdout.fileno())
        os.close(mouth)
        if gate is not None:
            with os.fdopen(gate, "rb") as barrier:
                barrier.read()
        deeds.DEEDS[deed](*arguments)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def _ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    main(int(sys.argv[1]))
