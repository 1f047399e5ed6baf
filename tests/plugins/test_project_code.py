"""What a project would have imported is read once, and everything that must not be imported is refused."""

import hashlib
import json
import os
import socket
import string
import tempfile
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_core.plugins import project_code
from opencode_core.plugins.project_code import ProjectCode, read_project_code

PLUGINS = ".opencode/plugins"

posix_only = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with an empty plugin folder, and beside it a folder that is not the project's."""
    (tmp_path / "project" / PLUGINS).mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    return tmp_path / "project"


@pytest.fixture
def outside(project: Path) -> Path:
    return project.parent / "outside"


def write(folder: Path, files: Mapping[str, bytes | str]) -> Path:
    for relative, content in files.items():
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def read(project: Path, *declared: str | Path, **declarations: object) -> ProjectCode:
    paths = [Path(path) for path in declared]
    return read_project_code(project, project_root=project, declared=paths, declarations=declarations)


def names(code: ProjectCode) -> list[str]:
    return [file.relative for file in code.files]


def reasons(code: ProjectCode) -> dict[str, str]:
    return {refusal.relative: refusal.reason for refusal in code.refused}


# What is read


def test_a_project_without_opencode_folder_is_empty(tmp_path: Path) -> None:
    code = read(tmp_path)

    assert code.is_empty
    assert (code.files, code.refused, code.declarations) == ((), (), "{}")


def test_a_folder_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert read(tmp_path / "gone").is_empty


def test_python_files_of_both_plugin_folders_are_read_in_the_order_of_their_names(project: Path) -> None:
    write(project, {f"{PLUGINS}/b/c.py": "", f"{PLUGINS}/b.py": "", ".opencode/plugin/a.py": ""})

    assert names(read(project)) == [".opencode/plugin/a.py", f"{PLUGINS}/b.py", f"{PLUGINS}/b/c.py"]


def test_a_file_is_kept_with_its_bytes_its_hash_and_its_path(project: Path) -> None:
    write(project, {f"{PLUGINS}/a.py": b"a = '\xff'\r\n"})

    [file] = read(project).files

    assert file.content == b"a = '\xff'\r\n"
    assert file.sha256 == hashlib.sha256(b"a = '\xff'\r\n").hexdigest()
    assert file.path == project / PLUGINS / "a.py"


def test_a_file_that_is_swapped_after_reading_does_not_change_what_was_read(project: Path) -> None:
    write(project, {f"{PLUGINS}/a.py": "good"})
    code = read(project)

    write(project, {f"{PLUGINS}/a.py": "evil"})

    assert code.files[0].content == b"good"


@pytest.mark.parametrize("name", ["a.pyc", "a.so", "a.pyd", "a.txt", "py", "__pycache__/a.py", ".git/a.py", ".#a.py"])
def test_what_is_never_imported_is_not_listed(project: Path, name: str) -> None:
    write(project, {f"{PLUGINS}/{name}": "x"})

    assert read(project).is_empty
    assert read(project).refused == ()


def test_code_outside_of_the_plugin_folders_is_not_read_unless_declared(project: Path) -> None:
    write(project, {"app.py": "", ".opencode/app.py": ""})

    assert read(project).is_empty


def test_a_declared_file_is_read(project: Path) -> None:
    write(project, {"tools/one.py": "1", "tools/two.py": "2"})

    assert names(read(project, "tools/one.py")) == ["tools/one.py"]


def test_a_declared_package_is_read_with_its_submodules(project: Path) -> None:
    write(project, {"tools/__init__.py": "", "tools/sub/two.py": "", "tools/data.json": ""})

    assert names(read(project, "tools")) == ["tools/__init__.py", "tools/sub/two.py"]


def test_a_declared_path_may_lie_in_a_hidden_folder(project: Path) -> None:
    write(project, {".opencode/extra/one.py": ""})

    assert names(read(project, ".opencode/extra/one.py")) == [".opencode/extra/one.py"]


def test_a_declared_path_may_be_absolute(project: Path) -> None:
    write(project, {"one.py": ""})

    assert read(project, project / "one.py") == read(project, "one.py")


