"""Skills in folders: which files are skills, that edits are seen, and that no file blocks, crashes or leads astray."""

import errno
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from opencode_core.host import Host
from plugin_sdk import Skill
from plugin_sdk.threads import GIVEN_UP
from plugins_builtin.skills import files, local, remote, scanning
from plugins_builtin.skills.local import LocalSkills
from plugins_builtin.skills.places import Folder
from plugins_builtin.skills.remote import RemoteSkills
from plugins_builtin.skills.scanning import Scanned, scan
from tests.skills.making import bodies, found, opened, skill_text, warnings, write
from tests.skills.serving import Scope, client

LATER = 4_000_000_000.0
"""When every file has long been what it is."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of skills of a project."""
    (tmp_path / "project/.opencode/skills").mkdir(parents=True)
    return tmp_path / "project/.opencode/skills"


@pytest.fixture
async def host(folder: Path) -> Iterator[Host]:  # type: ignore[misc]
    async with opened(folder.parents[1]) as host:
        yield host


# What is a skill


@pytest.mark.behaviour("SK-03")
async def test_a_markdown_file_without_a_name_is_called_like_the_file_and_its_slash_is_read(
    folder: Path, host: Host
) -> None:
    write(folder / "deploy.md", skill_text(description="Ships it.", slash="true", body="Ship."))
    write(folder / "other.md", skill_text(name="named"))
    write(folder / "bare.md", "No head at all.")
    skills = await found(host)
    assert skills["deploy"] == Skill(
        name="deploy", description="Ships it.", body="Ship.", directory=str(folder), slash=True
    )
    assert await bodies(host) == {"bare": "No head at all.", "deploy": "Ship.", "named": "Do it."}
    assert not skills["named"].slash


async def test_a_folder_with_a_skill_file_is_a_skill_at_any_depth(folder: Path, host: Host) -> None:
    write(folder / "one/SKILL.md", skill_text(name="one"))
    write(folder / "a/b/c/SKILL.md", skill_text(name="deep"))
    skills = await found(host)
    assert (skills["one"].directory, skills["one"].is_folder) == (str(folder / "one"), True)
    assert skills["deep"].directory == str(folder / "a/b/c")


async def test_only_the_top_of_a_folder_holds_skills_that_are_single_files(folder: Path, host: Host) -> None:
    write(folder / "one/SKILL.md", skill_text(name="one"))
    write(folder / "one/notes.md", "not a skill")
    write(folder / "notes/more.md", "not a skill")
    write(folder / "notes.txt", "not a skill")
    assert list(await bodies(host)) == ["one"]


async def test_a_configured_folder_may_be_a_skill_itself_and_its_notes_are_none(tmp_path: Path) -> None:
    write(tmp_path / "one/SKILL.md", skill_text(name="one"))
    write(tmp_path / "one/notes.md", "not a skill")
    async with opened(tmp_path, config={"skills": ["one"]}) as host:
        assert list(await bodies(host)) == ["one"]


async def test_a_skill_file_without_a_name_is_left_out_with_one_warning(folder: Path, host: Host) -> None:
    file = write(folder / "one/SKILL.md", skill_text(description="Nameless."))
    for _ in range(3):
        assert await bodies(host) == {}
    assert warnings(host) == [f"The skill file '{file}' was left out: it has no 'name' in its head."]


async def test_hidden_folders_and_those_too_deep_are_not_looked_into(folder: Path, host: Host) -> None:
    write(folder / ".git/SKILL.md", skill_text(name="hidden"))
    write(folder.joinpath(*"abcdefghi", "SKILL.md"), skill_text(name="deep"))
    write(folder.joinpath(*"abcdefgh", "SKILL.md"), skill_text(name="just"))
    assert list(await bodies(host)) == ["just"]


async def test_the_order_of_names_decides_and_not_the_order_on_disk(folder: Path, host: Host) -> None:
    for name in ("c", "a", "b"):
        write(folder / f"{name}.md", skill_text(name="same", body=name))
    assert await bodies(host) == {"same": "c"}


# What changes


