"""The tools for authors of storage backends keep the port's laws by themselves."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plugin_sdk.storage import (
    DEEPEST,
    JSON,
    EventLoop,
    InvalidDocumentError,
    InvalidKeyError,
    Key,
    Outcome,
    StorageClosedError,
    StorageDamagedError,
    StorageUrlError,
    Wakes,
    check_key,
    check_table,
    decode_document,
    decode_documents,
    decode_key,
    encode_document,
    encode_key,
    key_range,
    path_of,
    shown,
    switches_of,
)
from plugin_sdk.testing.storage.keys import KEYS, in_order

texts = st.text(max_size=20)
numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)
keys = st.lists(texts | numbers, min_size=1, max_size=4).map(tuple)
any_text = st.text(st.characters(exclude_categories=()), max_size=20)
documents = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner | st.none(), max_size=4) | st.dictionaries(any_text, inner | st.none(), max_size=4),
    max_leaves=12,
)


# Keys


@given(keys, keys)
def test_encoded_keys_sort_as_the_keys_do(one: Key, other: Key) -> None:
    assert (encode_key(one) < encode_key(other)) == (in_order(one) < in_order(other))
    assert (encode_key(one) == encode_key(other)) == (one == other)


def test_the_keys_of_the_contract_sort_as_encoded_too() -> None:
    assert sorted(KEYS, key=encode_key) == sorted(KEYS, key=in_order)


@given(keys)
def test_an_encoded_key_is_decoded_with_the_types_of_its_parts(key: Key) -> None:
    decoded = decode_key(encode_key(key))
    assert decoded == key
    assert [type(part) for part in decoded] == [type(part) for part in key]


@given(keys, st.lists(texts | numbers, max_size=3).map(tuple))
def test_a_key_lies_in_the_range_of_exactly_the_prefixes_it_begins_with(key: Key, prefix: Key) -> None:
    low, high = key_range(prefix)
    assert (low <= encode_key(key) < high) == (key[: len(prefix)] == prefix)
    for length in range(len(key) + 1):
        low, high = key_range(key[:length])
        assert low <= encode_key(key) < high


@pytest.mark.parametrize("part", [None, True, 1.0, b"a", ("a",), 2**63, -(2**63) - 1, "\ud800", "x" * 1_001])
def test_what_cannot_be_part_of_a_key_is_refused(part: Any) -> None:
    for refuse in (encode_key, check_key, key_range):
        with pytest.raises(InvalidKeyError):
            refuse(("a", part))


def test_an_empty_key_is_refused_and_an_empty_prefix_is_not() -> None:
    with pytest.raises(InvalidKeyError, match="empty"):
        encode_key(())
    assert key_range(()) == (b"", b"\xff")


@pytest.mark.parametrize("key", [["a"], "a", 1])
def test_a_key_is_a_tuple(key: Any) -> None:
    with pytest.raises(InvalidKeyError):
        encode_key(key)


@given(st.binary(max_size=12))
def test_bytes_that_are_no_key_are_refused_or_decoded_but_never_anything_else(encoded: bytes) -> None:
    try:
        decoded = decode_key(encoded)
    except ValueError:
        return
    assert all(type(part) in (int, str) for part in decoded)


@pytest.mark.parametrize("table", ["", "A", "1", "a-b", "a\n", "é", "x" * 64, None, 5, b"a"])
def test_a_name_that_is_none_of_a_table_is_refused(table: Any) -> None:
    with pytest.raises(InvalidKeyError, match="not the name of a table"):
        check_table(table)


@pytest.mark.parametrize("table", ["a", "a_1", "x" * 63])
def test_a_lawful_name_of_a_table_is_returned(table: str) -> None:
    assert check_table(table) == table


# Documents


@given(documents)
@example({"\ud800": "\udfff", "a": "\x00"})
@example({"b": 1, "a": {"d": 1, "c": 2}})
def test_a_document_is_decoded_as_it_was(document: JSON) -> None:
    text = encode_document(document)
    assert "\x00" not in text
    assert "\n" not in text
    text.encode()
    assert json.dumps(decode_document(text)) == json.dumps(document)
    assert json.dumps(decode_documents([text, text])) == json.dumps([document, document])


def test_mappings_and_tuples_become_plain() -> None:
    proxy = MappingProxyType({"b": (1, MappingProxyType({"\ud800": ()})), "a": range(2)})
    assert decode_document(encode_document(proxy)) == {"b": [1, {"\ud800": []}], "a": [0, 1]}


NOT_JSON: dict[str, Any] = {
    "null": None,
    "not a number": float("nan"),
    "infinite": [float("inf")],
    "bytes": b"a",
    "a set": {1, 2},
    "an object": {"a": [object()]},
    "a number of 5,000 digits": 10**5_000,
    "a number as name": {1: 2},
    "null as name": {"a": {None: 1}},
    "true as name": [{True: 1}],
    "a fraction as name": ({1.5: 1},),
    "a number as name in a mapping": {"a": MappingProxyType({1: 1})},
    "a tuple as name": {("a",): 1},
}


@pytest.mark.parametrize("name", NOT_JSON)
def test_what_is_not_json_is_refused(name: str) -> None:
    with pytest.raises(InvalidDocumentError):
        encode_document(NOT_JSON[name])


def test_a_document_in_a_circle_or_without_an_end_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for document in (circle, {"a": circle}, deep):
        with pytest.raises(InvalidDocumentError):
            encode_document(document)


@pytest.mark.parametrize("text", ["", "{", "secret", '{"a": secret}', "1 2", "1,2", "[" * 100_000])
def test_a_text_that_is_not_json_is_damage_and_is_not_told(text: str) -> None:
    for decode in (decode_document, lambda text: decode_documents([text])):
        with pytest.raises(StorageDamagedError) as caught:
            decode(text)
        assert "secret" not in str(caught.value)


# URLs


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///var/a.db", "/var/a.db"),
        ("sqlite:////var/a.db", "/var/a.db"),
        ("sqlite:a.db", "a.db"),
        ("sqlite:folder/a%20b%3F.db?x=1", "folder/a b?.db"),
        ("sqlite:///var/a@b:c.db", "/var/a@b:c.db"),
    ],
)
def test_a_url_names_a_path(url: str, path: str) -> None:
    assert path_of(url) == Path(path)


def test_a_tilde_is_the_persons_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert path_of("sqlite:~/a.db") == path_of("sqlite:///~/a.db") == tmp_path / "a.db"


@pytest.mark.parametrize("url", ["sqlite:", "sqlite://", "sqlite:///", "sqlite:?x=1", "sqlite:a%00b", "sqlite"])
def test_a_url_without_a_path_is_refused(url: str) -> None:
    with pytest.raises(StorageUrlError, match="names no path"):
        path_of(url)


def test_a_url_with_a_host_is_refused_without_telling_its_password() -> None:
    with pytest.raises(StorageUrlError, match="host") as caught:
        path_of("sqlite://me:hunter2@host/a.db")
    assert "hunter2" not in str(caught.value)


def test_switches_come_over_their_defaults() -> None:
    assert switches_of("s:a?b=2&c=", known={"b": "1", "c": "1", "d": "1"}) == {"b": "2", "c": "", "d": "1"}


@pytest.mark.parametrize("url", ["s:a?z=1", "s:a?b=1&b=2", "s:a?password=hunter2"])
def test_a_switch_that_is_unknown_or_comes_twice_is_refused(url: str) -> None:
    with pytest.raises(StorageUrlError) as caught:
        switches_of(url, known={"b": "1"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@host/db",
        "postgresql://me:hunter2@host:5432/db?sslmode=require",
        "postgresql://me:hun@hunter2@host/db",
        "postgresql://me:hun/hunter2@host/db",
        "postgresql://me:hun?hunter2@host/db",
        "postgresql://me:hun#hunter2@host/db",
        "postgresql://me:hunter2@",
        "postgresql://host/db?password=hunter2",
        "postgresql://host/db?user=me&sslpassword=hunter2&x=1",
        "postgresql:///db?ACCESS_TOKEN=hunter2",
        "mine:place?api_key=hunter2",
    ],
)
def test_a_secret_is_never_shown(url: str) -> None:
    assert "hunter2" not in shown(url)
    assert shown(url).startswith(url.partition(":")[0])


@pytest.mark.parametrize("url", ["memory:", "sqlite:///home/a@b:c/x.db", "postgresql://me@host:5432/db?x=1"])
def test_a_url_without_a_secret_is_shown_as_it_is(url: str) -> None:
    assert shown(url) == url


# Outcomes of other threads


class Job:
    """A job whose thread begins and finishes when the test says so."""

    def __init__(self) -> None:
        self.outcome: Outcome[str] = Outcome()
        self.loop = EventLoop()
        self.finish = threading.Event()
        self.began = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.error: Exception | None = None

    def _run(self) -> None:
        assert self.outcome.begin()
        self.began.set()
        self.finish.wait(30)
        if self.error is None:
            self.outcome.succeed("done")
        else:
            self.outcome.fail(self.error)
        self.loop.deliver([self.outcome])


@contextmanager
def running() -> Iterator[Job]:
    job = Job()
    job.thread.start()
    job.began.wait(30)
    try:
        yield job
    finally:
        job.finish.set()
        job.thread.join(30)


def native(backend: str) -> None:
    if backend != "asyncio":
        pytest.skip("Only asyncio can cancel a task from outside.")


async def test_a_result_is_returned_and_an_error_is_raised() -> None:
    with running() as job:
        job.finish.set()
        assert await job.outcome.wait() == "done"
    with running() as job:
        job.error = KeyError("no")
        job.finish.set()
        with pytest.raises(KeyError) as caught:
            await job.outcome.wait()
        assert caught.value is job.error


async def test_a_cancelled_wait_withdraws_a_job_that_nobody_began() -> None:
    outcome: Outcome[str] = Outcome()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await outcome.wait()
    assert scope.cancelled_caught
    assert not outcome.begin()


async def test_a_cancelled_wait_returns_the_result_of_a_job_that_was_begun() -> None:
    results: list[str] = []
    with running() as job, anyio.CancelScope() as scope:
        scope.cancel()
        EventLoop().soon(job.finish.set)
        results.append(await job.outcome.wait())
        await anyio.lowlevel.checkpoint()
        results.append("went on")
    assert results == ["done"]
    assert scope.cancelled_caught


async def test_a_cancelled_wait_raises_the_error_of_a_job_that_was_begun() -> None:
    with running() as job, anyio.CancelScope() as scope:
        job.error = KeyError("no")
        scope.cancel()
        EventLoop().soon(job.finish.set)
        with pytest.raises(KeyError):
            await job.outcome.wait()
    assert scope.cancel_called


@pytest.mark.parametrize("error", [None, KeyError("no")], ids=["result", "error"])
async def test_a_task_that_was_cancelled_twice_gets_the_outcome_and_then_the_cancellation(
    anyio_backend_name: str, error: Exception | None
) -> None:
    native(anyio_backend_name)
    seen: list[object] = []

    async def wait(job: Job) -> None:
        try:
            seen.append(await job.outcome.wait())
        except KeyError as caught:
            seen.append(caught)
        await asyncio.sleep(0)
        seen.append("went on")

    with running() as job:
        job.error = error
        task = asyncio.create_task(wait(job))
        for _ in range(2):
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        job.finish.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert seen == [error or "done"]


async def test_a_task_that_was_cancelled_withdraws_a_job_that_nobody_began(anyio_backend_name: str) -> None:
    native(anyio_backend_name)
    outcome: Outcome[str] = Outcome()
    task = asyncio.create_task(outcome.wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not outcome.begin()


@pytest.mark.parametrize("error", [None, KeyError("no")], ids=["result", "error"])
async def test_a_timeout_of_asyncio_that_ends_with_the_outcome_cancels_nothing_behind_it(
    anyio_backend_name: str, error: Exception | None
) -> None:
    native(anyio_backend_name)
    seen: list[object] = []
    with running() as job:
        job.error = error
        try:
            async with asyncio.timeout(0):
                asyncio.get_running_loop().call_later(0.01, job.finish.set)
                seen.append(await job.outcome.wait())
        except KeyError as caught:
            seen.append(caught)
    await asyncio.sleep(0)
    await anyio.lowlevel.checkpoint()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert seen == [error or "done"]


async def test_a_timeout_of_asyncio_that_waits_on_is_a_timeout(anyio_backend_name: str) -> None:
    native(anyio_backend_name)

    async def wait_on(job: Job) -> None:
        async with asyncio.timeout(0):
            asyncio.get_running_loop().call_later(0.01, job.finish.set)
            assert await job.outcome.wait() == "done"
            await anyio.sleep_forever()

    with running() as job, pytest.raises(TimeoutError):
        await wait_on(job)


async def test_many_may_wait_for_one_outcome_and_the_cancellation_of_one_is_its_own() -> None:
    seen: list[str] = []

    async def wait(job: Job) -> None:
        seen.append(await job.outcome.wait())

    with running() as job:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, job)
            tasks.start_soon(wait, job)
            with anyio.CancelScope() as scope:
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
                EventLoop().soon(partial(tasks.start_soon, _finish_when_blocked, job, seen))
                seen.append(await job.outcome.wait())
    assert seen == ["nobody yet", "done", "done", "done"]


async def _finish_when_blocked(job: Job, seen: list[str]) -> None:
    await anyio.wait_all_tasks_blocked()
    seen.append("nobody yet" if not seen else "too early")
    job.finish.set()


async def test_an_outcome_that_is_there_already_is_returned_to_whoever_asks_later() -> None:
    with running() as job:
        job.finish.set()
        assert [await job.outcome.wait() for _ in range(3)] == ["done"] * 3


async def test_a_job_may_be_begun_again_when_it_is_run_again() -> None:
    outcome: Outcome[str] = Outcome()
    assert outcome.begin()
    assert outcome.begin()


async def test_many_outcomes_are_delivered_in_one_call() -> None:
    outcomes: list[Outcome[int]] = [Outcome() for _ in range(5)]
    loop, results = EventLoop(), []

    def work() -> None:
        for number, outcome in enumerate(outcomes):
            assert outcome.begin()
            outcome.succeed(number)
        loop.deliver(outcomes)

    await anyio.to_thread.run_sync(work)
    results = [await outcome.wait() for outcome in outcomes]
    assert results == [0, 1, 2, 3, 4]


def test_calling_an_event_loop_that_has_ended_does_nothing(anyio_backend_name: str) -> None:
    called: list[int] = []

    async def make() -> EventLoop:
        return EventLoop()

    loop = anyio.run(make, backend=anyio_backend_name)
    loop.soon(lambda: called.append(1))
    loop.deliver([])
    assert called == []


# Wakes


async def test_a_wake_before_the_first_wait_is_kept_and_many_are_one() -> None:
    wakes = Wakes()
    async with wakes.waiting("news") as iterator:
        for number in range(3):
            wakes.wake([("news", (number,))])
        await anext(iterator)
        assert await is_silent(iterator)
        wakes.wake([("news", (1,))])
        await anext(iterator)


async def test_only_those_below_the_prefix_are_woken() -> None:
    wakes = Wakes()
    async with wakes.waiting("news", ("a",)) as iterator:
        wakes.wake([("other", ("a",)), ("news", ("ab",)), ("news", (1,)), ("news", ("b", "a"))])
        assert await is_silent(iterator)
        wakes.wake([("news", ("b",)), ("news", ("a", 1))])
        await anext(iterator)


async def test_everybody_is_woken_when_nobody_knows_what_changed() -> None:
    wakes = Wakes()
    async with wakes.waiting("one", ("a",)) as one, wakes.waiting("two") as two:
        assert wakes.is_waited_for
        wakes.wake_all()
        await anext(one)
        await anext(two)
    assert not wakes.is_waited_for


async def test_a_block_that_ended_leaves_the_others_of_its_table() -> None:
    wakes = Wakes()
    async with wakes.waiting("news") as iterator:
        async with wakes.waiting("news"):
            pass
        wakes.wake([("news", (1,))])
        await anext(iterator)


async def test_a_cancelled_wait_takes_no_wake_along() -> None:
    wakes = Wakes()
    async with wakes.waiting("news") as iterator:
        wakes.wake([("news", (1,))])
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anext(iterator)
        assert scope.cancelled_caught
        await anext(iterator)


async def test_closing_ends_every_wait_and_refuses_new_ones() -> None:
    wakes = Wakes()
    async with wakes.waiting("news") as iterator:
        wakes.close()
        wakes.close()
        for _ in range(2):
            with pytest.raises(StorageClosedError):
                await anext(iterator)
    with pytest.raises(StorageClosedError):
        async with wakes.waiting("news"):
            pass


@pytest.mark.parametrize(("table", "prefix"), [("BAD", ()), ("news", (1.5,))])
async def test_waiting_for_what_cannot_be_is_refused(table: str, prefix: Any) -> None:
    with pytest.raises(InvalidKeyError):
        async with Wakes().waiting(table, prefix):
            pass


async def is_silent(iterator: Any) -> bool:
    """Whether a wait would go on: everything that could wake it has happened in this task."""
    with anyio.move_on_after(0.01) as scope:
        await anext(iterator)
    return scope.cancelled_caught


def nested(depth: int) -> Any:
    value: Any = 1
    for number in range(depth):
        value = [value, "x"] if number % 2 else {"a": value}
    return value


def test_documents_may_be_nested_so_deep_and_no_deeper() -> None:
    deepest = nested(DEEPEST)
    assert decode_document(encode_document(deepest)) == deepest
    with pytest.raises(InvalidDocumentError, match=f"more than {DEEPEST} lists and mappings"):
        encode_document(nested(DEEPEST + 1))
    wide = [[number] for number in range(1_000)]
    assert decode_document(encode_document(wide)) == wide