def test_what_is_declared_twice_or_found_anyway_is_listed_once(project: Path) -> None:
    write(project, {f"{PLUGINS}/a.py": ""})

    code = read(project, f"{PLUGINS}/a.py", f"./{PLUGINS}/../plugins/a.py", PLUGINS)

    assert names(code) == [f"{PLUGINS}/a.py"]


def test_a_declared_path_above_the_folder_is_named_relative_to_the_folder(project: Path) -> None:
    write(project, {"shared/one.py": "", "app/keep.txt": ""})

    code = read_project_code(project / "app", project_root=project, declared=[project / "shared" / "one.py"])

    assert names(code) == ["../shared/one.py"]
    assert code.files[0].path == project / "shared" / "one.py"


@posix_only
def test_a_declared_link_above_the_folder_keeps_its_own_name(project: Path) -> None:
    write(project, {"real.py": "", "app/keep.txt": ""})
    (project / "link.py").symlink_to("real.py")
    declared = [project / "link.py", project / "real.py"]

    code = read_project_code(project / "app", project_root=project, declared=declared)

    assert names(code) == ["../link.py", "../real.py"]


def test_a_nested_folder_has_its_own_plugins(project: Path) -> None:
    write(project, {f"{PLUGINS}/outer.py": "", f"app/{PLUGINS}/inner.py": ""})

    assert names(read_project_code(project / "app", project_root=project)) == [f"{PLUGINS}/inner.py"]


def test_a_relative_folder_is_made_absolute(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, {f"{PLUGINS}/a.py": ""})
    monkeypatch.chdir(project)

    code = read_project_code(Path(), project_root=Path())

    assert code.folder == project
    assert code.files[0].path == project / PLUGINS / "a.py"


# Links


@posix_only
@pytest.mark.parametrize("name", ["link.py", "link"])
def test_a_link_that_stays_in_the_project_is_followed(project: Path, name: str) -> None:
    write(project, {"src/one.py": "1"})
    target = project / "src" / ("one.py" if name.endswith(".py") else "")
    (project / PLUGINS / name).symlink_to(target)

    code = read(project)

    relative = f"{PLUGINS}/link.py" if name == "link.py" else f"{PLUGINS}/link/one.py"
    assert names(code) == [relative]
    assert code.files[0].path == project / relative
    assert code.files[0].content == b"1"
    assert code.refused == ()


@posix_only
def test_a_file_that_is_a_link_out_of_the_project_is_refused(project: Path, outside: Path) -> None:
    write(outside, {"evil.py": "evil"})
    (project / PLUGINS / "a.py").symlink_to(outside / "evil.py")

    code = read(project)

    assert code.files == ()
    where = f"leads to '{outside}/evil.py', which is outside of the project '{project}'."
    assert reasons(code) == {f"{PLUGINS}/a.py": f"'{PLUGINS}/a.py' {where}"}


@posix_only
def test_a_chain_of_links_is_judged_by_where_it_ends(project: Path, outside: Path) -> None:
    write(outside, {"evil.py": "evil"})
    (project / "hop.py").symlink_to("../outside/evil.py")
    (project / PLUGINS / "a.py").symlink_to("../../hop.py")

    code = read(project)

    assert (code.files, list(reasons(code))) == ((), [f"{PLUGINS}/a.py"])


@posix_only
@pytest.mark.parametrize("linked", [".opencode", PLUGINS, f"{PLUGINS}/package"])
def test_a_folder_that_is_a_link_out_of_the_project_is_refused(project: Path, outside: Path, linked: str) -> None:
    write(outside, {"evil.py": "evil", "plugins/evil.py": "evil", "plugins/package/evil.py": "evil"})
    (project / PLUGINS).rmdir()
    (project / ".opencode").rmdir()
    (project / linked).parent.mkdir(parents=True, exist_ok=True)
    (project / linked).symlink_to(outside, target_is_directory=True)

    code = read(project)

    assert code.files == ()
    assert list(reasons(code)) == [linked]
    assert "outside of the project" in reasons(code)[linked]


