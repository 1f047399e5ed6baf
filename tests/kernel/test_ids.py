"""Ids sort by when they were made, whatever the clock does."""

import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_core.errors import InvalidKeyError
from opencode_core.ids import PREFIXES, Ids, check_id, is_placed, milliseconds_of

NOW = 1_790_000_000_000

times = st.lists(st.integers(NOW - 10_000, NOW + 10_000), min_size=2, max_size=50)


def ids_at(*moments: int) -> Ids:
    remaining = iter(moments)
    return Ids(milliseconds=lambda: next(remaining))


@pytest.mark.behaviour("V1-03")
@pytest.mark.parametrize("kind", PREFIXES)
def test_an_id_is_a_prefix_twelve_hexadecimal_digits_and_fourteen_of_base_62(kind):
    assert re.fullmatch(rf"{PREFIXES[kind]}_[0-9a-f]{{12}}[0-9A-Za-z]{{14}}", Ids(lambda: NOW).ascending(kind))


@pytest.mark.behaviour("V1-03")
@given(times)
def test_ascending_ids_increase_strictly_even_when_the_clock_goes_back(moments):
    ids = ids_at(*moments)
    made = [ids.ascending("message")[:16] for _ in moments]
    assert made == sorted(set(made))


@pytest.mark.behaviour("V1-03")
@given(times)
def test_descending_ids_decrease_strictly_even_when_the_clock_goes_back(moments):
    ids = ids_at(*moments)
    made = [ids.descending("session")[:16] for _ in moments]
    assert made == sorted(set(made), reverse=True)


def test_ascending_and_descending_ids_of_one_process_share_their_counter():
    ids = Ids(milliseconds=lambda: NOW)
    up, down = ids.ascending("message")[4:16], ids.descending("session")[4:16]
    assert int(up, 16) + 1 == ~int(down, 16) & (1 << 48) - 1


def test_more_ids_than_a_millisecond_has_counters_borrow_from_the_next():
    ids = Ids(milliseconds=lambda: NOW)
    made = [ids.ascending("part")[:16] for _ in range(5_000)]
    assert made == sorted(set(made))


def test_the_digits_are_those_of_the_first_generation():
    number = (NOW * 0x1000 + 1) & (1 << 48) - 1
    assert Ids(milliseconds=lambda: NOW).ascending("message").startswith(f"msg_{number:012x}")


@pytest.mark.behaviour("V1-03")
@given(st.integers(NOW - 10**10, NOW + 10**10), st.integers(0, 2 * 365 * 24 * 3600 * 1000))
def test_the_time_is_read_back_from_an_ascending_id(made, later):
    assert milliseconds_of(Ids(milliseconds=lambda: made).ascending("message"), now=made + later) == made


def test_an_id_from_a_clock_that_is_an_hour_ahead_is_read_as_it_was_made():
    id = Ids(milliseconds=lambda: NOW + 3_600_000).ascending("message")
    assert milliseconds_of(id, now=NOW) == NOW + 3_600_000


def test_threads_never_make_the_same_id():
    ids = Ids(milliseconds=lambda: NOW)
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.extend(ids.ascending("event")[:16] for _ in range(500))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 4_000


def test_a_given_id_of_the_right_kind_is_kept():
    assert Ids(lambda: NOW).ascending("message", "msg_mine") == "msg_mine"
    assert Ids(lambda: NOW).descending("session", "ses_mine") == "ses_mine"


@pytest.mark.parametrize("given_id", ["msg_x", "ses", "ses_", "", "session_x"])
def test_a_given_id_of_another_kind_is_refused(given_id):
    with pytest.raises(InvalidKeyError, match="must start with 'ses_'"):
        check_id("session", given_id)


@pytest.mark.parametrize("id", ["", "msg", "msg_", "msg_zzzzzzzzzzzz", "msg_123", "msg_-12345678901"])
def test_a_time_is_not_read_from_what_is_not_an_id(id):
    with pytest.raises(InvalidKeyError, match="is not an id"):
        milliseconds_of(id, now=NOW)


@given(aggregate=st.text(max_size=40), sequence=st.integers(0, 2**40))
def test_an_event_id_proves_its_place_and_no_other(aggregate: str, sequence: int) -> None:
    id = Ids(milliseconds=lambda: 1_700_000_000_000).placed(aggregate, sequence)
    assert re.fullmatch(r"evt_[0-9a-f]{12}[0-9A-Za-z]{14}", id)
    assert is_placed(id, aggregate, sequence) is True
    assert is_placed(id, aggregate, sequence + 1) is False
    assert is_placed(id, aggregate + "x", sequence) is False


@pytest.mark.parametrize(
    "id", ["evt_0", "", "evt_", "msg_1ee694c21001nVuopwBp9rA13Y", "evt_1ee694c21001nVuopwBp9rA13Y"]
)
def test_an_id_from_elsewhere_proves_nothing(id: str) -> None:
    assert is_placed(id, "ses_1", 0) is None


def test_a_changed_event_id_proves_nothing() -> None:
    id = Ids(milliseconds=lambda: 1_700_000_000_000).placed("ses_1", 3)
    for at in range(4, len(id)):
        changed = id[:at] + ("0" if id[at] != "0" else "1") + id[at + 1 :]
        assert is_placed(changed, "ses_1", 3) is None
