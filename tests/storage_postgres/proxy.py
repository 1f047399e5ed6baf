"""A wire between a store and its server that can be cut at a chosen word. Understands nothing else."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import attrs


@attrs.define(eq=False)
class Proxy:
    """Passes everything on, until the client says the word for the first time.

    Attributes:
        word: What cuts the wire.
        passes_word: Whether the server still gets to hear it; then the wire is cut when it answers with the same word.
        is_final: Whether no new connection is accepted afterwards.
        is_silent: Whether the wire stays, and nothing passes any more.
        is_cut: Whether that has happened.
    """

    port: int
    server_port: int
    word: bytes = b"\0never\0"
    passes_word: bool = True
    is_final: bool = False
    is_silent: bool = False
    is_cut: bool = False
    _open: list[socket.socket] = attrs.field(init=False, factory=list)

    def serve(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                if self.is_cut and self.is_final:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self.server_port))
                self._open += [client, server]
                threading.Thread(target=self._wire, args=(client, server), daemon=True).start()

    def close(self) -> None:
        _cut(*self._open)
        for end in self._open:
            end.close()

    def _wire(self, client: socket.socket, server: socket.socket) -> None:
        is_mute = threading.Event()
        threading.Thread(target=self._answers, args=(server, client, is_mute), daemon=True).start()
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if self.word in data and not self.is_cut:
                    self.is_cut = True
                    is_mute.set()
                    if self.is_silent:
                        while client.recv(65536):
                            pass
                    if not self.passes_word:
                        break
                server.sendall(data)
        _cut(client, server)

    def _answers(self, server: socket.socket, client: socket.socket, is_mute: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if not is_mute.is_set():
                    client.sendall(data)
                elif self.word in data:  # done, as the server says, but nobody hears it
                    break
        _cut(client, server)


def _cut(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxied(server_port: int) -> Iterator[Proxy]:
    """A proxy on a port of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        proxy = Proxy(port=listening.getsockname()[1], server_port=server_port)
        thread = threading.Thread(target=proxy.serve, args=(listening,), daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.close()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