@posix_only
def test_a_declared_file_below_a_link_out_of_the_project_is_refused(project: Path, outside: Path) -> None:
    write(outside, {"evil.py": "evil"})
    (project / "lib").symlink_to(outside)

    code = read(project, "lib/evil.py")

    assert (code.files, list(reasons(code))) == ((), ["lib/evil.py"])


@posix_only
def test_a_folder_whose_name_begins_like_the_projects_is_outside(project: Path) -> None:
    sibling = write(project.with_name("project-2"), {"evil.py": ""})
    (project / PLUGINS / "a.py").symlink_to(sibling / "evil.py")

    assert read(project).files == ()


@posix_only
def test_a_folder_that_is_itself_a_link_out_of_the_project_gives_nothing(project: Path, outside: Path) -> None:
    write(outside, {f"{PLUGINS}/evil.py": "evil"})
    (project / "app").symlink_to(outside)

    code = read_project_code(project / "app", project_root=project)

    assert (code.files, list(reasons(code))) == ((), [".opencode"])


@posix_only
def test_a_project_that_is_reached_by_a_link_is_read_as_if_it_were_not(project: Path) -> None:
    write(project, {f"{PLUGINS}/a.py": "", "lib/b.py": ""})
    alias = project.with_name("alias")
    alias.symlink_to(project)

    code = read_project_code(alias, project_root=project, declared=[project / "lib/b.py", alias / "lib"])

    assert names(code) == [f"{PLUGINS}/a.py", "lib/b.py"]
    assert code.refused == ()
    assert code.digest == read(project, "lib").digest


@posix_only
def test_a_declared_path_by_another_way_into_the_project_gets_the_same_name(project: Path) -> None:
    write(project, {"lib/b.py": ""})
    alias = project.with_name("alias")
    alias.symlink_to(project)

    assert read(project, alias / "lib/b.py").digest == read(project, "lib/b.py").digest


@posix_only
@pytest.mark.parametrize("name", ["a.py", "package", "notes.txt"])
def test_a_link_that_leads_nowhere_is_refused(project: Path, name: str) -> None:
    (project / PLUGINS / name).symlink_to("missing")

    assert reasons(read(project)) == {
        f"{PLUGINS}/{name}": f"'{PLUGINS}/{name}' does not exist, or is a link that leads nowhere."
    }


@posix_only
@pytest.mark.parametrize("name", ["a.py", "package"])
def test_a_link_that_leads_in_a_circle_is_refused(project: Path, name: str) -> None:
    (project / PLUGINS / name).symlink_to("other")
    (project / PLUGINS / "other").symlink_to(name)

    assert reasons(read(project))[f"{PLUGINS}/{name}"] == f"'{PLUGINS}/{name}' is a link that leads in a circle."


@posix_only
def test_an_opencode_folder_that_is_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".opencode").symlink_to(".opencode")

    assert list(reasons(read(tmp_path))) == [".opencode"]


@posix_only
def test_a_link_to_a_folder_above_it_is_refused_and_the_rest_is_read(project: Path) -> None:
    write(project, {f"{PLUGINS}/package/a.py": ""})
    (project / PLUGINS / "package" / "again").symlink_to("..")

    code = read(project)

    assert names(code) == [f"{PLUGINS}/package/a.py"]
    again = f"{PLUGINS}/package/again"
    assert reasons(code) == {again: f"'{again}' is a link that leads back to a folder it is in."}


@posix_only
@pytest.mark.timeout(30)
def test_folders_that_all_link_to_each_other_end_in_a_refusal(project: Path) -> None:
    folders = [project / PLUGINS / letter for letter in "abcdefghijkl"]
    for folder in folders:
        folder.mkdir()
    for folder in folders:
        for other in folders:
            (folder / f"to_{other.name}").symlink_to(other)

    code = read(project)

    assert (code.files, list(reasons(code))) == ((), [PLUGINS])


