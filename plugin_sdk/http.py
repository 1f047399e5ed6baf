"""Fetches over HTTP within bounds: of size, of time, and of where a redirect may lead. Keeps nothing, retries nothing.

The proxies and certificates that the environment names are used, as by other programs. A secret in an address, before
its host or in its query, is never shown.
"""

from __future__ import annotations

import logging
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import attrs

from opencode_core.errors import OpencodeError
from plugin_sdk.text import shown

if TYPE_CHECKING:
    import httpx2

__all__ = ["FetchError", "Fetched", "fetch", "without_secrets"]

_SCHEMES = ("http", "https")
_REDIRECTS = (301, 302, 303, 307, 308)
_FOR_ANYBODY = ("accept", "accept-language", "if-modified-since", "if-none-match", "user-agent")
_GZIP = ("gzip", "x-gzip")
# Each by its name, because a filter of a logger does not count for those below it.
_LOGS = ("httpx2", "httpcore2", *(f"httpcore2.{each}" for each in ("connection", "http11", "http2", "proxy", "socks")))


@attrs.frozen(kw_only=True)
class Fetched:
    """What a server answered.

    Attributes:
        url: The address that answered, after every redirect; with the secrets in it, if it has some.
        status: Its status: 2xx, or 304 when nothing changed since what the request's headers name.
        body: The content, decoded if it came compressed.
        etag: The name of this version of the content; empty when the server gave none.
        content_type: What it says that the content is; empty when it does not say.
    """

    url: str = attrs.field(repr=lambda url: repr(without_secrets(url)))
    status: int
    body: bytes = attrs.field(repr=lambda body: f"<{len(body)} bytes>")
    etag: str = ""
    content_type: str = ""


class FetchError(OpencodeError):
    """Something could not be fetched.

    Attributes:
        url: Its address, as `without_secrets` shows it.
        status: What the server answered; None when the answer is not what was wrong.
    """

    def __init__(self, url: str, reason: str, remedy: str, *, status: int | None = None) -> None:
        address = without_secrets(url)
        super().__init__(f"'{address}' could not be fetched: {reason}.", remedy)
        self.url = address
        self.status = status


async def fetch(
    url: str,
    *,
    limit: int = 1_048_576,
    timeout: float = 10.0,  # noqa: ASYNC109 - the deadline is part of the contract, and errors name it
    headers: Mapping[str, str] | None = None,
    redirects: int = 5,
    same_origin: bool = False,
) -> Fetched:
    """Fetches an address, following redirects.

    Args:
        url: An ``http`` or ``https`` address.
        limit: How many bytes the content may have, decoded; one more ends the fetch.
        timeout: How many seconds it may take in all.
        headers: What the request says beside the usual; after a redirect to another origin only what is no secret.
        redirects: How many redirects are followed.
        same_origin: Whether every redirect has to stay at the scheme, host and port of the address.

    Raises:
        FetchError: It is no such address, a redirect leads where it may not, nobody answered in time, the content is
            too long or damaged, or the status is one of failure.
    """
    fetching = _FETCHING.set(True)
    try:
        with anyio.move_on_after(timeout):
            return await _Fetching(limit, headers or {}, redirects, same_origin).follow(url)
    finally:
        _FETCHING.reset(fetching)
    raise FetchError(url, f"it took longer than {timeout:g} s", "Check that the server is well, or try again later.")


