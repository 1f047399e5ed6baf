"""A plugin that fetches waits no longer, takes no more and goes no further than it said."""

import gzip
import shutil
import subprocess
import traceback
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread
import pytest

from plugin_sdk.http import FetchError, fetch, without_secrets
from tests.support.http_server import HttpServer, Reply, dribbling, endless, redirect, serving, silent

SECRET = "s3cret"  # by its name in the lines of code that a traceback shows


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with serving() as running:
        yield running


async def test_what_is_fetched_says_where_it_came_from_and_which_version_it_is(server: HttpServer) -> None:
    headers = {"ETag": '"7"', "Content-Type": "text/markdown"}
    server.routes["/rules"] = Reply(body=b"be brief", headers=headers)
    fetched = await fetch(server.url("/rules"))
    assert (fetched.url, fetched.status, fetched.body) == (server.url("/rules"), 200, b"be brief")
    assert (fetched.etag, fetched.content_type) == ('"7"', "text/markdown")


async def test_headers_of_the_caller_are_sent_and_304_is_an_answer(server: HttpServer) -> None:
    server.routes["/rules"] = lambda request: Reply(status=304 if request.headers["if-none-match"] == '"7"' else 200)
    fetched = await fetch(server.url("/rules"), headers={"If-None-Match": '"7"'})
    assert (fetched.status, fetched.body) == (304, b"")


@pytest.mark.parametrize("status", [400, 404, 410, 500, 503])
async def test_a_status_of_failure_is_an_error_that_carries_it(server: HttpServer, status: int) -> None:
    server.routes["/rules"] = Reply(status=status, body=b"no")
    with pytest.raises(FetchError, match=f"answered with status {status}. Check the address") as caught:
        await fetch(server.url("/rules"))
    assert (caught.value.status, caught.value.url) == (status, server.url("/rules"))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_to_where_they_end(server: HttpServer, status: int) -> None:
    server.routes |= {"/a": redirect("b", status=status), "/b": redirect(server.url("/c")), "/c": b"found"}
    fetched = await fetch(server.url("/a"), redirects=2)
    assert (fetched.url, fetched.body) == (server.url("/c"), b"found")


async def test_more_redirects_than_are_allowed_are_an_error(server: HttpServer) -> None:
    server.routes["/a"] = redirect("/a")
    with pytest.raises(FetchError, match="redirects more than 3 times"):
        await fetch(server.url("/a"), redirects=3)
    assert server.count("/a") == 4


async def test_a_redirect_without_a_target_is_an_error(server: HttpServer) -> None:
    server.routes["/a"] = Reply(status=302)
    with pytest.raises(FetchError, match="to nowhere") as caught:
        await fetch(server.url("/a"))
    assert caught.value.status == 302


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://host/a"])
async def test_a_redirect_to_anything_but_the_web_is_refused(server: HttpServer, target: str) -> None:
    server.routes["/a"] = redirect(target)
    with pytest.raises(FetchError, match="which is neither http nor https") as caught:
        await fetch(server.url("/a"))
    assert (caught.value.url, caught.value.status) == (server.url("/a"), 302)


@pytest.mark.parametrize("target", ["data:,text", "http://host:port/"])
async def test_a_redirect_to_what_is_no_address_is_an_error(server: HttpServer, target: str) -> None:
    server.routes["/a"] = redirect(target)
    with pytest.raises(FetchError, match="could not be fetched"):
        await fetch(server.url("/a"))


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/a", "/etc/passwd", "", "http://", "https:///a"])
async def test_only_addresses_of_the_web_are_fetched(url: str) -> None:
    with pytest.raises(FetchError, match="neither http nor https"):
        await fetch(url)


@pytest.mark.parametrize("url", ["http://host:port/", "http://ho\nst/", "http://a\udc80/"])
async def test_what_is_no_url_is_an_error_and_not_a_crash(url: str) -> None:
    with pytest.raises(FetchError, match="could not be fetched"):
        await fetch(url)