@posix_only
@pytest.mark.timeout(30)
def test_links_that_double_the_folders_at_each_level_end_in_a_refusal(project: Path) -> None:
    for level in range(30):
        folder = project / "levels" / str(level)
        folder.mkdir(parents=True)
        (folder / "left").symlink_to(f"../{level + 1}")
        (folder / "right").symlink_to(f"../{level + 1}")
    (project / "levels" / "30").mkdir()

    code = read(project, "levels/0")

    assert code.files == ()
    assert "to more than 20,000 names" in reasons(code)["levels/0"]


# What else is refused


def test_a_declared_path_outside_of_the_project_is_refused(project: Path, outside: Path) -> None:
    write(outside, {"evil.py": "evil"})

    code = read(project, outside / "evil.py", "../outside")

    assert code.files == ()
    assert list(reasons(code)) == [outside.as_posix(), (outside / "evil.py").as_posix()]
    assert all("outside of the project" in reason for reason in reasons(code).values())


def test_a_declared_path_that_does_not_exist_is_refused(project: Path) -> None:
    assert "does not exist" in reasons(read(project, "missing.py"))["missing.py"]


def test_a_declared_file_that_is_not_python_is_refused(project: Path) -> None:
    write(project, {"tool.so": ""})

    assert reasons(read(project, "tool.so")) == {"tool.so": "'tool.so' is neither a Python file nor a folder."}


def test_a_declared_path_that_no_file_can_have_is_refused(project: Path) -> None:
    code = read(project, "a\0b.py", "\ud800.py", "x" * 5000 + ".py", "/\0.py")

    assert code.files == ()
    assert len(code.refused) == 4


@posix_only
@pytest.mark.timeout(20)
def test_a_fifo_is_refused_without_waiting_for_a_writer(project: Path) -> None:
    os.mkfifo(project / PLUGINS / "a.py")

    assert reasons(read(project)) == {f"{PLUGINS}/a.py": f"'{PLUGINS}/a.py' is neither a regular file nor a folder."}


@posix_only
def test_what_is_not_a_regular_file_is_not_even_opened(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(project / PLUGINS / "a.py")
    opened = []
    monkeypatch.setattr(os, "open", lambda path, flags: opened.append(path))

    read(project)

    assert opened == []


@posix_only
@pytest.mark.timeout(20)
def test_a_fifo_that_takes_the_place_of_a_file_between_look_and_open_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, {f"{PLUGINS}/a.py": ""})
    really_open = os.open

    def swap_then_open(path: str, flags: int) -> int:
        os.unlink(path)
        os.mkfifo(path)
        return really_open(path, flags)

    monkeypatch.setattr(os, "open", swap_then_open)

    assert list(reasons(read(project))) == [f"{PLUGINS}/a.py"]


@posix_only
def test_a_link_that_takes_the_place_of_a_file_between_look_and_open_is_refused(
    project: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, {f"{PLUGINS}/a.py": "good"})
    write(outside, {"evil.py": "evil"})
    really_open = os.open

    def swap_then_open(path: str, flags: int) -> int:
        os.unlink(path)
        os.symlink(outside / "evil.py", path)
        return really_open(path, flags)

    monkeypatch.setattr(os, "open", swap_then_open)

    code = read(project)
    assert (code.files, list(reasons(code))) == ((), [f"{PLUGINS}/a.py"])


@posix_only
def test_a_socket_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # A socket's path may have about 100 characters, fewer than pytest's folders have.
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as server:
        (Path(short) / PLUGINS).mkdir(parents=True)
        server.bind(f"{short}/{PLUGINS}/a.py")

        assert list(reasons(read(Path(short)))) == [f"{PLUGINS}/a.py"]


@posix_only
@pytest.mark.timeout(20)
def test_a_device_is_refused(project: Path) -> None:
    (project / PLUGINS / "a.py").symlink_to("/dev/zero")

    code = read_project_code(project, project_root=Path("/"))

    assert "neither a regular file" in reasons(code)[f"{PLUGINS}/a.py"]


@pytest.fixture
def not_root() -> Iterator[Path]:
    """A folder of somebody whom permissions bind, also when root runs the tests."""
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid() != 0:
            yield Path(folder)
            return
        os.chown(folder, 65534, 65534)
        try:
            os.seteuid(65534)
        except OSError:
            pytest.skip("cannot become somebody else")
        try:
            yield Path(folder)
        finally:
            os.seteuid(0)


