"""A web server on this machine for one test: it answers as it is told, and remembers who asked what."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeAlias, cast

import attrs


@attrs.frozen(kw_only=True)
class Request:
    """What a client asked for: the path with its query, and the headers with their names in lower case."""

    path: str
    headers: Mapping[str, str]


@attrs.frozen(kw_only=True)
class Reply:
    """What the server says.

    Attributes:
        status: The status.
        headers: The headers; of a body of bytes the length is added, unless it is named here.
        body: The content; something that yields is sent piece by piece, without a length, until the client hangs up.
        stalls: Whether nothing follows the body until the client hangs up.
        is_silent: Whether not even the status is sent.
    """

    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes | Iterable[bytes] = b""
    stalls: bool = False
    is_silent: bool = False


Answer: TypeAlias = bytes | Reply | Callable[[Request], bytes | Reply]


def redirect(target: str, *, status: int = 302) -> Reply:
    """Sends the client elsewhere."""
    return Reply(status=status, headers={"Location": target})


def silent() -> Reply:
    """Takes the request, and never answers."""
    return Reply(is_silent=True, stalls=True)


def endless(chunk: bytes = b"x" * 65_536) -> Answer:
    """Sends content for as long as anybody reads it."""
    return lambda _request: Reply(body=_forever(chunk, 0))


def dribbling() -> Answer:
    """Sends a byte now and then, forever, so that no wait for the next one is ever long."""
    return lambda _request: Reply(body=_forever(b".", 0.01))


def _forever(chunk: bytes, pause: float) -> Iterator[bytes]:
    while True:
        yield chunk
        if pause:
            time.sleep(pause)


@attrs.define(eq=False)
class HttpServer:
    """A running server.

    Attributes:
        routes: What is answered, by path without the query; may be changed at any time. Anything else is 404.
        requests: What was asked so far.
        asked: Set when a client asked for something.
        hung_up: Set when a client left before it had everything.
    """

    routes: dict[str, Answer]
    requests: list[Request] = attrs.field(factory=list)
    asked: threading.Event = attrs.field(factory=threading.Event)
    hung_up: threading.Event = attrs.field(factory=threading.Event)
    port: int = 0
    scheme: str = "http"

    def url(self, path: str, *, userinfo: str = "") -> str:
        """The address of a path."""
        return f"{self.scheme}://{userinfo}{'@' if userinfo else ''}127.0.0.1:{self.port}{path}"

    def count(self, path: str) -> int:
        """How often a path was asked for."""
        return sum(each.path.partition("?")[0] == path for each in self.requests)

    def answer(self, request: Request) -> Reply:
        """What a request is answered with."""
        self.requests.append(request)
        self.asked.set()
        answer = self.routes.get(request.path.partition("?")[0], Reply(status=404))
        found = answer(request) if callable(answer) else answer
        return Reply(body=found) if isinstance(found, bytes) else found


@contextmanager
def serving(
    routes: Mapping[str, Answer] | None = None, *, tls: tuple[Path, Path] | None = None
) -> Iterator[HttpServer]:
    """Serves routes on a free port of this machine until the block ends, whoever is still connected.

    Args:
        routes: What is answered, by path.
        tls: The files of a certificate and its key, to speak https.
    """
    server = HttpServer(dict(routes or {}), scheme="https" if tls else "http")
    listener = _Listener(("127.0.0.1", 0), _Handler)
    listener.server = server
    if tls:
        encrypted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        encrypted.load_cert_chain(*tls)
        listener.socket = encrypted.wrap_socket(listener.socket, server_side=True, do_handshake_on_connect=False)
    server.port = listener.server_address[1]
    # A short interval, because the end of every test waits for it.
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.hang_up()
        listener.server_close()
        thread.join()


class _Listener(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them
    server: HttpServer

    def __init__(self, *arguments: object) -> None:
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(*arguments)  # type: ignore[arg-type]

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)

    def hang_up(self) -> None:
        with self._lock:
            for each in self._open:
                with suppress(OSError):  # the client was faster
                    each.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the test, and nothing to print."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        cast(_Listener, self.server).opened(self.connection)

    def finish(self) -> None:
        cast(_Listener, self.server).closed(self.connection)
        super().finish()

    def do_GET(self) -> None:
        server = cast(_Listener, self.server).server
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = server.answer(Request(path=self.path, headers=headers))
        try:
            self._say(reply)
            if reply.stalls and not self.connection.recv(1):
                server.hung_up.set()
        except OSError:
            server.hung_up.set()
            self.close_connection = True

    def _say(self, reply: Reply) -> None:
        if reply.is_silent:
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in reply.headers.items()}
        if isinstance(reply.body, bytes) and not reply.stalls:
            headers.setdefault("content-length", str(len(reply.body)))
        else:
            headers["connection"] = "close"
        self.send_response(reply.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in (reply.body,) if isinstance(reply.body, bytes) else reply.body:
            self.wfile.write(piece)
            self.wfile.flush()

    def log_message(self, format: str, *arguments: object) -> None:
        """Prints nothing."""
