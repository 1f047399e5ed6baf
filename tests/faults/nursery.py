"""Makes child processes quickly: one process imports everything, and forks for each that is wanted. Kills on request.

The nurse opens nothing and has one thread, so that what it forks is as good as a process that was started anew.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import attrs

ROOT = Path(__file__).parents[2]


@attrs.define(eq=False)
class Child:
    """A process that does one deed.

    Attributes:
        pid: Its number, which nobody else gets before `wait`.
        said: What it says.
    """

    pid: int
    said: BinaryIO
    _nursery: Nursery

    def kill(self) -> None:
        """Ends it as the system does when memory runs out; one that has ended already is fine."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Returns when nothing of it is left, with how it ended: an exit code, or the negative number of a signal."""
        self.said.close()
        return int(self._nursery.ask("wait", self.pid))


@attrs.define(eq=False)
class Nursery:
    """A nurse, seen from outside."""

    _line: socket.socket

    def child(self, deed: str, *arguments: object, gate: int | None = None) -> Child:
        """Starts a child.

        Args:
            deed: One of the names in `tests.faults.deeds`.
            arguments: What it is told, as JSON.
            gate: A descriptor from which it reads before it begins; it begins when all writers have closed it.
        """
        said, mouth = os.pipe()
        try:
            pid = int(self.ask("fork", deed, arguments, fds=[mouth, *([] if gate is None else [gate])]))
        finally:
            os.close(mouth)
        return Child(pid=pid, said=os.fdopen(said, "rb"), nursery=self)

    def ask(self, *request: object, fds: list[int] | None = None) -> str:
        """Tells the nurse something, and returns her answer."""
        socket.send_fds(self._line, [json.dumps(request).encode()], fds or [])
        answer = self._line.recv(100)
        assert answer, "the nurse died: see what she wrote to standard error"
        return answer.decode()


@contextmanager
def nursery() -> Iterator[Nursery]:
    """Runs a nurse for the length of a block."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            command = [sys.executable, "-m", "tests.faults.nurse", str(theirs.fileno())]
            nurse = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
        try:
            yield Nursery(ours)
        finally:
            ours.close()
            nurse.wait(timeout=30)