def without_secrets(url: str) -> str:
    """Returns an address as people may see it: without user, password, query and fragment, on one line."""
    try:
        parts = urlsplit(url)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return "an address that cannot be read"
    host = parts.hostname or ""
    if not host:  # then whatever follows the scheme may be anything
        return f"{parts.scheme}:…" if parts.scheme else "an address that cannot be read"
    return shown(f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{parts.path}")


@attrs.define(eq=False)
class _Fetching:
    _limit: int
    _headers: Mapping[str, str]
    _redirects: int
    _same_origin: bool

    async def follow(self, address: str) -> Fetched:
        await anyio.to_thread.run_sync(_import_client, abandon_on_cancel=True)
        import httpx2

        url = first = _parsed(address)
        for _ in range(self._redirects + 1):
            try:
                async with _asked(url, self._headers_for(url, first)) as response:
                    if response.status_code not in _REDIRECTS:
                        return await self._read(response, url)
                    url = self._target(response, url, first)
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
                # What it says may repeat a header or an address with the secrets in it.
                raise FetchError(str(url), *_reason(error)) from None
        raise FetchError(
            address, f"it redirects more than {self._redirects} times", "Name the address that it ends up at."
        )

    def _headers_for(self, url: httpx2.URL, first: httpx2.URL) -> dict[str, str]:
        is_first = _origin(url) == _origin(first)
        given = {name.lower(): value for name, value in self._headers.items()}
        kept = {name: value for name, value in given.items() if is_first or name in _FOR_ANYBODY}
        # Nothing else is asked for, because nothing else can be unpacked in bounded steps.
        return {"user-agent": "opencode-core", **kept, "accept-encoding": "gzip"}

    def _target(self, response: httpx2.Response, url: httpx2.URL, first: httpx2.URL) -> httpx2.URL:
        status = response.status_code
        location = response.headers.get("location", "")
        if not location:
            raise FetchError(str(url), f"it redirects ({status}) to nowhere", "Check the server.", status=status)
        target = url.join(location)
        if refusal := self._refusal(target, url, first):
            reason = f"it redirects ({status}) to '{without_secrets(str(target))}', {refusal}"
            raise FetchError(str(url), reason, "Name the address of the content itself.", status=status)
        if _origin(target) == _origin(url) and not target.userinfo:
            return target.copy_with(userinfo=url.userinfo)
        return target

    def _refusal(self, target: httpx2.URL, url: httpx2.URL, first: httpx2.URL) -> str:
        if target.scheme not in _SCHEMES or not target.host:
            return "which is neither http nor https"
        if url.scheme == "https" and target.scheme == "http":
            return "which is not encrypted as it is itself"
        if self._same_origin and _origin(target) != _origin(first):
            return "which is another origin"
        return ""

    async def _read(self, response: httpx2.Response, url: httpx2.URL) -> Fetched:
        status = response.status_code
        if status != 304 and not 200 <= status < 300:
            reason, remedy = f"the server answered with status {status}", "Check the address, or try again later."
            raise FetchError(str(url), reason, remedy, status=status)
        return Fetched(
            url=str(url),
            status=status,
            body=b"" if status == 304 else await self._body(response),
            etag=response.headers.get("etag", ""),
            content_type=response.headers.get("content-type", ""),
        )

    async def _body(self, response: httpx2.Response) -> bytes:
        encoding = response.headers.get("content-encoding", "").strip().lower() or "identity"
        declared = response.headers.get("content-length", "")
        unpacking = _Unpacking(encoding, self._limit)
        if encoding == "identity" and declared.isdecimal() and int(declared) > self._limit:
            unpacking.problem = _too_long(self._limit)
        if not unpacking.problem:
            with anyio.CancelScope() as reading:
                async for chunk in response.aiter_raw():
                    if not unpacking.takes(chunk):
                        # Not by a break: the client's generators only end well when they are cancelled at a read.
                        reading.cancel()
            unpacking.finish()
        if unpacking.problem:
            raise FetchError(str(response.url), *unpacking.problem)
        return bytes(unpacking.body)


@attrs.define(eq=False)
class _Unpacking:
    """Collects a content up to a limit; of a compressed one never more than that is unpacked.

    Attributes:
        body: What there is so far.
        problem: Why the content cannot be taken, and what to do; None while it can.
    """

    _encoding: str
    _limit: int
    body: bytearray = attrs.field(init=False, factory=bytearray)
    problem: tuple[str, str] | None = attrs.field(init=False, default=None)
    _gzip: Any = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        if self._encoding not in ("identity", *_GZIP):
            self.problem = ("its content is encoded in a way that was not asked for", "Check the server.")

    def takes(self, chunk: bytes) -> bool:
        if self.problem:
            return False
        if self._encoding in _GZIP:
            self._unzip(chunk)
        else:
            self.body += chunk
        if len(self.body) > self._limit:
            self.problem = _too_long(self._limit)
        return self.problem is None

    def finish(self) -> None:
        if self._gzip is not None and not self._gzip.eof and not self.problem:
            self.problem = ("its compressed content ends too early", "Try again later.")

    def _unzip(self, chunk: bytes) -> None:
        try:
            while chunk and len(self.body) <= self._limit:
                if self._gzip is None or self._gzip.eof:  # a gzip file may have several members
                    self._gzip = zlib.decompressobj(wbits=31)
                self.body += self._gzip.decompress(chunk, self._limit + 1 - len(self.body))
                chunk = self._gzip.unused_data if self._gzip.eof else self._gzip.unconsumed_tail
        except zlib.error:
            self.problem = ("its compressed content is damaged", "Check the server.")


def _import_client() -> None:
    """Imports it in a thread, because that takes a third of a second; after that it costs nothing."""
    import httpx2  # noqa: F401

    # They write whole addresses and headers, where a query may hold a key. Others who use them are not bothered.
    for name in _LOGS:
        logging.getLogger(name).addFilter(_is_of_others)


_FETCHING: ContextVar[bool] = ContextVar("fetching", default=False)


def _is_of_others(_record: logging.LogRecord) -> bool:
    return not _FETCHING.get()


def _parsed(address: str) -> httpx2.URL:
    import httpx2

    try:
        url = httpx2.URL(address)
    except (httpx2.InvalidURL, ValueError):
        raise FetchError(address, "it is not a URL", "Write it as https://host/path.") from None
    if url.scheme not in _SCHEMES or not url.host:
        raise FetchError(address, "it is neither http nor https", "Write it as https://host/path.")
    return url


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


@asynccontextmanager
async def _asked(url: httpx2.URL, headers: dict[str, str]) -> AsyncIterator[httpx2.Response]:
    """Asks a server, with a client that knows nothing of the hop before, and hangs up at the end of the block."""
    import httpx2

    trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody: enough where nothing is encrypted
    if url.scheme == "https":
        trusted = await anyio.to_thread.run_sync(httpx2.create_ssl_context, abandon_on_cancel=True)
    # Not within the address, which the client writes into its log.
    auth = (url.username, url.password) if url.userinfo else None
    async with (
        httpx2.AsyncClient(verify=trusted, timeout=None, follow_redirects=False) as client,
        client.stream("GET", url.copy_with(userinfo=b""), headers=headers, auth=auth) as response,
    ):
        yield response


def _reason(error: Exception) -> tuple[str, str]:
    import httpx2

    if isinstance(error, httpx2.ConnectError):
        return f"its server cannot be reached ({shown(_words(error))})", "Check the address and the network."
    if isinstance(error, httpx2.ProxyError):
        return "the proxy refused", "Check the proxy that the environment names."
    kind = type(error).__name__
    return f"the exchange with its server failed ({kind})", "Check the address, or try again later."


def _words(error: BaseException) -> str:
    """Returns what the innermost error says, such as that of the operating system; it knows no address."""
    inner = error.__cause__ or error.__context__
    return (_words(inner) if inner else "") or str(error) or type(error).__name__


def _too_long(limit: int) -> tuple[str, str]:
    return f"its content is longer than {limit} bytes", "Make it shorter, or raise the limit."
