"""A host keeps sessions in the store that the person chose, opens it when it is needed, and tells what is recorded."""

import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from opencode_core.errors import ConfigError, StorageClosedError, StorageUnavailableError, StorageUrlError
from opencode_core.host import Host
from opencode_core.model.event.base import Event, Recorded
from opencode_core.model.event.session import SessionCreated, SessionTitled
from opencode_core.ports.storage import Storage, StorageFactory
from plugin_sdk import hookimpl
from plugins_builtin import storage_memory
from plugins_builtin.storage_memory import MemoryStorage
from tests.host.making import opened, write


def created(session: str = "ses_1") -> SessionCreated:
    return SessionCreated(session=session, at=1, project="abc", directory="/x")


def titled(title: str) -> SessionTitled:
    return SessionTitled(session="ses_1", at=1, title=title)


@attrs.define(eq=False)
class Keeps:
    """A plugin that offers stores in memory, and remembers what it was asked for."""

    fails: int = 0
    urls: list[str] = attrs.field(factory=list)
    stores: list[MemoryStorage] = attrs.field(factory=list)

    @hookimpl
    def opencode_storage_backends(self) -> Mapping[str, StorageFactory]:
        return {"kept": self.open}

    async def open(self, url: str, *, create: bool = True, migrate: bool = True) -> Storage:
        self.urls.append(url)
        await anyio.lowlevel.checkpoint()
        if len(self.urls) <= self.fails:
            raise StorageUnavailableError("It cannot be reached.", "Try again.")
        self.stores.append(MemoryStorage())
        return self.stores[-1]


@attrs.define(eq=False)
class Hears:
    """A plugin that remembers what it is told; may wait or fail before."""

    wait: anyio.Event | None = None
    fails: bool = False
    heard: list[str] = attrs.field(factory=list)

    @hookimpl
    async def opencode_event(self, event: Event) -> None:
        if not isinstance(event, Recorded):
            return
        if self.wait is not None:
            await self.wait.wait()
        self.heard.append(f"{event.sequence} {type(event.event).__name__}")
        if self.fails:
            raise ValueError


async def is_closed(storage: Storage) -> bool:
    try:
        await storage.view(lambda rows: rows.tables())
    except StorageClosedError:
        return True
    return False


def test_a_host_that_stores_nothing_opens_no_store_and_loads_no_database(tmp_path: Path) -> None:
    code = (
        "import anyio, sys\nfrom opencode_core import Host\n"
        "async def main():\n    async with Host.open(config={}): pass\n"
        "anyio.run(main)\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "plugins_builtin.storage_sqlite" in loaded
    assert not {"dataset", "sqlalchemy", "sqlite3", "opencode_core.storage.log", "opencode_core.model.codec"} & loaded


async def test_sessions_are_kept_in_the_data_folder_until_the_next_host(tmp_path: Path) -> None:
    data = tmp_path / "my data%20 ?#"
    settings: Any = {"entry_points": True, "config": {}, "data_dir": data}
    async with opened(tmp_path / "x", **settings) as host:
        log = await host.log()
        await log.append(created())
        assert await host.log() is log
    assert (data / "opencode.db").is_file()
    async with opened(tmp_path / "x", **settings) as host:
        assert await (await host.log()).head("ses_1") == 0


async def test_everybody_who_needs_the_store_first_gets_the_same_one(tmp_path: Path) -> None:
    keeps, logs = Keeps(), list[Any]()
    async with opened(tmp_path, plugins={"keeps": keeps}, storage="kept:x") as host:
        assert keeps.urls == []

        async def use() -> None:
            logs.append(await host.log())

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(use)
    assert keeps.urls == ["kept:x"]
    assert len({id(log) for log in logs}) == 1
    assert await is_closed(keeps.stores[0])


async def test_a_store_that_could_not_be_opened_is_tried_again(tmp_path: Path) -> None:
    keeps = Keeps(fails=1)
    async with opened(tmp_path, plugins={"keeps": keeps}, storage="kept:x") as host:
        with pytest.raises(StorageUnavailableError):
            await host.log()
        await (await host.log()).append(created())


async def test_a_closed_host_has_no_log(tmp_path: Path) -> None:
    async with opened(tmp_path, plugins={"keeps": Keeps()}, storage="kept:x") as host:
        await host.log()
    with pytest.raises(StorageClosedError, match="The host was closed"):
        await host.log()


async def test_a_store_that_the_application_hands_over_is_made_ready_and_stays_open(tmp_path: Path) -> None:
    mine = await storage_memory.open_store("memory:")
    async with opened(tmp_path, storage=mine) as host:
        await (await host.log()).append(created())
        assert host.storage_url == ""
    assert await mine.view(lambda rows: rows.get("store", ("schema",))) == {"version": 1}
    assert await mine.view(lambda rows: rows.get("head", ("ses_1",))) == {"sequence": 0}
    await mine.aclose()


async def test_the_scheme_of_the_store_must_be_one_that_a_plugin_offers(tmp_path: Path) -> None:
    async with opened(tmp_path, plugins={"keeps": Keeps()}, storage="sqlite:///x") as host:
        with pytest.raises(StorageUrlError, match="'sqlite'") as caught:
            await host.log()
    assert "'kept:'" in caught.value.remedy


@pytest.mark.parametrize(
    ("argument", "environment", "config", "expected"),
    [
        ("kept:a", "kept:b", "kept:c", "kept:a"),
        (None, "kept:b", "kept:c", "kept:b"),
        (None, "", " kept:c ", "kept:c"),
        (None, None, None, "sqlite:///data/opencode.db"),
    ],
)
async def test_the_argument_counts_before_the_environment_before_the_configuration(
    tmp_path: Path, argument: str | None, environment: str | None, config: str | None, expected: str
) -> None:
    async with opened(
        tmp_path,
        storage=argument,
        environ={} if environment is None else {"OPENCODE_STORAGE": environment},
        config={} if config is None else {"storage": config},
        data_dir=Path("/data"),
    ) as host:
        assert host.storage_url == expected


@pytest.mark.parametrize("value", [7, "", ["sqlite:hunter2"], None, {"url": "hunter2"}])
async def test_a_store_that_is_configured_as_something_else_than_a_url_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ConfigError, match="'storage'") as caught:
        async with opened(tmp_path, config={"storage": value}):
            pass
    assert "hunter2" not in str(caught.value)


