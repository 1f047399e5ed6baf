"""A store is opened by its URL, through whoever offers the scheme."""

from pathlib import Path
from typing import Any

import pytest

from opencode_core.errors import StorageClosedError, StorageError, StorageUrlError, StorageVersionError
from opencode_core.ports.storage import Storage
from opencode_core.storage.opening import open_storage
from opencode_core.storage.urls import shown
from plugins_builtin.storage_memory import MemoryStorage
from tests.storage.filling import BACKENDS, everything, put, url_of


@pytest.mark.parametrize("kind", BACKENDS)
async def test_a_store_that_is_opened_says_which_version_it_has(kind: str, tmp_path: Path) -> None:
    storage = await open_storage(url_of(kind, tmp_path), BACKENDS)
    assert await everything(storage) == [("store", ("schema",), '{"version": 1}')]
    await storage.aclose()


@pytest.mark.parametrize("kind", ["sqlite", "jsonfiles"])
async def test_a_store_is_opened_again_without_being_changed(kind: str, tmp_path: Path) -> None:
    storage = await open_storage(url_of(kind, tmp_path), BACKENDS)
    found = await everything(storage)
    await storage.aclose()
    again = await open_storage(url_of(kind, tmp_path), BACKENDS, create=False, migrate=False)
    assert await everything(again) == found
    await again.aclose()


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("/home/me/x.db", "'sqlite:///home/me/x.db' or 'jsonfiles:///home/me/x.db'"),
        ("x.db", "'sqlite:x.db' or 'jsonfiles:x.db'"),
        ("C:\\x.db", "'sqlite:C:\\x.db'"),
        ("./a:b/x.db", "'sqlite:./a:b/x.db'"),
    ],
)
async def test_a_path_is_answered_with_the_url_that_was_meant(path: str, remedy: str) -> None:
    with pytest.raises(StorageUrlError, match="is a path, not a storage URL") as caught:
        await open_storage(path, BACKENDS)
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("url", ["", "  "])
async def test_an_empty_url_is_refused(url: str) -> None:
    with pytest.raises(StorageUrlError, match="empty"):
        await open_storage(url, BACKENDS)


async def test_a_scheme_that_nobody_offers_is_answered_with_those_that_are() -> None:
    with pytest.raises(StorageUrlError) as caught:
        await open_storage("redis://me:hunter2@there/x?token=hunter2", BACKENDS)
    assert caught.value.problem == "No plugin offers the storage scheme 'redis'."
    assert "'jsonfiles:', 'memory:', 'sqlite:'" in caught.value.remedy
    assert "hunter2" not in str(caught.value)


async def test_that_no_plugin_offers_any_store_is_said() -> None:
    with pytest.raises(StorageUrlError, match="No storage plugin is loaded"):
        await open_storage("sqlite:x", {})


async def test_what_a_backend_is_asked_is_what_was_asked_for() -> None:
    asked: list[Any] = []

    async def factory(url: str, *, create: bool = True, migrate: bool = True) -> Storage:
        asked.append((url, create, migrate))
        return MemoryStorage()

    await open_storage("mine:x?y=1", {"mine": factory}, create=False, migrate=False)
    assert asked == [("mine:x?y=1", False, False)]


async def test_a_bug_in_a_backend_is_named_without_what_it_says() -> None:
    async def failing(url: str, *, create: bool = True, migrate: bool = True) -> Storage:
        raise ZeroDivisionError(f"while opening {url}")

    async def empty(url: str, *, create: bool = True, migrate: bool = True) -> Any:
        return None

    async def unaware(url: str) -> Any:
        return MemoryStorage()

    backends: Any = {"failing": failing, "empty": empty, "unaware": unaware}
    for scheme, what in (("failing", "ZeroDivisionError"), ("empty", "NoneType"), ("unaware", "TypeError")):
        with pytest.raises(StorageError, match=what) as raised:
            await open_storage(f"{scheme}://me:s3cret@host/x", backends)
        assert f"'{scheme}:'" in raised.value.problem
        assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("url", ["postgresql//u:s3cret@h/db", "u:s3cret@127.0.0.1", "//u:s3cret@h/db", "a@b:s3cret@h"])
async def test_a_password_in_a_url_without_a_scheme_is_not_shown(url: str) -> None:
    with pytest.raises(StorageUrlError) as raised:
        await open_storage(url, {})
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u@h/db?password=s3cret#s3cret",
        "postgresql://u@h/db?pass%77ord=s3cret",
        "postgresql://u:a@b?s3cret@h/db",
        "postgresql://u:s3cret@h/db?sslmode=off&sslpassword=s3cret",
        "mine:x?token=s3cret",
    ],
)
def test_secrets_are_hidden_wherever_they_stand(url: str) -> None:
    assert "s3cret" not in shown(url)
    assert "***" in shown(url)


async def test_a_store_whose_content_is_refused_is_closed_again() -> None:
    opened = MemoryStorage()
    await put(opened, {("store", ("schema",)): {"version": 99}})

    async def factory(url: str, *, create: bool = True, migrate: bool = True) -> Storage:
        return opened

    with pytest.raises(StorageVersionError):
        await open_storage("mine:x", {"mine": factory})
    with pytest.raises(StorageClosedError):
        await opened.view(lambda rows: rows.tables())


async def test_sessions_that_cannot_be_listed_are_logged_without_their_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    opened = MemoryStorage()
    await put(opened, {("session", ("abc", "ses_1")): {"id": "ses_1", "title": "hunter2"}})

    async def factory(url: str, *, create: bool = True, migrate: bool = True) -> Storage:
        return opened

    await open_storage("mine:x", {"mine": factory})
    assert "'ses_1'" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://me:hunter2@there/x", "postgresql://me:***@there/x"),
        ("postgresql://me@there/x?password=hunter2&a=b", "postgresql://me@there/x?password=***&a=b"),
        ("sqlite:///home/me@work/x", "sqlite:///home/me@work/x"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, expected: str) -> None:
    assert shown(url) == expected


async def test_every_failure_to_open_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "store-sqlite").write_text("not a database")
    with pytest.raises(StorageError):
        await open_storage(url_of("sqlite", tmp_path), BACKENDS)
    assert (tmp_path / "store-sqlite").read_text() == "not a database"
