"""A key has one file, and a file one key."""

from hypothesis import given
from hypothesis import strategies as st

from plugins_builtin.storage_jsonfiles.names import is_continued, names_of, part_of, path_of_key, table_in

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from(".%@~/\\ :json"), max_size=80) | st.text(
    "a.%~", max_size=900
)
PARTS = TEXTS | st.integers(-(2**63), 2**63 - 1)


def test_the_names_of_the_first_generation_stand_as_they_are() -> None:
    assert path_of_key("session", ("4b0ea68d", "ses_68d7-Af.x")) == ("session", "4b0ea68d", "ses_68d7-Af.x.json")
    assert path_of_key("project", ("global",)) == ("project", "global.json")
    assert path_of_key("project", ("a.json",)) == ("project", "a.json.json")


def test_what_is_not_safe_in_a_file_name_is_spelled_out() -> None:
    parts = ("", ".", "..", ".x", "a/b", "é", "x.json", "12", 12, -5, "@12")

    assert [names_of(part, folder=True) for part in parts] == [
        ("%",), ("%2E",), ("%2E%2E",), ("%2Ex",), ("a%2Fb",), ("%C3%A9",), ("x%2Ejson",), ("12",), ("@12",), ("@-5",),
        ("%4012",),
    ]  # fmt: skip


def test_the_folder_of_no_table_is_where_the_number_of_the_layout_is() -> None:
    assert path_of_key("migration", ("a",)) == ("%6Digration", "a.json")
    assert [table_in(name) for name in ("%6Digration", "migration", "session", "Session", "%6d", ".x")] == [
        "migration", None, "session", None, None, None,
    ]  # fmt: skip


@given(PARTS, st.booleans())
def test_every_part_comes_back_from_its_names(part: str | int, folder: bool) -> None:
    names = names_of(part, folder=folder)

    assert part_of(names, folder=folder) == part
    assert type(part_of(names, folder=folder)) is type(part)
    assert [is_continued(name) for name in names] == [True] * (len(names) - 1) + [False]


@given(PARTS, st.booleans())
def test_every_name_is_safe_on_common_systems(part: str | int, folder: bool) -> None:
    for name in names_of(part, folder=folder):
        assert 0 < len(name.encode()) <= 205
        assert name[0] != "."
        assert name[-1] not in ". "
        assert not set(name) & set('/\\:*?"<>|\0')
        assert not (folder and name.endswith(".json"))


@given(st.text(st.sampled_from("a%2EF.~@0-"), min_size=1, max_size=8), st.booleans())
def test_a_name_that_no_key_has_is_not_taken_for_one(name: str, folder: bool) -> None:
    part = part_of((name,), folder=folder)

    assert part is None or names_of(part, folder=folder) == (name,)