async def test_a_project_does_not_choose_where_sessions_are_kept(tmp_path: Path) -> None:
    write(tmp_path / "mine" / "opencode.json", json.dumps({"storage": "kept:mine"}))
    for name in ("x", "y"):
        write(tmp_path / name / "opencode.json", json.dumps({"storage": "postgresql://thief/x"}))
    async with opened(tmp_path / "x", config_dir=tmp_path / "mine") as host:
        assert host.storage_url == "kept:mine"
        (notice,) = host.plugins.notices
        assert str(tmp_path / "x" / "opencode.json") in notice.problem
        assert "a project does not choose" in notice.problem
        assert "thief" not in notice.problem
        async with host.open_location(tmp_path / "y"):
            assert len(host.plugins.notices) == 2


async def test_what_is_recorded_reaches_subscribers_by_its_own_type(tmp_path: Path) -> None:
    async with opened(tmp_path, plugins={"keeps": Keeps()}, storage="kept:x") as host:
        async with host.events.subscribe(SessionTitled) as events:
            await (await host.log()).append(created(), titled("a"))
            told = await anext(events)
        assert isinstance(told, Recorded)
        assert (told.sequence, told.event) == (1, titled("a"))


async def test_plugins_are_told_what_is_recorded_in_order_and_a_fault_of_one_is_nobody_elses(tmp_path: Path) -> None:
    first, second = Hears(fails=True), Hears()
    plugins = {"keeps": Keeps(), "a": first, "b": second}
    async with opened(tmp_path, plugins=plugins, storage="kept:x") as host:
        log = await host.log()
        await log.append(created())
        for number in range(20):
            await log.append(titled(str(number)))
    expected = ["0 SessionCreated", *(f"{number + 1} SessionTitled" for number in range(20))]
    assert first.heard == expected
    assert second.heard == expected
    assert host.plugins.get("a").diagnostics


async def test_a_slow_plugin_holds_up_nobody_who_appends(tmp_path: Path) -> None:
    go = anyio.Event()
    slow = Hears(wait=go)
    async with opened(tmp_path, plugins={"keeps": Keeps(), "slow": slow}, storage="kept:x") as host:
        log = await host.log()
        await log.append(created())
        for number in range(600):  # more than any subscriber may leave unread
            await log.append(titled(str(number)))
        assert slow.heard == []
        go.set()
    assert len(slow.heard) == 601


async def test_what_was_recorded_is_told_before_a_cancelled_host_is_gone(tmp_path: Path) -> None:
    hears = Hears()
    with anyio.CancelScope() as scope:
        async with opened(tmp_path, plugins={"keeps": Keeps(), "hears": hears}, storage="kept:x") as host:
            log = await host.log()
            await log.append(created(), titled("a"))
            scope.cancel()
            await anyio.sleep_forever()
    assert hears.heard == ["0 SessionCreated", "1 SessionTitled"]


async def test_a_plugin_that_never_returns_does_not_keep_a_host_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stuck = Hears(wait=anyio.Event())
    plugins = {"keeps": Keeps(), "stuck": stuck}
    with caplog.at_level(logging.WARNING, "opencode.storage"):
        async with opened(tmp_path, plugins=plugins, storage="kept:x", cleanup_deadline=0.05) as host:
            await (await host.log()).append(created(), *(titled(str(number)) for number in range(50)))
    assert "events were not told to plugins" in caplog.text
    assert stuck.heard == []


async def test_a_clean_up_can_still_append(tmp_path: Path) -> None:
    appended = list[Recorded]()
    async with opened(tmp_path, plugins={"keeps": Keeps()}, storage="kept:x") as host:
        log = await host.log()

        async def say_goodbye() -> None:
            appended.extend(await log.append(created()))

        host.attach("app").on_close(say_goodbye)
    assert [each.sequence for each in appended] == [0]


async def test_the_store_is_closed_when_the_host_fails(tmp_path: Path) -> None:
    keeps = Keeps()

    async def fail() -> None:
        async with opened(tmp_path, plugins={"keeps": keeps}, storage="kept:x") as host:
            await host.log()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await is_closed(keeps.stores[0])


async def test_ids_of_events_are_made_from_the_hosts_clock(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    from opencode_core.ids import milliseconds_of

    @attrs.define
    class Still:
        def now(self) -> datetime:
            return datetime(2030, 1, 1, tzinfo=UTC)

        def monotonic(self) -> float:
            return 0.0

    now = int(datetime(2030, 1, 1, tzinfo=UTC).timestamp() * 1000)
    async with opened(tmp_path, plugins={"keeps": Keeps()}, storage="kept:x", clock=Still()) as host:
        (recorded,) = await (await host.log()).append(created())
    assert milliseconds_of(recorded.id, now=now) == now


def test_a_host_says_who_opens_stores() -> None:
    async def main() -> list[str]:
        async with Host.open(config={}) as host:
            return sorted(host.storage_backends())

    assert anyio.run(main) == ["jsonfiles", "memory", "postgres", "postgresql", "sqlite"]
