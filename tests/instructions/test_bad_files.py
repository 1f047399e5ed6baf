"""What is wrong with one file is said, and everything else is told."""

import errno
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from plugins_builtin.instructions.problems import PassingError, Problem, VanishedError
from plugins_builtin.instructions.reading import Reader, Text
from plugins_builtin.instructions.scanning import Found
from tests.instructions.making import Person, telling


async def left_out(person: Person, why: str, **options: Any) -> None:
    """The root's file is left out for a reason that is told once; that of the directory is told."""
    near = person.write("project/a/AGENTS.md", "near")
    async with telling(person.project / "a", **options) as told:
        assert await told.texts() == {str(near): "near"}
        assert await told.texts() == {str(near): "near"}
        assert told.warnings == [f"The instructions in '{person.project}/AGENTS.md' are left out: {why}."]


async def test_a_folder_with_the_name_of_a_file_is_left_out(person: Person) -> None:
    (person.project / "AGENTS.md").mkdir()
    person.write("project/CLAUDE.md", "not a fallback for something that is only broken")
    await left_out(person, "it is a folder")


async def test_a_named_pipe_is_left_out_and_holds_nobody_up(person: Person) -> None:
    os.mkfifo(person.project / "AGENTS.md")
    await left_out(person, "it is a named pipe")


async def test_a_named_pipe_that_takes_the_place_of_a_file_holds_nobody_up(person: Person) -> None:
    root = person.write("project/AGENTS.md", "root")

    def open_file(path: str, flags: int) -> int:
        if path == str(root):
            root.unlink(missing_ok=True)
            os.mkfifo(root)
        return os.open(path, flags)

    async with telling(person.project, reader=Reader(limit=100, open_file=open_file)) as told:
        assert await told.texts() == {}
        assert told.warnings == [f"The instructions in '{root}' are left out: it is a named pipe."]