async def test_edits_are_seen_the_next_time_although_size_and_name_stay_the_same(folder: Path, host: Host) -> None:
    seen = []
    for body in ("one", "two", "six"):
        write(folder / "a.md", skill_text(body=body))
        seen.append(await bodies(host))
    (folder / "a.md").unlink()
    assert seen == [{"a": "one"}, {"a": "two"}, {"a": "six"}]
    assert await bodies(host) == {}


async def test_a_folder_that_is_made_later_is_seen(tmp_path: Path) -> None:
    async with opened(tmp_path) as host:
        assert await bodies(host) == {}
        write(tmp_path / ".opencode/skill/a.md", "A")
        assert await bodies(host) == {"a": "A"}


def test_a_file_that_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    file = write(tmp_path / "a.md", "old")
    before = scan_folder(tmp_path)
    replace_keeping_signature(before, file)
    again = scan([Folder(path=tmp_path)], before.known, LATER)
    assert [each.body for each in again.skills] == ["remembered"]


@pytest.mark.parametrize("text", ["new", "longer than before"])
def test_a_file_that_changed_long_after_it_was_read_is_read_again(tmp_path: Path, text: str) -> None:
    file = write(tmp_path / "a.md", "old")
    before = scan_folder(tmp_path)
    write(file, text)
    os.utime(file, (1, 1))
    again = scan([Folder(path=tmp_path)], before.known, LATER)
    assert [each.body for each in again.skills] == [text]


def test_a_file_that_changed_just_now_is_read_again_because_its_dates_may_not_tell(tmp_path: Path) -> None:
    file = write(tmp_path / "a.md", "old")
    assert scan_folder(tmp_path, now=file.stat().st_mtime).known == {}


def test_what_a_scan_has_read_is_of_use_although_nobody_waited_for_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path / f"{name}.md", name)
    known: scanning.Known = {}
    look = files.check_file

    def check(path: str) -> os.stat_result:
        if path.endswith("c.md"):
            raise OSError(errno.EIO, "Input/output error")
        return look(path)

    monkeypatch.setattr(scanning, "check_file", check)
    with pytest.raises(OSError, match="Input/output"):
        scan([Folder(path=tmp_path)], known, LATER)
    assert sorted(known) == [str(tmp_path / "a.md"), str(tmp_path / "b.md")]


def test_a_file_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    file = write(tmp_path / "a.md")
    before = scan_folder(tmp_path)
    file.unlink()
    assert scan([Folder(path=tmp_path)], before.known, LATER).known == {}


def test_what_could_not_be_parsed_is_not_read_again_either_and_reported_each_time(tmp_path: Path) -> None:
    write(tmp_path / "a/SKILL.md", "nameless")
    before = scan_folder(tmp_path)
    again = scan([Folder(path=tmp_path)], before.known, LATER)
    assert (len(before.known), again.problems) == (1, before.problems)


@pytest.mark.parametrize("value", ["1", "true", "YES"])
async def test_folders_of_the_project_are_left_out_while_its_configuration_is_disabled(
    tmp_path: Path, value: str
) -> None:
    environ: dict[str, str] = {}
    write(tmp_path / "project/.opencode/skills/project.md")
    write(tmp_path / "config/skills/mine.md")
    write(tmp_path / "project/more/more.md")
    async with opened(
        tmp_path / "project",
        config={"skills": ["more"]},
        environ=environ,
        config_dir=tmp_path / "config",
        data_dir=tmp_path / "data",
    ) as host:
        seen = [list(await bodies(host))]
        environ["OPENCODE_DISABLE_PROJECT_CONFIG"] = value
        seen.append(list(await bodies(host)))
        environ["OPENCODE_DISABLE_PROJECT_CONFIG"] = "0"
        seen.append(list(await bodies(host)))
    assert seen == [["mine", "more", "project"], ["mine", "more"], ["mine", "more", "project"]]


async def test_sessions_that_ask_at_the_same_time_are_all_answered(folder: Path, host: Host) -> None:
    for number in range(20):
        write(folder / f"{number}.md", str(number))
    answers: list[int] = []

    async def ask() -> None:
        answers.append(len(await bodies(host)))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(ask)
    assert answers == [20] * 8