@posix_only
def test_an_unreadable_file_is_refused(not_root: Path) -> None:
    write(not_root, {f"{PLUGINS}/a.py": "", f"{PLUGINS}/b.py": ""})
    (not_root / PLUGINS / "a.py").chmod(0)

    code = read(not_root)

    assert names(code) == [f"{PLUGINS}/b.py"]
    assert reasons(code) == {f"{PLUGINS}/a.py": f"'{PLUGINS}/a.py' cannot be read (Permission denied)."}


@posix_only
def test_an_unreadable_folder_is_refused(not_root: Path) -> None:
    write(not_root, {f"{PLUGINS}/package/a.py": ""})
    (not_root / PLUGINS / "package").chmod(0)

    code = read(not_root)
    (not_root / PLUGINS / "package").chmod(0o700)

    assert (code.files, list(reasons(code))) == ((), [f"{PLUGINS}/package"])


def test_a_file_of_four_mebibytes_is_read_and_a_larger_one_refused(project: Path) -> None:
    write(project, {f"{PLUGINS}/fits.py": b"#" * 4 * 1024**2, f"{PLUGINS}/large.py": b"#" * (4 * 1024**2 + 1)})

    code = read(project)

    assert names(code) == [f"{PLUGINS}/fits.py"]
    assert reasons(code) == {f"{PLUGINS}/large.py": f"'{PLUGINS}/large.py' is larger than 4 MiB."}