async def test_a_socket_is_left_out(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(person.project)  # the address of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("AGENTS.md")
    await left_out(person, "it is a socket")


async def test_a_device_is_left_out(person: Person) -> None:
    (person.project / "AGENTS.md").symlink_to("/dev/zero")
    await left_out(person, "it is a device")


async def test_what_is_not_utf_8_is_left_out(person: Person) -> None:
    person.write("project/AGENTS.md", "é".encode("latin-1"))
    await left_out(person, "it is not UTF-8 text")


async def test_what_is_not_text_is_left_out(person: Person) -> None:
    person.write("project/AGENTS.md", b"a\0b")
    await left_out(person, "it is not UTF-8 text")


async def test_a_file_of_50_megabytes_is_left_out_unread(person: Person) -> None:
    os.truncate(person.write("project/AGENTS.md", ""), 50_000_000)
    await left_out(person, "it is longer than 1048576 bytes")


async def test_a_file_of_exactly_the_limit_is_told_and_one_more_byte_is_not(person: Person) -> None:
    root = person.write("project/AGENTS.md", "x" * 1000)
    async with telling(person.project, file_limit=1000) as told:
        assert await told.texts() == {str(root): "x" * 1000}
    root.write_text("x" * 1001)
    await left_out(person, "it is longer than 1000 bytes", file_limit=1000)


async def test_a_link_to_itself_is_left_out(person: Person) -> None:
    (person.project / "AGENTS.md").symlink_to("AGENTS.md")
    await left_out(person, "its link leads round in a circle")


async def test_a_link_out_of_the_project_is_left_out(person: Person) -> None:
    (person.project / "AGENTS.md").symlink_to(person.write("secret", "secret"))
    await left_out(person, "it leads out of the project")


async def test_a_link_out_of_the_project_through_a_folder_is_left_out(person: Person) -> None:
    person.write("other/rules.md", "foreign")
    (person.project / "docs").symlink_to(person.home / "other")
    (person.project / "AGENTS.md").symlink_to("docs/rules.md")
    await left_out(person, "it leads out of the project")


async def test_a_folder_with_a_similar_name_is_not_in_the_project(person: Person) -> None:
    (person.project / "AGENTS.md").symlink_to(person.write("project-other/rules.md", "foreign"))
    await left_out(person, "it leads out of the project")


async def test_a_link_to_nothing_is_as_good_as_none(person: Person) -> None:
    (person.project / "AGENTS.md").symlink_to("gone.md")
    fallback = person.write("project/CLAUDE.md", "fallback")
    async with telling(person.project) as told:
        assert await told.texts() == {str(fallback): "fallback"}
        assert told.warnings == []


async def test_an_unreadable_file_is_left_out(person: Person) -> None:
    root = person.write("project/AGENTS.md", "root")

    def open_file(path: str, flags: int) -> int:
        if path == str(root):
            raise PermissionError(13, "Permission denied", path)
        return os.open(path, flags)

    near = person.write("project/a/AGENTS.md", "near")
    async with telling(person.project / "a", reader=Reader(limit=1000, open_file=open_file)) as told:
        assert await told.texts() == {str(near): "near"}
        assert told.warnings == [f"The instructions in '{root}' are left out: it may not be read."]


@contextmanager
def permitted_little() -> Iterator[None]:
    """Be somebody who may not read everything, also when root runs the tests."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that anybody may look into, as those of other tests are not."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder).resolve()


async def test_a_file_without_permission_is_left_out(public_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anybody = Person(home=public_folder, config=public_folder / "config", project=public_folder / "project")
    monkeypatch.setenv("HOME", str(anybody.home))
    monkeypatch.setenv("OPENCODE_CONFIG_DIR", str(anybody.config))
    root, near = anybody.write("project/AGENTS.md", "root"), anybody.write("project/a/AGENTS.md", "near")
    (anybody.project / ".git").mkdir()
    for path, mode in ((anybody.project, 0o755), (root, 0), (near.parent, 0o755), (near, 0o644)):
        path.chmod(mode)
    async with telling(anybody.project / "a") as told:
        with permitted_little():
            assert await told.texts() == {str(near): "near"}
        assert told.warnings == [f"The instructions in '{root}' are left out: it may not be read."]


async def test_a_file_that_the_system_refuses_for_a_reason_of_its_own_is_left_out(person: Person) -> None:
    root = person.write("project/AGENTS.md", "root")

    def open_file(path: str, flags: int) -> int:
        raise OSError(22, "Invalid argument")

    async with telling(person.project, reader=Reader(limit=1000, open_file=open_file)) as told:
        assert await told.texts() == {}
        assert told.warnings == [f"The instructions in '{root}' are left out: the system refuses its name or its kind."]


async def test_a_machine_that_cannot_open_files_takes_nothing_back(person: Person) -> None:
    person.write("project/AGENTS.md", "root")

    def open_file(path: str, flags: int) -> int:
        raise OSError(24, "Too many open files")

    async with telling(person.project, reader=Reader(limit=1000, open_file=open_file)) as told:
        assert await told.texts() is None
        assert "Too many open files" in told.warnings[0]


@pytest.mark.parametrize("name", ["EIO", "ESTALE", "ENOTCONN", "EHOSTDOWN", "ENODEV", "EREMOTEIO", "ENOKEY"])
async def test_a_disk_that_fails_in_whatever_way_takes_nothing_back(person: Person, name: str) -> None:
    person.write("project/AGENTS.md", "root")
    number = getattr(errno, name, errno.EIO)  # not every system has a word for each

    def open_file(path: str, flags: int) -> int:
        raise OSError(number, os.strerror(number))

    async with telling(person.project, reader=Reader(limit=1000, open_file=open_file)) as told:
        assert await told.texts() is None


async def test_a_bad_file_of_the_person_is_left_out_too(person: Person) -> None:
    (person.config / "AGENTS.md").symlink_to("AGENTS.md")
    root = person.write("project/AGENTS.md", "root")
    async with telling(person.project) as told:
        assert await told.texts() == {str(root): "root"}
        assert "leads round in a circle" in told.warnings[0]


async def test_a_nested_folder_that_became_a_file_or_a_circle_is_passed_over(person: Person) -> None:
    root = person.write("project/AGENTS.md", "root")
    person.write("project/file", "")
    (person.project / "circle").symlink_to("circle")
    async with telling(person.project) as told:
        visited = [person.project / "file", person.project / "circle/in", person.project / "gone"]
        assert await told.texts(*visited) == {str(root): "root"}


async def test_a_mended_file_is_told_at_the_next_boundary(person: Person) -> None:
    root = person.write("project/AGENTS.md", "é".encode("latin-1"))
    async with telling(person.project) as told:
        assert await told.texts() == {}
        root.write_bytes("é".encode())
        assert await told.texts() == {str(root): "é"}


class Counting:
    """A reader that counts what it opens, on a machine whose clock is far ahead of its files."""

    def __init__(self, ahead: int = 10_000_000_000) -> None:
        self.opened: list[str] = []
        self.ahead = ahead
        self.reader = Reader(limit=1000, open_file=self.open_file, machine_ns=self.now)
        self.newest = 0

    def open_file(self, path: str, flags: int) -> int:
        self.opened.append(path)
        self.newest = max(self.newest, os.stat(path).st_ctime_ns)
        return os.open(path, flags)

    def now(self) -> int:
        return self.newest + self.ahead


async def test_a_file_that_did_not_change_is_not_read_again(person: Person) -> None:
    root = person.write("project/AGENTS.md", "root")
    bad = person.write("project/a/AGENTS.md", b"\xff")
    counting = Counting()
    async with telling(person.project / "a", reader=counting.reader) as told:
        for _ in range(3):
            assert await told.texts() == {str(root): "root"}
        assert counting.opened == [str(root), str(bad)]
        root.write_text("toor")
        assert await told.texts() == {str(root): "toor"}
        assert counting.opened == [str(root), str(bad), str(root)]


async def test_a_file_that_changed_just_now_is_read_again_because_its_time_may_not_tell(person: Person) -> None:
    root = person.write("project/AGENTS.md", "root")
    counting = Counting(ahead=1_000_000_000)
    async with telling(person.project, reader=counting.reader) as told:
        for _ in range(2):
            await told.texts()
        assert counting.opened == [str(root), str(root)]


async def test_a_file_that_is_replaced_by_a_link_out_of_the_project_is_not_told_from_memory(person: Person) -> None:
    root = person.write("project/AGENTS.md", "root")
    async with telling(person.project, reader=Counting().reader) as told:
        await told.texts()
        root.rename(person.home / "moved")
        root.symlink_to(person.write("secret", "secret"))
        assert await told.texts() == {}


def test_a_file_that_the_system_makes_up_is_read_although_it_says_that_it_is_empty() -> None:
    path = "/proc/self/status"
    if not os.path.exists(path):
        pytest.skip("there is no such file here")
    read = Reader(limit=100_000).begin().read(Found(path, os.stat(path)))
    assert isinstance(read, Text)
    assert read.text.startswith("Name:")


def test_what_vanishes_may_pass_and_what_is_in_the_way_may_not(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    found = Found(str(file / "AGENTS.md"), os.stat(file))  # its folder is a file now
    with pytest.raises(VanishedError):
        Reader(limit=10).begin().read(found)
    assert issubclass(VanishedError, PassingError)
    status = os.stat_result([stat.S_IFDIR, *[0] * 9])
    assert isinstance(Reader(limit=10).begin().read(Found(str(tmp_path), status)), Problem)