# What is no skill, and does no harm


async def test_bad_files_are_left_out_with_one_warning_each_and_the_others_stay(folder: Path, host: Host) -> None:
    write(folder / "good.md", "Good.")
    write(folder / "binary.md", b"\xff\xfe\x00")
    write(folder / "huge.md", b"x" * 1_048_577)
    write(folder / "broken.md", "---\nname: [\n---\n")
    write(folder / "spaced name.md", "no name has a space")
    os.mkfifo(folder / "pipe.md")
    os.symlink(folder / "nowhere.md", folder / "dangling.md")
    os.symlink(folder / "circle.md", folder / "circle.md")
    write(folder / "directory.md/readme.txt")
    write(folder / "odd/SKILL.md/readme.txt")
    for _ in range(2):
        assert await bodies(host) == {"good": "Good."}
    reasons = sorted(each.partition(" was left out: it ")[2] for each in warnings(host))
    assert reasons == sorted(
        [
            "is not UTF-8.",
            "is longer than 1 MiB.",
            "has a head that is not YAML.",
            "has a name with white space, with a slash before it, or of more than 100 characters.",
            "is not a regular file.",
            "is a link that leads nowhere.",
            "cannot be read (Too many levels of symbolic links).",
        ]
    )


async def test_a_socket_is_no_skill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "skills").mkdir()
    monkeypatch.chdir(tmp_path / "skills")  # the name of a socket has to be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("a.md")
        problems = scan_folder(tmp_path / "skills").problems
    assert "is not a regular file" in problems[0].problem


async def test_what_may_not_be_read_is_left_out_with_a_warning(
    folder: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "closed/SKILL.md", skill_text(name="closed"))
    write(folder / "open.md", "Open.")
    look = os.scandir

    def scandir(path: str) -> Any:  # who runs the tests may be permitted everything
        if path.endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return look(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert await bodies(host) == {"open": "Open."}
    assert warnings(host) == [
        f"The skills folder '{folder / 'closed'}' was left out: it cannot be read (Permission denied)."
    ]


async def test_a_file_where_a_folder_should_be_holds_no_skills(tmp_path: Path) -> None:
    write(tmp_path / ".opencode/skills", "a file")
    write(tmp_path / "file.md", "a file")
    async with opened(tmp_path, config={"skills": ["file.md"]}) as host:
        assert (await bodies(host), warnings(host)) == ({}, [])


async def test_links_that_lead_in_a_circle_end(folder: Path, host: Host) -> None:
    write(folder / "a/SKILL.md", skill_text(name="one"))
    os.symlink(folder, folder / "a/up")
    os.symlink(folder / "a", folder / "b")
    assert list(await bodies(host)) == ["one"]
    assert len(scan_folder(folder).skills) == 1


@pytest.mark.behaviour("SK-01")
def test_a_folder_that_has_two_names_is_looked_into_once(tmp_path: Path) -> None:
    write(tmp_path / "a/one.md")
    write(tmp_path / "a/b/two.md")
    os.symlink(tmp_path / "a", tmp_path / "link")
    names = ("a", "link", "a/b")
    skills = scan([Folder(path=tmp_path / name) for name in names], {}, LATER).skills
    assert [each.name for each in skills] == ["one", "two"]


def test_a_file_that_is_deleted_between_the_look_and_the_read_is_nobodys_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "a.md")

    def check(path: str) -> os.stat_result:
        status = os.stat(path)
        file.unlink()
        return status

    monkeypatch.setattr(scanning, "check_file", check)
    scanned = scan_folder(tmp_path)
    assert (scanned.skills, scanned.problems) == ((), ())


async def test_what_was_found_stays_when_the_disk_fails_for_a_moment(
    folder: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "a.md", "A")
    before = await bodies(host)

    def fail(_path: str) -> os.stat_result:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(scanning, "check_file", fail)
    assert await bodies(host) == before == {"a": "A"}
    assert "Input/output error" in warnings(host)[0]


