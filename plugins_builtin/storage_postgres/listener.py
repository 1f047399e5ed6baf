"""Hears the commits of other processes. Begins with the first who waits for changes, and ends with the store."""

from __future__ import annotations

import json
import random
import selectors
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any

import anyio
import attrs
import psycopg

from plugin_sdk.storage import EventLoop, StorageClosedError, StorageError
from plugins_builtin.storage_postgres.address import Address
from plugins_builtin.storage_postgres.connecting import dial
from plugins_builtin.storage_postgres.connection import Connection
from plugins_builtin.storage_postgres.faults import meaning_of
from plugins_builtin.storage_postgres.patience import at_most
from plugins_builtin.storage_postgres.writes import Write

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0


@attrs.define(eq=False, repr=False)
class Listener:
    """A thread with a connection that listens.

    After the connection was lost and made again, it announces that anything may have changed.
    """

    _address: Address
    _channel: str
    _origin: str
    _loop: EventLoop
    _announce: Callable[[Sequence[Write] | None], None]
    _start: _Start | None = attrs.field(init=False, default=None)
    _is_stopping: bool = attrs.field(init=False, default=False)

    async def listening(self) -> None:
        """Returns when everything that is committed from now on will be heard.

        Raises:
            StorageUnavailableError: The server cannot be reached.
            StorageClosedError: The listener was stopped.
        """
        if self._is_stopping:
            raise StorageClosedError
        if self._start is None:
            self._start = _Start()
            # A store that nobody closed must not keep the program from ending.
            self._start.thread = threading.Thread(
                target=self._run, args=(self._start,), name="storage-postgres-listener", daemon=True
            )
            self._start.thread.start()
        start = self._start
        await start.is_ready.wait()
        if start.error is not None:
            raise start.error

    def stop(self) -> None:
        """Ends the thread and its connection. For another thread than the event loop's.

        A thread that is just connecting to a server which does not answer is not waited for longer than that may take.
        """
        self._is_stopping = True
        start = self._start
        if start is not None and start.thread is not None:
            with suppress(OSError):  # the thread has just ended by itself
                start.bell.send(b"!")
            start.thread.join(self._address.timeout)

    def refuse(self) -> None:
        """Keeps a new thread from starting. For the event loop's own thread."""
        self._is_stopping = True

    def _run(self, start: _Start) -> None:
        with start.bell, start.ear:
            try:
                connection = self._listen()
            except BaseException as error:
                self._loop.soon(partial(self._give_up, start, error))
                return
            self._loop.soon(start.is_ready.set)
            while True:
                with closing(connection):
                    self._hear(connection, start.ear)
                again = self._listen_again(start.ear)
                if again is None:
                    return
                connection = again
                self._announce(None)

    def _give_up(self, start: _Start, error: BaseException) -> None:
        start.error = error
        start.is_ready.set()
        if self._start is start:
            self._start = None  # the next who waits may try again

    def _listen(self) -> Connection:
        connection = dial(self._address)
        try:
            with at_most(connection, self._address.timeout):
                connection.execute(f"LISTEN {self._channel}".encode())
        except psycopg.Error as error:
            connection.close()
            raise meaning_of(error, self._address) from error
        return connection

    def _hear(self, connection: Connection, ear: socket.socket) -> None:
        """Passes on what is announced, until the connection is lost or the bell rings."""
        with selectors.DefaultSelector() as selector, suppress(psycopg.Error):
            selector.register(ear, selectors.EVENT_READ)
            selector.register(connection.fileno(), selectors.EVENT_READ)
            while not self._is_stopping:
                selector.select()
                connection.pgconn.consume_input()
                while (heard := connection.pgconn.notifies()) is not None:
                    self._pass_on(heard.extra)

    def _pass_on(self, payload: bytes) -> None:
        origin, written = _read(payload)
        if origin != self._origin:  # our own commits were announced already
            self._announce(written)

    def _listen_again(self, ear: socket.socket) -> Connection | None:
        pause = _FIRST_PAUSE
        with selectors.DefaultSelector() as selector:
            selector.register(ear, selectors.EVENT_READ)
            while not self._is_stopping:
                with suppress(StorageError):
                    return self._listen()
                selector.select(random.uniform(pause / 2, pause))
                pause = min(2 * pause, _LONGEST_PAUSE)
        return None


@attrs.define(eq=False, repr=False)
class _Start:
    """One start of the thread."""

    is_ready: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    error: BaseException | None = attrs.field(init=False, default=None)
    thread: threading.Thread | None = attrs.field(init=False, default=None)
    bell: socket.socket = attrs.field(init=False)
    ear: socket.socket = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.bell, self.ear = socket.socketpair()


def _read(payload: bytes) -> tuple[str, list[Write] | None]:
    """Returns who committed and what; None for anything, also when the announcement makes no sense."""
    try:
        origin, written = json.loads(payload)
        return str(origin), None if written is None else [_write(*parts) for parts in written]
    except (TypeError, ValueError):
        return "", None


def _write(table: str, *key: Any) -> Write:
    return table, key
