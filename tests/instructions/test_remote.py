"""Instructions from addresses: told when they are there, kept when they are not, and never waited for without end."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import attrs
import pytest

from opencode_core.host import Host
from plugin_sdk import UNAVAILABLE, Boundary
from plugin_sdk.http import Fetched, fetch
from plugin_sdk.testing import StillClock
from plugins_builtin import instructions
from plugins_builtin.instructions import remote
from plugins_builtin.instructions.remote import Remotes
from plugins_builtin.instructions.shelf import Copy, Shelf
from tests.context.running import running
from tests.instructions.making import KEY, Person
from tests.support.http_server import HttpServer, Reply, Request, endless, redirect, serving, silent

pytestmark = pytest.mark.behaviour("BX-08")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, whoever answers is waited for."""
    be_patient(monkeypatch, 30.0)


def be_patient(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    for name in ("PATIENCE", "SHORT_PATIENCE"):
        monkeypatch.setattr(remote, name, seconds)


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with serving() as running_server:
        yield running_server


@attrs.frozen(eq=False)
class Told:
    host: Host
    clock: StillClock

    @property
    def warnings(self) -> list[str]:
        return [each.problem for each in self.host.plugins.get("instructions").diagnostics]

    async def texts(self) -> dict[str, str] | None:
        source = {each.key: each for each in (await self.host.context()).sources}[KEY]
        value: Any = await source.load(Boundary(location=self.host.location.location))
        if value is UNAVAILABLE:
            return None
        return {each.origin: each.text for each in getattr(value, "parts", ())}


@asynccontextmanager
async def telling(person: Person, *urls: str, clock: StillClock | None = None, **options: Any) -> AsyncIterator[Told]:
    """Open a host whose clock stands still, with addresses configured, and what was kept by the one before."""
    clock = clock or StillClock()
    async with Host.open(
        person.project,
        plugins={"instructions": instructions},
        config={"instructions": list(urls), "plugins": {"instructions": options}, "plugin_strict": True},
        entry_points=False,
        data_dir=person.home / "data",
        clock=clock,
    ) as host:
        yield Told(host, clock)


def versioned(text: str, etag: str) -> Any:
    def answer(request: Request) -> Reply:
        is_known = request.headers.get("if-none-match") == etag
        return Reply(status=304 if is_known else 200, headers={"ETag": etag}, body=b"" if is_known else text.encode())

    return answer


def copies(person: Person) -> list[Path]:
    return list((person.home / "data/instructions").iterdir())


async def test_what_addresses_hold_comes_last_in_their_order(person: Person, server: HttpServer) -> None:
    server.routes |= {"/a": b"first", "/b": b"\xef\xbb\xbfsecond"}
    root = person.write("project/AGENTS.md", "root")
    urls = [server.url("/b"), server.url("/a"), server.url("/b")]
    async with telling(person, *urls) as told:
        texts = await told.texts()
        assert texts == {str(root): "root", server.url("/b"): "second", server.url("/a"): "first"}
        assert list(texts) == [str(root), server.url("/b"), server.url("/a")]
        assert told.warnings == []


async def test_a_fresh_copy_is_used_without_asking(person: Person, server: HttpServer) -> None:
    server.routes["/a"] = b"first"
    async with telling(person, server.url("/a")) as told:
        for _ in range(3):
            assert await told.texts() == {server.url("/a"): "first"}
            told.clock.move(seconds=90)
    assert server.count("/a") == 1
    async with telling(person, server.url("/a"), clock=told.clock) as again:
        assert await again.texts() == {server.url("/a"): "first"}
    assert server.count("/a") == 1


async def test_an_old_copy_is_renewed_and_an_unchanged_one_is_only_confirmed(
    person: Person, server: HttpServer
) -> None:
    server.routes["/a"] = versioned("first", '"1"')
    async with telling(person, server.url("/a")) as told:
        await told.texts()
        told.clock.move(seconds=301)
        assert await told.texts() == {server.url("/a"): "first"}
        assert await told.texts() == {server.url("/a"): "first"}
        assert [each.headers.get("if-none-match") for each in server.requests] == [None, '"1"']
        server.routes["/a"] = versioned("second", '"2"')
        told.clock.move(seconds=301)
        assert await told.texts() == {server.url("/a"): "second"}


async def test_the_age_of_copies_is_an_option(person: Person, server: HttpServer) -> None:
    server.routes["/a"] = b"first"
    async with telling(person, server.url("/a"), refresh_seconds=0) as told:
        for _ in range(3):
            await told.texts()
    assert server.count("/a") == 3


async def test_a_clock_that_was_set_back_makes_no_copy_last_longer(person: Person, server: HttpServer) -> None:
    server.routes["/a"] = b"first"
    async with telling(person, server.url("/a")) as told:
        await told.texts()
        server.routes["/a"] = b"second"
        told.clock.move(days=-1)
        assert await told.texts() == {server.url("/a"): "second"}


@pytest.mark.parametrize(
    "answer",
    [Reply(status=500), silent(), endless(), redirect("file:///etc/passwd"), b"\xff\xfe", Reply(status=304)],
    ids=["500", "silent", "endless", "to a file", "not UTF-8", "304"],
)
async def test_an_address_that_fails_is_left_out_until_it_works_and_then_told(
    person: Person, server: HttpServer, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.routes |= {"/a": answer, "/good": b"good"}
    root = person.write("project/AGENTS.md", "root")
    async with telling(person, server.url("/good")) as told:
        await told.texts()
    async with telling(person, server.url("/a"), server.url("/good")) as told:
        be_patient(monkeypatch, 0.3)
        assert await told.texts() == {str(root): "root", server.url("/good"): "good"}
        assert len(told.warnings) == 1
        assert told.warnings[0].startswith(f"Instructions are left out: '{server.url('/a')}' could not be fetched")
        asked = server.count("/a")
        await told.texts()
        assert server.count("/a") == asked  # it is left alone for a while
        be_patient(monkeypatch, 30.0)
        server.routes["/a"] = b"at last"
        told.clock.move(seconds=6)
        assert await told.texts() == {str(root): "root", server.url("/a"): "at last", server.url("/good"): "good"}
        assert len(told.warnings) == 1


async def test_content_without_end_is_cut_off_at_the_limit(person: Person, server: HttpServer) -> None:
    server.routes["/a"] = endless()
    async with telling(person, server.url("/a")) as told:
        assert await told.texts() == {}
        assert "longer than 262144 bytes" in told.warnings[0]
    assert await anyio.to_thread.run_sync(server.hung_up.wait, 30)


async def test_an_address_that_fails_again_is_warned_about_once_and_asked_less_and_less(
    person: Person, server: HttpServer
) -> None:
    server.routes["/a"] = lambda _request: Reply(status=500 + len(server.requests) % 2)
    async with telling(person, server.url("/a")) as told:
        asked: list[int] = []
        for second in range(200):
            before = server.count("/a")
            await told.texts()
            asked += [second] if server.count("/a") > before else []
            told.clock.move(seconds=1)
        assert asked == [0, 5, 15, 35, 75, 155]
        assert len(told.warnings) == 1


@pytest.mark.parametrize("answer", [Reply(status=503), silent(), endless()], ids=["503", "silent", "endless"])
async def test_an_old_copy_is_used_while_its_address_fails(
    person: Person, server: HttpServer, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.routes["/a"] = b"first"
    async with telling(person, server.url("/a")) as told:
        await told.texts()
    server.routes["/a"] = answer
    told.clock.move(days=30)
    async with telling(person, server.url("/a"), clock=told.clock) as later:
        be_patient(monkeypatch, 0.3)
        assert await later.texts() == {server.url("/a"): "first"}
        assert len(later.warnings) == 1
        assert "only as new as the last copy" in later.warnings[0]
        be_patient(monkeypatch, 30.0)
        server.routes["/a"] = b"second"
        later.clock.move(seconds=6)
        assert await later.texts() == {server.url("/a"): "second"}


@pytest.mark.parametrize("status", [404, 410])
async def test_what_is_gone_is_taken_back_and_its_copy_forgotten(
    person: Person, server: HttpServer, status: int
) -> None:
    server.routes["/a"] = b"first"
    async with telling(person, server.url("/a")) as told:
        await told.texts()
        assert len(copies(person)) == 1
        server.routes["/a"] = Reply(status=status)
        told.clock.move(seconds=301)
        assert await told.texts() == {}
        assert copies(person) == []
        assert f"status {status}" in told.warnings[0]
        server.routes["/a"] = b"back"
        assert await told.texts() == {}
        told.clock.move(seconds=301)
        assert await told.texts() == {server.url("/a"): "back"}


async def test_a_model_is_told_when_an_address_works_for_the_first_time(person: Person, server: HttpServer) -> None:
    server.routes["/a"] = Reply(status=500)
    clock = StillClock()
    config = {"instructions": [server.url("/a")]}
    data = person.home / "data"
    async with running(
        person.project, {"instructions": instructions}, config=config, clock=clock, data_dir=data
    ) as session:
        assert (await session.turn("begin")).system == ""
        server.routes["/a"] = b"be brief"
        clock.move(seconds=10)
        told = (await session.turn("go on")).said[-1]
        assert told[0] == "system"
        assert told[1].endswith(f"Instructions from: {server.url('/a')}\nbe brief")
        server.routes["/a"] = Reply(status=410)
        clock.move(seconds=301)
        assert "no longer apply" in (await session.turn("go on")).said[-1][1]


async def test_the_size_of_what_an_address_holds_is_limited_by_an_option(person: Person, server: HttpServer) -> None:
    server.routes["/a"] = b"x" * 101
    async with telling(person, server.url("/a"), remote_limit=100) as told:
        assert await told.texts() == {}
        assert "longer than 100 bytes" in told.warnings[0]
    async with telling(person, server.url("/a"), remote_limit=101) as told:
        assert await told.texts() == {server.url("/a"): "x" * 101}
    async with telling(person, server.url("/a"), remote_limit=100) as told:
        assert await told.texts() == {}  # nor does a longer copy count


async def test_secrets_of_an_address_are_neither_told_nor_kept(person: Person, server: HttpServer) -> None:
    server.routes |= {"/a": b"first", "/b": Reply(status=500)}
    urls = [server.url(f"{path}?key=s3cret", userinfo="me:s3cret") for path in ("/a", "/b")]
    async with telling(person, *urls) as told:
        assert await told.texts() == {server.url("/a"): "first"}
        assert "authorization" in server.requests[0].headers
        assert "s3cret" not in str(told.warnings)
        assert len(told.warnings) == 1
    kept = copies(person)
    assert "s3cret" not in "".join(path.read_text() + path.name for path in kept)


async def test_copies_are_for_the_person_alone(person: Person, server: HttpServer) -> None:
    server.routes["/a"] = b"first"
    before = os.umask(0)
    try:
        async with telling(person, server.url("/a")) as told:
            await told.texts()
    finally:
        os.umask(before)
    (kept,) = copies(person)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def with_field(name: str, value: Any) -> Any:
    return lambda text: json.dumps({**json.loads(text), name: value})


DAMAGES: dict[str, Any] = {
    "empty": lambda _text: "",
    "half": lambda text: text[: len(text) // 2],
    "another text": with_field("text", "worst"),
    "no text": with_field("text", None),
    "another layout": with_field("layout", 2),
    "another address": with_field("address", "other"),
    "no time": with_field("fetched", "yesterday"),
    "no time zone": with_field("fetched", "2026-03-02T12:00:00"),
    "no version": with_field("etag", 1),
    "a list": lambda _text: "[]",
    "null": lambda _text: "null",
    "deep": lambda _text: "[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_a_damaged_copy_counts_as_none_and_is_replaced(person: Person, server: HttpServer, damage: Any) -> None:
    server.routes["/a"] = b"first"
    async with telling(person, server.url("/a")) as told:
        await told.texts()
    (kept,) = copies(person)
    kept.write_text(damage(kept.read_text()))
    async with telling(person, server.url("/a")) as told:
        assert await told.texts() == {server.url("/a"): "first"}
        assert told.warnings == []
    assert server.count("/a") == 2
    assert json.loads(kept.read_text())["text"] == "first"


async def test_a_copy_that_another_process_renewed_is_used_without_asking(person: Person, server: HttpServer) -> None:
    server.routes["/a"] = b"first"
    async with telling(person, server.url("/a")) as one:
        await one.texts()
        one.clock.move(seconds=400)
        server.routes["/a"] = b"second"
        async with telling(person, server.url("/a"), clock=one.clock) as other:
            await other.texts()
        assert server.count("/a") == 2
        assert await one.texts() == {server.url("/a"): "second"}
    assert server.count("/a") == 2


async def test_a_folder_that_cannot_be_written_costs_a_warning_and_no_instructions(
    person: Person, server: HttpServer
) -> None:
    server.routes["/a"] = b"first"
    person.write("data/instructions", "a file is in the way")
    async with telling(person, server.url("/a")) as told:
        for _ in range(2):
            assert await told.texts() == {server.url("/a"): "first"}
        assert len(told.warnings) == 1
        assert "cannot be kept" in told.warnings[0]
    assert server.count("/a") == 1


async def test_two_sessions_at_one_time_ask_once(person: Person, server: HttpServer) -> None:
    server.routes["/a"] = b"first"
    async with telling(person, server.url("/a")) as told, anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(told.texts)
    assert server.count("/a") == 1


async def test_nothing_is_asked_while_files_are_unavailable(person: Person, server: HttpServer) -> None:
    server.routes["/a"] = b"first"
    async with telling(person, server.url("/a")) as told:
        person.project.rename(person.home / "moved")
        assert await told.texts() is None
    assert server.requests == []


async def test_a_boundary_waits_shortly_while_there_is_a_copy_and_longer_each_time_it_was_not_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PATIENCE", 4.0)
    monkeypatch.setattr(remote, "SHORT_PATIENCE", 0.5)
    clock, shelf = StillClock(), Shelf(folder=tmp_path, limit=100)
    patience: list[float] = []

    async def overrunning(url: str, **options: Any) -> Fetched:
        patience.append(options["timeout"])
        return await fetch(url, timeout=0)

    def remotes(url: str) -> Remotes:
        return Remotes(
            urls=[url], shelf=shelf, refresh_seconds=300, now=clock.now, warn=lambda _problem: None, fetch=overrunning
        )

    await remotes("http://new/").current()
    assert patience == [4.0]
    shelf.put("http://old/", Copy(text="old", fetched=clock.now()))
    clock.move(days=1)
    patience.clear()
    old = remotes("http://old/")
    for _ in range(6):
        assert [each.text for each in await old.current()] == ["old"]
        clock.move(seconds=301)
    assert patience == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


async def test_a_cancelled_boundary_hangs_up(person: Person, server: HttpServer) -> None:
    server.routes["/a"] = silent()
    async with telling(person, server.url("/a")) as told, anyio.create_task_group() as group:
        group.start_soon(told.texts)
        assert await anyio.to_thread.run_sync(server.asked.wait, 30)
        group.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(server.hung_up.wait, 30)


@pytest.mark.parametrize("etag", ['"caf\xe9"', f'"{"x" * 1_023}"'], ids=["not ASCII", "too long"])
async def test_a_name_of_a_version_that_could_not_be_sent_back_is_not_kept(
    person: Person, server: HttpServer, etag: str
) -> None:
    server.routes["/a"] = Reply(headers={"ETag": etag}, body=b"first")
    async with telling(person, server.url("/a")) as told:
        await told.texts()
        server.routes["/a"] = b"second"
        told.clock.move(seconds=600)
        assert await told.texts() == {server.url("/a"): "second"}
        assert ["if-none-match" in each.headers for each in server.requests] == [False, False]


def test_a_copy_with_such_a_name_from_before_is_of_use_without_it(tmp_path: Path) -> None:
    shelf = Shelf(folder=tmp_path, limit=100)
    shelf.put("http://host/", Copy(text="text", etag='"1"', fetched=StillClock().now()))
    stored = shelf.path("http://host/")
    stored.write_text(json.dumps({**json.loads(stored.read_text()), "etag": "\xe9"}))
    copy = shelf.get("http://host/")
    assert copy is not None
    assert (copy.text, copy.etag) == ("text", "")


async def test_a_server_that_stumbles_at_the_name_of_a_version_is_asked_without_it(
    person: Person, server: HttpServer
) -> None:
    server.routes["/a"] = Reply(headers={"ETag": '"1"'}, body=b"first")
    async with telling(person, server.url("/a")) as told:
        await told.texts()
        server.routes["/a"] = lambda request: Reply(
            status=500 if "if-none-match" in request.headers else 200, headers={"ETag": '"2"'}, body=b"second"
        )
        for expected in ("first", "second"):
            told.clock.move(seconds=600)
            assert await told.texts() == {server.url("/a"): expected}
        server.routes["/a"] = Reply(status=500)
        for _ in range(3):
            told.clock.move(seconds=600)
            await told.texts()
    named = [each.headers.get("if-none-match") for each in server.requests]
    assert named == [None, '"1"', None, '"2"', None, '"2"']