async def test_a_redirect_from_https_to_http_is_refused(
    tmp_path: Path, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.routes["/b"] = b"plain"
    certificate, key = certificate_for_this_machine(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(
        {"/a": redirect(server.url("/b")), "/c": redirect("/d"), "/d": b"found"}, tls=(certificate, key)
    ) as safe:
        with pytest.raises(FetchError, match=f"'{server.url('/b')}', which is not encrypted"):
            await fetch(safe.url("/a"))
        assert (await fetch(safe.url("/c"))).body == b"found"
    assert server.requests == []


async def test_a_server_that_nobody_vouches_for_is_not_listened_to(tmp_path: Path, server: HttpServer) -> None:
    with serving({"/a": b"false"}, tls=certificate_for_this_machine(tmp_path)) as false:
        server.routes["/a"] = redirect(false.url("/a"))
        for each in (false, server):
            with pytest.raises(FetchError, match=r"cannot be reached .*certificate"):
                await fetch(each.url("/a"))
    assert false.requests == []


async def test_a_caller_may_hold_redirects_to_the_origin(server: HttpServer) -> None:
    with serving({"/b": b"elsewhere"}) as other:
        server.routes |= {"/a": redirect(other.url("/b")), "/c": redirect("/d"), "/d": b"here"}
        with pytest.raises(FetchError, match="another origin"):
            await fetch(server.url("/a"), same_origin=True)
        assert other.requests == []
        assert (await fetch(server.url("/c"), same_origin=True)).body == b"here"


async def test_secrets_of_the_caller_do_not_follow_a_redirect_to_another_origin(server: HttpServer) -> None:
    with serving({"/b": b"elsewhere"}) as other:
        server.routes["/a"] = redirect(other.url("/b"))
        headers = {"X-Token": SECRET, "Authorization": f"Bearer {SECRET}", "If-None-Match": '"7"'}
        await fetch(server.url("/a", userinfo=f"me:{SECRET}"), headers=headers)
    assert server.requests[0].headers["x-token"] == SECRET
    assert other.requests[0].headers["if-none-match"] == '"7"'
    assert SECRET not in str(other.requests[0].headers)
    assert "authorization" not in other.requests[0].headers


async def test_a_user_in_the_address_is_known_at_every_redirect_within_its_origin(server: HttpServer) -> None:
    server.routes |= {"/a": redirect(server.url("/b")), "/b": redirect("/c"), "/c": b"found"}
    await fetch(server.url("/a", userinfo=f"me:{SECRET}"))
    assert len({each.headers["authorization"] for each in server.requests}) == 1


async def test_content_of_exactly_the_limit_is_taken(server: HttpServer) -> None:
    server.routes |= {"/plain": b"x" * 1000, "/gzip": zipped(b"x" * 1000)}
    assert len((await fetch(server.url("/plain"), limit=1000)).body) == 1000
    assert len((await fetch(server.url("/gzip"), limit=1000)).body) == 1000


async def test_content_that_says_it_is_too_long_is_not_read(server: HttpServer) -> None:
    server.routes["/a"] = Reply(headers={"Content-Length": "1001"}, stalls=True)
    with pytest.raises(FetchError, match=r"longer than 1000 bytes\. Make it shorter"):
        await fetch(server.url("/a"), limit=1000)


async def test_content_without_end_is_cut_off_at_the_limit(server: HttpServer) -> None:
    server.routes["/a"] = endless()
    with pytest.raises(FetchError, match="longer than 100000 bytes") as caught:
        await fetch(server.url("/a"), limit=100_000)
    assert caught.value.status is None
    await hung_up(server)


async def test_the_limit_counts_what_compressed_content_becomes(server: HttpServer) -> None:
    server.routes["/a"] = zipped(b"x" * 1001)
    with pytest.raises(FetchError, match="longer than 1000 bytes"):
        await fetch(server.url("/a"), limit=1000)


async def test_compressed_content_is_never_unpacked_far_beyond_the_limit(server: HttpServer) -> None:
    server.routes |= {"/a": zipped(b"\0" * 16_000_000), "/b": b""}
    await fetch(server.url("/b"))  # so that what is imported does not count
    tracemalloc.start()
    try:
        with pytest.raises(FetchError, match="longer than 1000 bytes"):
            await fetch(server.url("/a"), limit=1000)
        assert tracemalloc.get_traced_memory()[1] < 6_000_000
    finally:
        tracemalloc.stop()


async def test_compressed_content_may_have_several_members(server: HttpServer) -> None:
    reply = zipped(b"first, ")
    assert isinstance(reply.body, bytes)
    server.routes["/a"] = Reply(headers=reply.headers, body=reply.body + gzip.compress(b"second"))
    assert (await fetch(server.url("/a"))).body == b"first, second"


@pytest.mark.parametrize(
    ("headers", "body", "reason"),
    [
        ({"Content-Encoding": "gzip"}, b"not gzip", "compressed content is damaged"),
        ({"Content-Encoding": "gzip"}, gzip.compress(b"text" * 100)[:-9], "ends too early"),
        ({"Content-Encoding": "br"}, b"...", "not asked for"),
        ({"Content-Encoding": "gzip, gzip"}, gzip.compress(gzip.compress(b"")), "not asked for"),
        ({"Content-Encoding": "deflate"}, zlib.compress(b"text"), "not asked for"),
        ({"Content-Length": "10", "Connection": "close"}, b"short", "exchange with its server failed"),
    ],
    ids=["damaged", "cut off", "brotli", "twice", "deflate", "short"],
)
async def test_damaged_content_is_an_error(
    server: HttpServer, headers: dict[str, str], body: bytes, reason: str
) -> None:
    server.routes["/a"] = Reply(headers=headers, body=body)
    with pytest.raises(FetchError, match=reason):
        await fetch(server.url("/a"))


@pytest.mark.parametrize("answer", [silent(), Reply(stalls=True), dribbling()], ids=["silent", "stalls", "dribbles"])
async def test_a_server_that_does_not_finish_is_left_in_time(server: HttpServer, answer: Reply) -> None:
    server.routes["/a"] = answer
    await fetch_of_nothing(server)
    with pytest.raises(FetchError, match=r"took longer than 0.5 s. Check that the server is well") as caught:
        await fetch(server.url("/a"), timeout=0.5)
    assert caught.value.status is None
    await hung_up(server)


async def test_time_spent_on_redirects_counts(server: HttpServer) -> None:
    server.routes |= {"/a": redirect("/b"), "/b": silent()}
    await fetch_of_nothing(server)
    with pytest.raises(FetchError, match="took longer"):
        await fetch(server.url("/a"), timeout=0.5)
    assert server.count("/b") == 1


async def test_cancelling_a_fetch_hangs_up(server: HttpServer) -> None:
    server.routes["/a"] = silent()
    async with anyio.create_task_group() as group:
        group.start_soon(fetch, server.url("/a"))
        assert await anyio.to_thread.run_sync(server.asked.wait, 30)
        group.cancel_scope.cancel()
    await hung_up(server)


async def test_a_server_that_is_not_there_is_an_error() -> None:
    with serving() as gone:
        url = gone.url("/a")
    with pytest.raises(FetchError, match="cannot be reached"):
        await fetch(url)


async def test_a_server_that_does_not_speak_http_is_an_error() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:

        async def babble(stream: anyio.abc.SocketStream) -> None:
            async with stream:
                await stream.receive()
                await stream.send(b"220 not a web server\r\n\r\n")

        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, babble)
            with pytest.raises(FetchError, match="exchange with its server failed"):
                await fetch(f"http://127.0.0.1:{port}/a")
            group.cancel_scope.cancel()


@pytest.mark.parametrize(
    "answer",
    [
        Reply(status=500),
        redirect(f"file:///path?{SECRET}"),
        redirect(f"http://me:{SECRET}@127.0.0.1:1/?key={SECRET}"),
        silent(),
        Reply(headers={"Content-Length": "10", "Connection": "close"}),
    ],
    ids=["500", "file", "credentials", "silent", "short"],
)
async def test_no_error_shows_a_secret(server: HttpServer, answer: Reply) -> None:
    server.routes["/a"] = answer
    url = server.url(f"/a?key={SECRET}#{SECRET}", userinfo=f"me:{SECRET}")
    with pytest.raises(FetchError) as caught:
        await fetch(url, timeout=0.3)
    assert SECRET not in shown(caught.value)


@pytest.mark.parametrize("before", ["http://me:", "http:me:", "", "http://[me:", "me:"])
@pytest.mark.parametrize("after", ["@host:port/", "@host"])
async def test_an_address_that_is_wrong_shows_no_secret_either(before: str, after: str) -> None:
    with pytest.raises(FetchError) as caught:
        await fetch(before + SECRET + after, timeout=0.3)
    assert SECRET not in shown(caught.value)


async def test_a_header_that_cannot_be_sent_is_an_error_that_does_not_show_it(server: HttpServer) -> None:
    with pytest.raises(FetchError) as caught:
        await fetch(server.url("/a"), headers={"X-Token": f"{SECRET}\r\nX-Other: 1"})
    assert SECRET not in shown(caught.value)


async def test_a_secret_in_an_address_is_not_written_into_any_log(
    server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.routes |= {"/a": redirect("/b"), "/b": b"found"}
    with caplog.at_level("DEBUG"):
        fetched = await fetch(server.url("/a", userinfo=f"me:{SECRET}") + f"?key={SECRET}")
    assert fetched.url == server.url("/b", userinfo=f"me:{SECRET}")
    assert SECRET not in caplog.text


async def test_a_secret_in_an_address_that_a_server_redirects_to_is_not_written_into_any_log(
    server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.routes |= {"/a": redirect(f"/b?key={SECRET}"), "/b": b"found"}
    with caplog.at_level("DEBUG"):
        assert (await fetch(server.url("/a"))).body == b"found"
    assert SECRET not in caplog.text


async def test_what_others_do_with_the_same_client_is_logged_as_before(
    server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    import httpx2

    server.routes |= {"/a": b"found"}
    await fetch(server.url("/a"))
    with caplog.at_level("INFO"):
        async with httpx2.AsyncClient() as client:
            await client.get(server.url("/a"))
    assert server.url("/a") in caplog.text


async def test_what_was_fetched_shows_no_secret_of_its_address(server: HttpServer) -> None:
    server.routes["/a"] = SECRET.encode()
    assert SECRET not in repr(await fetch(server.url(f"/a?key={SECRET}", userinfo=f"me:{SECRET}")))


def test_people_see_an_address_without_its_secrets() -> None:
    assert without_secrets(f"https://me:{SECRET}@host:8443/a/b?key={SECRET}#{SECRET}") == "https://host:8443/a/b"
    assert without_secrets("http://[::1]:80/a") == "http://[::1]:80/a"


async def test_an_address_steers_no_terminal() -> None:
    assert without_secrets("http://host/\x1b]0;evil\x07\u2028x") == r"http://host/\x1b]0;evil\x07\u2028x"
    with pytest.raises(FetchError) as caught:
        await fetch("http://ho\x1b[31mst/\x07")
    assert str(caught.value).isprintable()


def zipped(content: bytes) -> Reply:
    return Reply(headers={"Content-Encoding": "gzip"}, body=gzip.compress(content))


async def hung_up(server: HttpServer) -> None:
    assert await anyio.to_thread.run_sync(server.hung_up.wait, 30)


async def fetch_of_nothing(server: HttpServer) -> None:
    """Import the client before time counts."""
    server.routes["/nothing"] = b""
    await fetch(server.url("/nothing"))


def shown(error: FetchError) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + error.url


def certificate_for_this_machine(folder: Path) -> tuple[Path, Path]:
    """Return a certificate, signed by itself, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = f"{openssl} req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=here"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    return certificate, key