def test_more_skills_names_or_problems_than_are_bearable_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        write(tmp_path / "many" / f"{number}.md", str(number))
        write(tmp_path / "bad" / str(number) / "SKILL.md", "nameless")
    monkeypatch.setattr(scanning, "MOST_SKILLS", 4)
    many = scan_folder(tmp_path / "many")
    monkeypatch.setattr(scanning, "MOST_PROBLEMS", 3)
    bad = scan_folder(tmp_path / "bad")
    monkeypatch.setattr(scanning, "MOST_NAMES", 3)
    names = scan_folder(tmp_path / "many")
    assert (len(many.skills), len(bad.problems), len(names.skills)) == (4, 4, 3)
    assert [each.problem.rpartition("' ")[2] for each in (*many.problems, *names.problems)] == [
        "holds more than 4 skills.",
        "holds more than 3 names.",
    ]


# What leads out of the project


@pytest.mark.parametrize("configured", [False, True])
async def test_a_file_of_the_project_that_leads_out_of_it_is_left_out(tmp_path: Path, configured: bool) -> None:
    secret = write(tmp_path / "secret.md", "SECRET")
    project = tmp_path / "project"
    folder = project / ("more" if configured else ".opencode/skills")
    write(folder / "inside.md", "Inside.")
    os.symlink(secret, folder / "flat.md")
    (folder / "one").mkdir()
    os.symlink(secret, folder / "one/SKILL.md")
    async with opened(project, config={"skills": ["more"]}) as host:
        assert await bodies(host) == {"inside": "Inside."}
        assert sorted(warnings(host)) == [
            f"'{folder / name}' was left out: it leads out of the project '{project}'."
            for name in ("flat.md", "one/SKILL.md")
        ]


@pytest.mark.parametrize("link", [".opencode", ".opencode/skills", ".opencode/skills/one"])
async def test_a_folder_of_the_project_that_leads_out_of_it_is_left_out(tmp_path: Path, link: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    for name in ("skills/one/SKILL.md", "one/SKILL.md", "SKILL.md"):
        write(elsewhere / name, skill_text(name="secret"))
    place = tmp_path / "project" / link
    place.parent.mkdir(parents=True)
    os.symlink(elsewhere, place)
    async with opened(tmp_path / "project") as host:
        assert await bodies(host) == {}
        assert len(warnings(host)) == 1


async def test_a_link_inside_the_project_and_any_link_of_the_person_are_followed(tmp_path: Path) -> None:
    write(tmp_path / "project/docs/inside.md", "Inside.")
    (tmp_path / "project/.opencode/skills").mkdir(parents=True)
    os.symlink(tmp_path / "project/docs/inside.md", tmp_path / "project/.opencode/skills/linked.md")
    write(tmp_path / "dotfiles/mine/SKILL.md", skill_text(name="mine"))
    (tmp_path / "config").mkdir()
    os.symlink(tmp_path / "dotfiles", tmp_path / "config/skills")
    async with opened(tmp_path / "project", config_dir=tmp_path / "config") as host:
        skills = await found(host)
    assert skills["linked"].body == "Inside."
    assert skills["mine"].directory == str(tmp_path / "dotfiles/mine")


async def test_the_persons_own_folder_keeps_its_rights_when_the_project_has_it_too(tmp_path: Path) -> None:
    write(tmp_path / "dotfiles/mine.md", "Mine.")
    (tmp_path / "project/.opencode").mkdir(parents=True)
    os.symlink(tmp_path / "dotfiles", tmp_path / "project/.opencode/skills")
    async with opened(tmp_path / "project", config_dir=tmp_path / "project/.opencode") as host:
        assert await bodies(host) == {"mine": "Mine."}


def scan_folder(folder: Path, *, now: float = LATER) -> Scanned:
    return scan([Folder(path=folder)], {}, now)


def replace_keeping_signature(scanned: Scanned, file: Path) -> None:
    """Make what is remembered of a file differ from the file, to see which of the two is used."""
    remembered = scanned.known[str(file)]
    changed = Skill(name="a", body="remembered")
    scanned.known[str(file)] = scanning.Remembered(signature=remembered.signature, found=changed)


def swap_for_link(folder: Path, target: Path) -> None:
    folder.rename(folder.with_name("moved"))
    os.symlink(target, folder)


def test_a_folder_that_becomes_a_link_after_it_was_checked_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "project/skills/one/SKILL.md", skill_text(name="inside"))
    write(tmp_path / "elsewhere/SKILL.md", skill_text(name="secret"))
    look, left = files.check_file, [tmp_path / "project/skills/one"]

    def check(path: str) -> os.stat_result:
        if left:
            swap_for_link(left.pop(), tmp_path / "elsewhere")
        return look(path)

    monkeypatch.setattr(scanning, "check_file", check)
    with pytest.raises(OSError, match="replaced while it was read"):
        scan([Folder(path=tmp_path / "project/skills", inside=tmp_path / "project")], {}, LATER)