@posix_only
@pytest.mark.skipif("sys.platform == 'darwin'", reason="macOS has no such names")
@pytest.mark.parametrize("name", [b"\xff.py", b"\xff/a.py"])
def test_a_name_that_is_not_utf8_is_refused_and_shown_escaped(project: Path, name: bytes) -> None:
    path = os.path.join(os.fsencode(project / PLUGINS), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb"):
        pass

    code = read(project)

    shown = f"{PLUGINS}/" + name.split(b"/")[0].decode(errors="surrogateescape").replace("\udcff", "\\udcff")
    assert code.files == ()
    assert reasons(code) == {shown: f"'{shown}' has a name with characters that are not printable UTF-8 text."}


@posix_only
def test_a_name_that_a_terminal_would_act_on_is_refused_and_shown_escaped(project: Path) -> None:
    write(project, {f"{PLUGINS}/\x1b[2Ka.py": ""})

    [refusal] = read(project).refused

    assert refusal.relative == f"{PLUGINS}/\\x1b[2Ka.py"
    assert refusal.reason.isprintable()


@posix_only
def test_the_target_of_a_link_is_shown_escaped(project: Path, outside: Path) -> None:
    write(outside, {"\x1b[2K.py": ""})
    (project / PLUGINS / "a.py").symlink_to(outside / "\x1b[2K.py")

    [refusal] = read(project).refused

    assert refusal.reason.isprintable()


def test_more_files_than_the_limit_refuse_their_folder_and_leave_the_others(project: Path) -> None:
    write(project, {f"{PLUGINS}/kept.py": ""} | {f"lib/m{number}.py": "" for number in range(2_000)})

    code = read(project, "lib")

    assert names(code) == [f"{PLUGINS}/kept.py"]
    assert reasons(code) == {
        "lib": "'lib' brings the project's plugins to more than 2,000 files, so nothing in it is imported."
    }


def test_as_many_files_as_the_limit_are_read(project: Path) -> None:
    write(project, {f"{PLUGINS}/m{number}.py": "" for number in range(2_000)})

    code = read(project, PLUGINS)

    assert (len(code.files), code.refused) == (2_000, ())


def test_more_content_than_the_limit_refuses_the_folder(project: Path) -> None:
    for number in range(17):
        with open(project / PLUGINS / f"m{number}.py", "wb") as file:
            file.truncate(4 * 1024**2)

    code = read(project)

    assert (code.files, list(reasons(code))) == ((), [PLUGINS])


def test_a_tree_deeper_than_the_limit_is_refused_where_it_gets_too_deep(project: Path) -> None:
    deep = "d/" * (project_code.DEPTH_LIMIT + 1)
    write(project, {f"{PLUGINS}/a.py": "", f"{PLUGINS}/{deep}b.py": ""})

    code = read(project)

    assert names(code) == [f"{PLUGINS}/a.py"]
    assert "folders deep" in code.refused[0].reason


# The digest


def test_the_digest_does_not_depend_on_time_or_place_or_the_order_of_folders(tmp_path: Path) -> None:
    files = {f"{PLUGINS}/{letter}.py": letter for letter in "abcdef"}
    one = write(tmp_path / "one", files)
    two = write(tmp_path / "elsewhere" / "two", dict(reversed(files.items())))
    os.utime(two / PLUGINS / "a.py", (1, 1))

    assert read(one).digest == read(two).digest


@posix_only
def test_the_digest_does_not_depend_on_the_place_when_something_is_refused(tmp_path: Path) -> None:
    digests = set()
    for place in ("one", "two"):
        project = write(tmp_path / place, {f"{PLUGINS}/a.py": ""})
        (project / PLUGINS / "out.py").symlink_to("../../../evil.py")
        (tmp_path / "evil.py").touch()
        digests.add(read(project).digest)

    assert len(digests) == 1


@posix_only
def test_a_file_that_becomes_a_link_out_of_the_project_changes_the_digest(project: Path, outside: Path) -> None:
    write(outside, {"same.py": "same"})
    write(project, {f"{PLUGINS}/a.py": "same", f"{PLUGINS}/b.py": ""})
    before = read(project).digest
    (project / PLUGINS / "a.py").unlink()
    (project / PLUGINS / "a.py").symlink_to(outside / "same.py")

    assert read(project).digest != before


def test_content_that_moves_from_one_file_to_another_changes_the_digest(project: Path) -> None:
    before = read(write(project, {f"{PLUGINS}/a.py": "1", f"{PLUGINS}/b.py": "2"})).digest

    assert read(write(project, {f"{PLUGINS}/a.py": "2", f"{PLUGINS}/b.py": "1"})).digest != before


def test_declarations_are_canonical_json_and_part_of_the_digest(project: Path) -> None:
    one = read(project, plugins={"b": 1, "a": MappingProxyType({"since": date(2025, 1, 2), "at": Path("x")})})
    two = read(project, plugins={"a": {"at": "x", "since": "2025-01-02"}, "b": 1})

    assert one.declarations == '{"plugins":{"a":{"at":"x","since":"2025-01-02"},"b":1}}'
    assert one.digest == two.digest != read(project).digest
    assert not one.is_empty


def test_a_declaration_that_no_configuration_file_can_hold_is_a_defect(project: Path) -> None:
    with pytest.raises(TypeError, match="'object' is not a value of a configuration file"):
        read(project, plugins=object())


file_names = st.text(string.ascii_lowercase, min_size=1, max_size=6).map(lambda name: f"{PLUGINS}/{name}.py")
trees = st.dictionaries(file_names, st.binary(max_size=20), max_size=5)


@settings(max_examples=50)
@given(trees, trees)
def test_two_trees_have_one_digest_exactly_when_they_are_equal(one: dict[str, bytes], two: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first = read(write(Path(folder) / "one", one))
        second = read(write(Path(folder) / "two", two))

    assert (first.digest == second.digest) == (one == two)


@settings(max_examples=50)
@given(trees.filter(bool), st.data())
def test_one_changed_byte_changes_the_digest(tree: dict[str, bytes], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(tree)))
    extended = tree | {name: tree[name] + data.draw(st.binary(min_size=1, max_size=1))}
    with tempfile.TemporaryDirectory() as folder:
        before = read(write(Path(folder), tree)).digest
        after = read(write(Path(folder), extended)).digest

    assert before != after


@given(st.recursive(st.booleans() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5))
def test_declarations_keep_what_they_say(value: object) -> None:
    code = read(Path("/nowhere"), plugins=value)

    assert json.loads(code.declarations) == {"plugins": value}
