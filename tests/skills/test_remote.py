"""Skills of a web server: copied whole, refreshed when they changed, and used as they are while it is away."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from plugins_builtin.skills import refreshing
from plugins_builtin.skills import server as servers
from tests.skills.making import bodies as bodies_in
from tests.skills.making import call, opened, told, warnings, write
from tests.skills.serving import asked, client, entry, publish, put, written
from tests.support.http_server import Reply, Request, redirect, serving, silent


def skill(body: str, name: str = "one") -> bytes:
    return f"---\nname: {name}\ndescription: About {name}.\n---\n{body}".encode()


# What is fetched


@pytest.mark.behaviour("SD-05")
async def test_the_files_of_a_skill_are_put_below_its_folder(tmp_path: Path) -> None:
    with serving() as server:
        publish(server, entry("one", "SKILL.md", "scripts/deep/run me.py", "notes.txt"), entry("two", "two.md"))
        put(server, {"one/SKILL.md": skill("One."), "one/scripts/deep/run%20me.py": b"run", "one/notes.txt": b"note"})
        put(server, {"two/two.md": b"Two."})
        fetcher = client(server, tmp_path)
        skills = await fetcher.skills()
    root = fetcher.source.root
    assert root.parent == tmp_path / "skills"
    assert fetcher.files() == {
        "one/SKILL.md": skill("One.").decode(),
        "one/notes.txt": "note",
        "one/scripts/deep/run me.py": "run",
        "two/two.md": "Two.",
    }
    assert (skills["one"].directory, skills["one"].is_folder) == (str(root / "one"), True)
    assert (skills["two"].body, skills["two"].is_folder) == ("Two.", False)
    assert fetcher.scope.warnings == []


@pytest.mark.behaviour("SD-06")
async def test_only_what_has_another_version_is_fetched_again(tmp_path: Path) -> None:
    with serving() as server:
        publish(server, entry("one", version="1"), entry("two", version=7))
        put(server, {"one/SKILL.md": skill("Old."), "two/SKILL.md": skill("Two.", "two")})
        fetcher = client(server, tmp_path)
        await fetcher.bodies()
        assert asked(server) == ["index.json", "one/SKILL.md", "two/SKILL.md"]
        put(server, {"one/SKILL.md": skill("New.")})
        assert await fetcher.later() == {"one": "Old.", "two": "Two."}
        assert asked(server) == ["index.json"]
        server.routes["/skills/index.json"] = json.dumps(
            {"skills": [entry("one", version="2"), entry("two", version=7)]}
        ).encode()
        assert await fetcher.later() == {"one": "New.", "two": "Two."}
        assert asked(server) == ["index.json", "one/SKILL.md"]


async def test_a_skill_without_a_version_is_fetched_again_each_time(tmp_path: Path) -> None:
    with serving() as server:
        publish(server, entry("one"))
        put(server, {"one/SKILL.md": skill("Old.")})
        fetcher = client(server, tmp_path)
        before = await fetcher.bodies()
        put(server, {"one/SKILL.md": skill("New.")})
        assert (before, await fetcher.later()) == ({"one": "Old."}, {"one": "New."})


@pytest.mark.behaviour("SD-07")
async def test_a_refresh_that_misses_a_file_leaves_the_old_copy_and_a_complete_one_leaves_nothing_stale(
    tmp_path: Path,
) -> None:
    with serving() as server:
        publish(server, entry("one", "SKILL.md", "old.txt", version=1))
        put(server, {"one/SKILL.md": skill("Old."), "one/old.txt": b"old"})
        fetcher = client(server, tmp_path)
        await fetcher.bodies()
        publish(server, entry("one", "SKILL.md", "new.txt", version=2))
        put(server, {"one/SKILL.md": skill("New.")})
        assert await fetcher.later() == {"one": "Old."}
        assert fetcher.files() == {"one/SKILL.md": skill("Old.").decode(), "one/old.txt": "old"}
        put(server, {"one/new.txt": b"new"})
        assert await fetcher.later() == {"one": "New."}
    assert fetcher.files() == {"one/SKILL.md": skill("New.").decode(), "one/new.txt": "new"}
    assert len(fetcher.scope.warnings) == 1
    assert "The skill 'one' of '" in fetcher.scope.warnings[0]


async def test_a_skill_that_is_no_longer_listed_is_removed(tmp_path: Path) -> None:
    with serving() as server:
        publish(server, entry("one", version=1), entry("two", version=1))
        put(server, {"one/SKILL.md": skill("One."), "two/SKILL.md": skill("Two.", "two")})
        fetcher = client(server, tmp_path)
        await fetcher.bodies()
        publish(server, entry("two", version=1))
        assert await fetcher.later() == {"two": "Two."}
    assert list(fetcher.files()) == ["two/SKILL.md"]


async def test_a_skill_that_is_listed_wrongly_for_once_keeps_its_copy(tmp_path: Path) -> None:
    with serving() as server:
        publish(server, entry("one", version=1))
        put(server, {"one/SKILL.md": skill("One.")})
        fetcher = client(server, tmp_path)
        await fetcher.bodies()
        publish(server, entry("one", "SKILL.md", "../x", version=2))
        assert await fetcher.later() == {"one": "One."}


async def test_a_file_that_is_gone_from_the_copy_is_fetched_again_although_the_version_is_the_same(
    tmp_path: Path,
) -> None:
    with serving() as server:
        publish(server, entry("one", "SKILL.md", "a.txt", version=1))
        put(server, {"one/SKILL.md": skill("One."), "one/a.txt": b"a"})
        fetcher = client(server, tmp_path)
        await fetcher.bodies()
        (fetcher.source.root / "one/a.txt").unlink()
        assert await fetcher.bodies() == {}
        assert await fetcher.later() == {"one": "One."}
        assert "one/a.txt" in fetcher.files()


async def test_at_most_four_skills_and_eight_files_are_fetched_at_a_time(tmp_path: Path) -> None:
    now: list[str] = []
    most: list[tuple[int, int]] = []
    lock, enough = threading.Lock(), threading.Event()

    def answer(request: Request) -> bytes:
        name = request.path.split("/")[2]
        with lock:
            now.append(name)
            most.append((len(set(now)), len(now)))
            if len(now) == refreshing.FILES_AT_ONCE:
                enough.set()
        enough.wait(10)  # so that all who may come are there at once
        with lock:
            now.remove(name)
        return skill("x", name)

    with serving() as server:
        names = [f"s{number}" for number in range(6)]
        publish(server, *(entry(name, "SKILL.md", "a", "b", "c") for name in names))
        put(server, {f"{name}/{file}": answer for name in names for file in ("SKILL.md", "a", "b", "c")})
        assert len(await client(server, tmp_path).bodies()) == 6
    assert max(files for _skills, files in most) == refreshing.FILES_AT_ONCE == 8
    assert max(skills for skills, _files in most) <= refreshing.SKILLS_AT_ONCE == 4


# What is too much, or leads elsewhere


async def test_a_file_or_a_skill_that_is_too_large_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "LARGEST", 1_000)
    monkeypatch.setattr(servers, "LARGEST_SKILL", 1_500)
    with serving() as server:
        publish(server, entry("file", "SKILL.md"), entry("sum", "SKILL.md", "a"), entry("good"))
        put(server, {"file/SKILL.md": b"x" * 1_001, "sum/SKILL.md": b"x" * 800, "sum/a": b"x" * 800})
        put(server, {"good/SKILL.md": skill("Good.", "good")})
        fetcher = client(server, tmp_path)
        assert await fetcher.bodies() == {"good": "Good."}
    assert list(fetcher.files()) == ["good/SKILL.md"]
    assert len(fetcher.scope.warnings) == 2


async def test_a_redirect_to_another_origin_is_not_followed(tmp_path: Path) -> None:
    with serving() as server, serving({"/x": skill("Evil.")}) as evil:
        publish(server, entry("one"), entry("two"))
        put(server, {"one/SKILL.md": redirect(evil.url("/x")), "two/SKILL.md": redirect("/elsewhere")})
        server.routes["/elsewhere"] = skill("Two.", "two")
        assert await client(server, tmp_path).bodies() == {"two": "Two."}
        assert asked(evil) == []


# When a server fails


@pytest.mark.parametrize(
    "answer",
    [
        b"not JSON",
        b'{"skills": 7}',
        Reply(status=404),
        Reply(status=500),
        b"x" * 1_048_577,
        redirect("file:///etc/passwd"),
    ],
)
async def test_an_index_that_fails_gives_the_copies_or_none_with_one_warning(tmp_path: Path, answer: Any) -> None:
    with serving({"/skills/index.json": answer}) as server:
        nothing = client(server, tmp_path / "nothing")
        assert await nothing.bodies() == {}
        assert await nothing.later() == {}
        publish(server, entry("one", version=1))
        put(server, {"one/SKILL.md": skill("One.")})
        fetcher = client(server, tmp_path / "copied")
        await fetcher.bodies()
        server.routes["/skills/index.json"] = answer
        assert await fetcher.later() == {"one": "One."}
    assert (len(nothing.scope.warnings), len(fetcher.scope.warnings)) == (1, 1)


async def test_a_server_that_is_not_there_gives_the_copies(tmp_path: Path) -> None:
    with serving() as server:
        publish(server, entry("one", version=1))
        put(server, {"one/SKILL.md": skill("One.")})
        fetcher = client(server, tmp_path)
        await fetcher.bodies()
    assert await fetcher.later() == {"one": "One."}
    assert await client(server, tmp_path / "nothing").bodies() == {}


async def test_what_fails_for_a_moment_is_tried_three_times_with_growing_pauses(tmp_path: Path) -> None:
    answers: list[Any] = [Reply(status=503), Reply(status=429), skill("One.")]
    with serving() as server:
        publish(server, entry("one"))
        put(server, {"one/SKILL.md": lambda _request: answers.pop(0)})
        fetcher = client(server, tmp_path)
        assert await fetcher.bodies() == {"one": "One."}
    assert fetcher.pauses == [0.2, 0.4]


async def test_pauses_are_spread_by_chance(tmp_path: Path) -> None:
    with serving() as server:
        fetchers = [client(server, tmp_path / str(chance), chance=lambda c=chance: c) for chance in (0.0, 1.0)]
        server.routes["/skills/index.json"] = Reply(status=500)
        for each in fetchers:
            await each.bodies()
        assert len(asked(server)) == 6
    assert [each.pauses for each in fetchers] == [[0.1, 0.2], [pytest.approx(0.3), pytest.approx(0.6)]]


async def test_what_is_refused_for_good_is_asked_once(tmp_path: Path) -> None:
    with serving() as server:
        fetcher = client(server, tmp_path)
        await fetcher.bodies()
        assert asked(server) == ["index.json"]
    assert fetcher.pauses == []


async def test_a_server_that_never_answers_holds_nobody_up_for_long_and_the_copies_are_used(tmp_path: Path) -> None:
    with serving() as server:
        publish(server, entry("one", version=1))
        put(server, {"one/SKILL.md": skill("One.")})
        fetcher = client(server, tmp_path, patience=0.05)
        await fetcher.bodies()
        server.routes["/skills/index.json"] = silent()
        assert await fetcher.later() == {"one": "One."}
    assert "took longer than 0.05 s" in fetcher.scope.warnings[0]


async def test_skills_that_were_complete_when_patience_ended_are_kept(tmp_path: Path) -> None:
    with serving() as server:
        publish(server, entry("one", version=1), entry("two", version=1))
        put(server, {"one/SKILL.md": skill("One."), "two/SKILL.md": silent()})
        fetcher = client(server, tmp_path)
        async with anyio.create_task_group() as group:
            group.start_soon(fetcher.bodies)
            while not fetcher.files():  # noqa: ASYNC110 - a thread writes them
                await anyio.sleep(0.005)
            group.cancel_scope.cancel()
        put(server, {"two/SKILL.md": skill("Two.", "two")})
        asked(server)
        assert await fetcher.bodies() == {"one": "One.", "two": "Two."}
        assert asked(server) == ["index.json", "two/SKILL.md"]


async def test_after_a_failure_a_server_is_left_alone_longer_each_time(tmp_path: Path) -> None:
    counts = []
    with serving() as server:
        fetcher = client(server, tmp_path)
        for seconds in (0, 59, 1, 60, 60, 240):
            fetcher.scope.later(seconds=seconds)
            await fetcher.bodies()
            counts.append(len(asked(server)))
    assert counts == [1, 0, 1, 0, 1, 1]


# When a server is asked


async def test_a_server_is_asked_again_when_copies_are_old_and_not_before_also_by_a_new_process(
    tmp_path: Path,
) -> None:
    with serving() as server:
        publish(server, entry("one", version=1))
        put(server, {"one/SKILL.md": skill("One.")})
        first = client(server, tmp_path)
        await first.bodies()
        asked(server)
        first.scope.later(seconds=3_599)
        await first.bodies()
        second = client(server, tmp_path)
        second.scope.at = first.scope.at
        assert await second.bodies() == {"one": "One."}
        assert asked(server) == []
        second.scope.later(seconds=1)
        await second.bodies()
        assert asked(server) == ["index.json"]


async def test_a_clock_that_was_set_back_does_not_keep_old_copies_for_years(tmp_path: Path) -> None:
    with serving() as server:
        publish(server, entry("one", version=1))
        put(server, {"one/SKILL.md": skill("One.")})
        first = client(server, tmp_path)
        await first.bodies()
        second = client(server, tmp_path)
        second.scope.later(days=-400)
        asked(server)
        await second.bodies()
        assert asked(server) == ["index.json"]
        first.scope.later(days=-400)
        await first.bodies()
        second.scope.later(days=-400)
        await second.bodies()
        assert asked(server) == ["index.json"]


async def test_who_asks_while_somebody_else_refreshes_is_answered_at_once(tmp_path: Path) -> None:
    arrived, go_on = threading.Event(), threading.Event()

    def index(_request: Request) -> bytes:
        arrived.set()
        go_on.wait(10)
        return json.dumps({"skills": [entry("one", version=2)]}).encode()

    with serving() as server:
        publish(server, entry("one", version=1))
        put(server, {"one/SKILL.md": skill("One.")})
        fetcher = client(server, tmp_path)
        await fetcher.bodies()
        server.routes["/skills/index.json"] = index
        put(server, {"one/SKILL.md": skill("Two.")})
        fetcher.scope.later(hours=2)
        async with anyio.create_task_group() as group:
            group.start_soon(fetcher.bodies)
            await anyio.to_thread.run_sync(arrived.wait, 10)
            assert await fetcher.bodies() == {"one": "One."}
            go_on.set()
        assert await fetcher.bodies() == {"one": "Two."}


async def test_whoever_is_cancelled_while_refreshing_leaves_the_copies_and_no_rest(tmp_path: Path) -> None:
    with serving() as server:
        publish(server, entry("one", version=1))
        put(server, {"one/SKILL.md": skill("One.")})
        fetcher = client(server, tmp_path)
        await fetcher.bodies()
        publish(server, entry("one", "SKILL.md", "a", version=2))
        put(server, {"one/SKILL.md": skill("Two."), "one/a": silent()})
        fetcher.scope.later(hours=2)
        async with anyio.create_task_group() as group:
            group.start_soon(fetcher.bodies)
            while not server.count("/skills/one/a"):  # noqa: ASYNC110 - the server is in another thread
                await anyio.sleep(0.005)
            group.cancel_scope.cancel()
        assert fetcher.files() == {"one/SKILL.md": skill("One.").decode()}
        put(server, {"one/a": b"a"})
        assert await fetcher.bodies() == {"one": "Two."}


# What people see


async def test_a_secret_in_an_address_is_in_no_warning_and_not_on_disk(tmp_path: Path) -> None:
    with serving() as server:
        publish(server, entry("one"), entry("../x"), entry("two"))
        put(server, {"one/SKILL.md": skill("One.")})
        fetcher = client(server.url("/skills/", userinfo="me:hunter2"), tmp_path)
        await fetcher.bodies()
        failing = client(server.url("/none/", userinfo="me:hunter2"), tmp_path)
        await failing.bodies()
    said = [*fetcher.scope.warnings, *failing.scope.warnings]
    assert len(said) == 3
    assert "hunter2" not in str(said)
    assert all(b"hunter2" not in path.read_bytes() for path in written(tmp_path))


async def test_a_data_folder_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path / "skills", "a file where the folder should be")
    with serving() as server:
        publish(server, entry("one"))
        put(server, {"one/SKILL.md": skill("One.")})
        fetcher = client(server, tmp_path)
        assert await fetcher.bodies() == {}
    assert "its copy cannot be written" in fetcher.scope.warnings[0]


async def test_an_address_under_the_key_offers_skills_to_the_model(tmp_path: Path) -> None:
    with serving() as server:
        publish(server, entry("one", "SKILL.md", "a.txt"), entry("../bad"))
        put(server, {"one/SKILL.md": skill("One."), "one/a.txt": b"a"})
        local = write(tmp_path / "project/more/one.md", skill("Local."))
        for order, body in (([server.url("/skills"), "more"], "Local."), (["more", server.url("/skills")], "One.")):
            async with opened(tmp_path / "project", config={"skills": order}, data_dir=tmp_path / "data") as host:
                assert await bodies_in(host) == {"one": body}
                assert "- one: About one." in await told(host)
                assert len(warnings(host)) == (1 if asked(server) else 0)
        local.unlink()
        async with opened(
            tmp_path / "project", config={"skills": [server.url("/skills")]}, data_dir=tmp_path / "data"
        ) as host:
            text = str(await call(host, "one"))
        assert asked(server) == []
    assert "- a.txt" in text


def test_neither_a_web_client_nor_a_parser_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, plugins_builtin.skills; print(sorted({'httpx2', 'ssl', 'yaml', 'frontmatter'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


async def test_two_processes_that_refresh_at_once_both_find_everything(tmp_path: Path) -> None:
    with serving() as server:
        publish(server, *(entry(f"s{number}", version=1) for number in range(5)))
        put(server, {f"s{number}/SKILL.md": skill("x", f"s{number}") for number in range(5)})
        clients = [client(server, tmp_path) for _ in range(3)]
        async with anyio.create_task_group() as group:
            for each in clients:
                group.start_soon(each.bodies)
        asked(server)
        assert [len(await each.bodies()) for each in clients] == [5, 5, 5]
        assert asked(server) == []
    assert [each.scope.warnings for each in clients] == [[], [], []]