@pytest.mark.parametrize("since", ["it is checked", "it is opened"])
def test_a_folder_that_is_a_link_only_until_its_file_is_opened_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, since: str
) -> None:
    folder = write(tmp_path / "project/skills/one/SKILL.md", skill_text(name="inside")).parent
    write(tmp_path / "elsewhere/SKILL.md", skill_text(name="secret"))
    look, opening = files.check_file, os.open

    def check(path: str) -> os.stat_result:
        if since == "it is checked":
            swap_for_link(folder, tmp_path / "elsewhere")
        return look(path)

    def open_file(path: Any, *args: Any, **kwargs: Any) -> int:
        if str(path) != str(folder / "SKILL.md"):
            return opening(path, *args, **kwargs)
        if since == "it is opened":
            swap_for_link(folder, tmp_path / "elsewhere")
        try:
            return opening(path, *args, **kwargs)
        finally:
            folder.unlink()
            folder.with_name("moved").rename(folder)

    monkeypatch.setattr(scanning, "check_file", check)
    monkeypatch.setattr(os, "open", open_file)
    with pytest.raises(OSError, match="replaced while it was read"):
        scan([Folder(path=tmp_path / "project/skills", inside=tmp_path / "project")], {}, LATER)


def test_a_file_that_is_saved_anew_between_the_look_and_the_read_is_read_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, fresh = write(tmp_path / "skills/a.md", "old"), write(tmp_path / "fresh", "new")
    look = files.check_file

    def check(path: str) -> os.stat_result:
        status = look(path)
        if fresh.exists():
            fresh.replace(file)
        return status

    monkeypatch.setattr(scanning, "check_file", check)
    assert [each.body for each in scan_folder(tmp_path / "skills").skills] == ["new"]


async def test_no_name_of_a_file_steers_a_terminal_or_breaks_a_line(folder: Path, host: Host) -> None:
    write(folder / "\x1b]0;evil\x07\nnew line.md", "---\nname: [\n---\n")
    os.symlink("/", folder / "out\x1b[31m.md")
    write(folder / "deep\x1b/SKILL.md", "nameless")
    assert await bodies(host) == {}
    told = warnings(host)
    assert len(told) == 3
    assert all(each.isprintable() for each in told)
    assert any(r"\x1b]0;evil\x07\nnew line.md" in each for each in told)


# What hangs


async def test_a_disk_that_hangs_is_given_up_and_not_asked_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, begun = threading.Event(), threading.Semaphore(0)

    def hangs(*_args: object) -> Any:
        begun.release()
        release.wait(30)

    monkeypatch.setattr(local, "scan", hangs)
    monkeypatch.setattr(remote, "_read_kept", hangs)
    sources: list[LocalSkills | RemoteSkills] = [
        LocalSkills(folders=(), scope=Scope(tmp_path)),  # type: ignore[arg-type]
        client("http://127.0.0.1:1/", tmp_path).source,
    ]
    try:
        for source in sources:
            for _ in range(GIVEN_UP):
                async with anyio.create_task_group() as group:
                    group.start_soon(source.load)
                    await anyio.to_thread.run_sync(begun.acquire)
                    group.cancel_scope.cancel()
            with pytest.raises(TimeoutError, match="have not returned yet"):
                await source.load()
            assert not begun.acquire(blocking=False)
    finally:
        release.set()
