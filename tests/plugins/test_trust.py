"""A project's code is trusted only as it was when a person said so, and that record survives everything."""

import os
import shutil
import signal
import stat
import string
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_core.errors import OpencodeError, PluginUntrustedError, TrustError
from opencode_core.plugins.project_code import ProjectCode, Refusal, SourceFile, read_project_code
from opencode_core.plugins.trust import Changed, Trusted, TrustStore, Unknown, untrusted_error

PLUGINS = ".opencode/plugins"
WHEN = "2025-11-18T08:00:00Z"

posix_only = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "state" / "trust.toml")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(tmp_path / "project", {f"{PLUGINS}/a.py": "a", f"{PLUGINS}/b.py": "b"})


def write(folder: Path, files: Mapping[str, bytes | str]) -> Path:
    for relative, content in files.items():
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def read(project: Path, **declarations: object) -> ProjectCode:
    return read_project_code(project, project_root=project, declarations=declarations)


def code_of(folder: Path, *, content: bytes = b"") -> ProjectCode:
    file = SourceFile(relative="a.py", path=folder / "a.py", content=content)
    return ProjectCode(folder=folder, files=(file,), refused=())


# Verdicts


def test_code_that_nobody_decided_about_is_unknown(store: TrustStore, project: Path) -> None:
    assert store.verdict(read(project)) == Unknown()


def test_asking_for_a_verdict_writes_nothing(store: TrustStore, project: Path) -> None:
    store.verdict(read(project))

    assert not store.path.parent.exists()


def test_code_that_was_trusted_is_trusted_when_read_again(store: TrustStore, project: Path) -> None:
    store.trust(read(project), when=WHEN)

    assert store.verdict(read(project)) == Trusted()


def test_a_decision_is_seen_by_another_store_on_the_same_file(store: TrustStore, project: Path) -> None:
    store.trust(read(project), when=WHEN)

    assert TrustStore(store.path).verdict(read(project)) == Trusted()


def test_a_project_without_code_and_declarations_is_trusted_without_a_record(store: TrustStore, tmp_path: Path) -> None:
    assert store.verdict(read(tmp_path)) == Trusted()
    assert not store.path.exists()


def test_a_project_in_which_everything_is_refused_is_trusted_because_nothing_would_run(
    store: TrustStore, tmp_path: Path
) -> None:
    refusal = Refusal(relative="a.py", reason="'a.py' is larger than 4 MiB.")

    assert store.verdict(ProjectCode(folder=tmp_path, files=(), refused=(refusal,))) == Trusted()


def test_declarations_alone_need_a_decision(store: TrustStore, tmp_path: Path) -> None:
    assert store.verdict(read(tmp_path, plugins=["some-package"])) == Unknown()


def test_files_that_were_added_removed_and_modified_are_named(store: TrustStore, project: Path) -> None:
    store.trust(read(project), when=WHEN)
    write(project, {f"{PLUGINS}/a.py": "other", f"{PLUGINS}/c.py": ""})
    (project / PLUGINS / "b.py").unlink()

    assert store.verdict(read(project)) == Changed(
        added=(f"{PLUGINS}/c.py",),
        removed=(f"{PLUGINS}/b.py",),
        modified=(f"{PLUGINS}/a.py",),
        declarations=False,
    )


def test_a_change_that_is_undone_is_trusted_again(store: TrustStore, project: Path) -> None:
    store.trust(read(project), when=WHEN)
    write(project, {f"{PLUGINS}/a.py": "other"})
    write(project, {f"{PLUGINS}/a.py": "a"})

    assert store.verdict(read(project)) == Trusted()


def test_changed_declarations_ask_again(store: TrustStore, project: Path) -> None:
    store.trust(read(project, plugins={"a": 1}), when=WHEN)

    assert store.verdict(read(project, plugins={"a": 2})) == Changed(
        added=(), removed=(), modified=(), declarations=True
    )


@posix_only
def test_a_file_that_becomes_a_link_out_of_the_project_is_modified(store: TrustStore, project: Path) -> None:
    store.trust(read(project), when=WHEN)
    (project.parent / "same.py").write_text("a")
    (project / PLUGINS / "a.py").unlink()
    (project / PLUGINS / "a.py").symlink_to(project.parent / "same.py")

    code = read(project)

    assert store.verdict(code) == Changed(added=(), removed=(), modified=(f"{PLUGINS}/a.py",), declarations=False)
    assert [refusal.relative for refusal in code.refused] == [f"{PLUGINS}/a.py"]


def test_a_file_with_the_shown_name_of_a_refused_one_is_still_compared(store: TrustStore, tmp_path: Path) -> None:
    refused = (Refusal(relative="a.py", reason="'a.py' is larger than 4 MiB."),)
    before, now = code_of(tmp_path, content=b"1"), code_of(tmp_path, content=b"2")
    store.trust(ProjectCode(folder=tmp_path, files=before.files, refused=refused), when=WHEN)

    changed = Changed(added=(), removed=(), modified=("a.py",), declarations=False)
    assert store.verdict(ProjectCode(folder=tmp_path, files=now.files, refused=refused)) == changed
    assert store.verdict(before) == changed


def test_trusting_again_takes_the_place_of_the_decision_before(store: TrustStore, project: Path) -> None:
    before = read(project)
    store.trust(before, when=WHEN)
    store.trust(read(write(project, {f"{PLUGINS}/a.py": "other"})), when="later")

    assert store.verdict(read(project)) == Trusted()
    assert isinstance(store.verdict(before), Changed)
    assert [trusted.when for trusted in store.projects()] == ["later"]


def test_the_same_code_in_another_folder_is_unknown(store: TrustStore, project: Path, tmp_path: Path) -> None:
    store.trust(read(project), when=WHEN)
    copy = Path(shutil.copytree(project, tmp_path / "copy"))

    assert store.verdict(read(copy)) == Unknown()


@posix_only
def test_a_project_is_the_same_by_whatever_link_it_is_reached(store: TrustStore, project: Path) -> None:
    alias = project.with_name("alias")
    alias.symlink_to(project)
    store.trust(read(alias), when=WHEN)

    assert store.verdict(read(project)) == Trusted()
    assert [trusted.folder for trusted in store.projects()] == [project]


# Revoking and listing


def test_a_revoked_decision_is_gone_and_the_others_stay(store: TrustStore, tmp_path: Path) -> None:
    store.trust(code_of(tmp_path / "one"), when=WHEN)
    store.trust(code_of(tmp_path / "two"), when=WHEN)

    assert store.revoke(tmp_path / "one")
    assert store.verdict(code_of(tmp_path / "one")) == Unknown()
    assert store.verdict(code_of(tmp_path / "two")) == Trusted()


def test_revoking_what_was_never_trusted_says_so_and_writes_nothing(store: TrustStore, tmp_path: Path) -> None:
    assert not store.revoke(tmp_path)
    assert not store.path.parent.exists()


def test_projects_are_listed_by_folder_with_what_was_trusted(store: TrustStore, project: Path) -> None:
    code = read(project)
    store.trust(code, when=WHEN)
    store.trust(code_of(project.with_name("another")), when=WHEN)

    another, trusted = store.projects()

    assert (another.folder, trusted.folder) == (project.with_name("another"), project)
    assert (trusted.digest, trusted.when) == (code.digest, WHEN)
    assert trusted.files == {file.relative: file.sha256 for file in code.files}


def test_the_record_does_not_hold_the_text_of_declarations(store: TrustStore, tmp_path: Path) -> None:
    store.trust(read(tmp_path, plugins={"a": {"token": "hunter2"}}), when=WHEN)

    assert "hunter2" not in store.path.read_text()


@settings(max_examples=50)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.binary(max_size=3), max_size=4))
def test_any_names_of_files_survive_the_record(contents: dict[str, bytes]) -> None:
    files = tuple(SourceFile(relative=name, path=Path("a.py"), content=body) for name, body in contents.items())
    code = ProjectCode(folder=Path('/it\'s "a" project\n'), files=files, refused=(), declarations='{"a":1}')
    with tempfile.TemporaryDirectory() as folder:
        store = TrustStore(Path(folder) / "trust.toml")
        store.trust(code, when=WHEN)

        assert store.verdict(code) == Trusted()
        assert store.projects()[0].files == {file.relative: file.sha256 for file in files}


@posix_only
def test_a_project_whose_path_is_not_utf8_cannot_be_recorded(store: TrustStore, tmp_path: Path) -> None:
    code = code_of(tmp_path / "\udcff")

    with pytest.raises(TrustError, match="Rename the folder"):
        store.trust(code, when=WHEN)
    assert store.verdict(code) == Unknown()


# Properties


file_names = st.text(string.ascii_lowercase, min_size=1, max_size=4).map(lambda name: f"{PLUGINS}/{name}.py")
trees = st.dictionaries(file_names, st.binary(max_size=8), min_size=1, max_size=5)


@settings(max_examples=50)
@given(trees, trees)
def test_the_verdict_names_exactly_what_differs(before: dict[str, bytes], now: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = TrustStore(Path(folder) / "trust.toml")
        project = write(Path(folder) / "project", before)
        store.trust(read(project), when=WHEN)
        shutil.rmtree(project)
        verdict = store.verdict(read(write(project, now)))

    different = Changed(
        added=tuple(sorted(now.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - now.keys())),
        modified=tuple(sorted(name for name in before.keys() & now.keys() if before[name] != now[name])),
        declarations=False,
    )
    assert verdict == (Trusted() if before == now else different)


@settings(max_examples=50)
@given(trees, st.data())
def test_any_single_change_to_any_file_asks_again(tree: dict[str, bytes], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(tree)))
    other = data.draw(file_names.filter(lambda drawn: drawn not in tree))
    rest = {key: content for key, content in tree.items() if key != name}
    changes = {
        "modified": tree | {name: tree[name] + b"\n"},
        "added": tree | {other: b""},
        "renamed": rest | {other: tree[name]},
    }
    with tempfile.TemporaryDirectory() as folder:
        store = TrustStore(Path(folder) / "trust.toml")
        project = write(Path(folder) / "project", tree)
        store.trust(read(project), when=WHEN)
        verdicts = {}
        for change, changed in changes.items():
            shutil.rmtree(project)
            verdicts[change] = store.verdict(read(write(project, changed)))

    assert verdicts == {
        "modified": Changed(added=(), removed=(), modified=(name,), declarations=False),
        "added": Changed(added=(other,), removed=(), modified=(), declarations=False),
        "renamed": Changed(added=(other,), removed=(name,), modified=(), declarations=False),
    }


@settings(max_examples=50)
@given(trees)
def test_moving_a_project_keeps_its_digest(tree: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = write(Path(folder) / "project", tree)
        before = read(project).digest
        (Path(folder) / "deeper" / "down").mkdir(parents=True)
        moved = project.rename(Path(folder) / "deeper" / "down" / "renamed")

        assert read(moved).digest == before


# The file


@posix_only
def test_only_the_owner_can_read_the_record_and_its_folder(store: TrustStore, project: Path) -> None:
    before = os.umask(0)
    try:
        store.trust(read(project), when=WHEN)
    finally:
        os.umask(before)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in store.path.parent.iterdir()}
    assert modes == {"trust.toml": 0o600, "trust.toml.lock": 0o600}
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


@posix_only
def test_a_record_that_others_could_read_is_closed_when_it_is_written(store: TrustStore, project: Path) -> None:
    store.trust(read(project), when=WHEN)
    store.path.chmod(0o644)

    store.revoke(project)

    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


@posix_only
def test_a_folder_that_was_there_before_keeps_its_permissions(tmp_path: Path, project: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o755)

    TrustStore(tmp_path / "shared" / "trust.toml").trust(read(project), when=WHEN)

    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o755


def test_the_record_has_a_version(store: TrustStore, project: Path) -> None:
    store.trust(read(project), when=WHEN)

    assert store.path.read_text().startswith("version = 1\n")


DAMAGED = {
    "empty": (b"", "has no version"),
    "text": (b"hello", "is not TOML"),
    "bytes": (b"\xff\xfe", "is not UTF-8 text"),
    "half": (b"version = 1\n[projects.'/x']\ndige", "is not TOML"),
    "version": (b"version = 'one'", "has no version"),
    "zero": (b"version = 0", "has no version"),
    "truth": (b"version = true", "has no version"),
    "projects": (b"version = 1\nprojects = 3", "'projects' is not a table"),
    "entry": (b"version = 1\nprojects.'/x' = 3", "the entry of '/x' is incomplete"),
    "field": (b"version = 1\n[projects.'/x']\ndigest = 'd'\nwhen = 'w'", "the entry of '/x' is incomplete"),
    "hash": (
        b"version = 1\n[projects.'/x']\ndigest='d'\nwhen='w'\ndeclarations='c'\nfiles={a=1}",
        "the entry of '/x' is incomplete or has values of the wrong type",
    ),
}


@pytest.mark.parametrize(("content", "wrong"), DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("action", ["verdict", "trust", "revoke", "projects"])
def test_a_damaged_record_is_an_error_that_changes_nothing(
    store: TrustStore, project: Path, content: bytes, wrong: str, action: str
) -> None:
    write(store.path.parent, {store.path.name: content})
    actions = {
        "verdict": lambda: store.verdict(read(project)),
        "trust": lambda: store.trust(read(project), when=WHEN),
        "revoke": lambda: store.revoke(project),
        "projects": store.projects,
    }

    with pytest.raises(TrustError) as caught:
        actions[action]()

    assert str(store.path) in caught.value.problem
    assert wrong in caught.value.problem
    assert "Move it aside" in caught.value.remedy
    assert store.path.read_bytes() == content


@pytest.mark.parametrize("action", ["verdict", "trust"])
def test_a_record_of_a_newer_version_is_an_error_that_changes_nothing(
    store: TrustStore, project: Path, action: str
) -> None:
    write(store.path.parent, {store.path.name: "version = 2\nfuture = true\n"})

    with pytest.raises(TrustError, match="has version 2; known here is 1") as caught:
        store.verdict(read(project)) if action == "verdict" else store.trust(read(project), when=WHEN)

    assert "move the file aside" in caught.value.remedy
    assert store.path.read_text() == "version = 2\nfuture = true\n"


def test_a_folder_in_the_place_of_the_record_is_an_error(store: TrustStore, project: Path) -> None:
    store.path.mkdir(parents=True)

    with pytest.raises(TrustError, match="cannot be read"):
        store.verdict(read(project))


def test_a_record_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path, project: Path) -> None:
    (tmp_path / "state").write_text("a file")
    store = TrustStore(tmp_path / "state" / "trust.toml")

    with pytest.raises(TrustError) as caught:
        store.trust(read(project), when=WHEN)

    assert str(store.path) in caught.value.problem


def test_a_full_disk_leaves_the_record_as_it_was(
    store: TrustStore, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.trust(read(project), when=WHEN)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(TrustError, match="No space left on device"):
            store.revoke(project)

    assert store.verdict(read(project)) == Trusted()
    assert store.revoke(project)


# Other processes

TRUSTING = textwrap.dedent(
    """
    import sys, itertools
    from pathlib import Path
    from opencode_core.plugins.project_code import ProjectCode
    from opencode_core.plugins.trust import TrustStore

    store, base, most = TrustStore(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
    print("ready", flush=True)
    sys.stdin.readline()
    for number in itertools.islice(itertools.count(), most or None):
        folder = Path(f"{base}{number:06}")
        store.trust(ProjectCode(folder=folder, files=(), refused=(), declarations='{"a":1}'), when="now")
        print(folder, flush=True)
    """
)


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def trusting(store: TrustStore, base: Path, most: int = 0) -> subprocess.Popen[str]:
    """Start a process that is ready to trust many projects, and begins when it is sent a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", TRUSTING, str(store.path), str(base), str(most)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_two_processes_that_trust_at_the_same_time_lose_nothing(store: TrustStore, tmp_path: Path) -> None:
    with (
        trusting(store, tmp_path / "one-", 30) as one,
        trusting(store, tmp_path / "two-", 30) as two,
    ):
        for process in (one, two):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        acknowledged = {line for process in (one, two) for line in process.communicate(timeout=50)[0].split()}

    assert (one.returncode, two.returncode) == (0, 0)
    assert len(acknowledged) == 60
    assert {str(project.folder) for project in store.projects()} == acknowledged


@posix_only
@pytest.mark.parametrize("decisions", [1, 7, 20])
def test_a_process_that_is_killed_while_trusting_leaves_every_acknowledged_decision(
    store: TrustStore, tmp_path: Path, decisions: int
) -> None:
    with trusting(store, tmp_path / "one-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        acknowledged = [process.stdout.readline().strip() for _ in range(decisions)]
        process.send_signal(signal.SIGKILL)
        acknowledged += process.stdout.read().split()

    recorded = {str(project.folder) for project in store.projects()}
    assert set(acknowledged) <= recorded
    assert len(recorded) <= len(acknowledged) + 1
    store.trust(code_of(tmp_path / "after"), when=WHEN)
    assert store.verdict(code_of(tmp_path / "after")) == Trusted()


DYING = textwrap.dedent(
    """
    import os, pathlib, signal, sys
    from pathlib import Path
    from opencode_core.plugins import trust
    from opencode_core.plugins.project_code import ProjectCode

    store = trust.TrustStore(Path(sys.argv[1]))

    def decide(name):
        store.trust(ProjectCode(folder=Path(name), files=(), refused=(), declarations='{"a":1}'), when="now")

    def die_at(line):
        def trace(frame, event, arg):
            nonlocal line
            if frame.f_code.co_filename not in (trust.__file__, pathlib.__file__):
                return None
            line -= event == "line"
            if line == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace
        sys.settrace(trace)

    decide("/before")
    line = status = 1
    while status:
        child = os.fork()
        if not child:
            die_at(line)
            decide("/during")
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert "/before" in [str(project.folder) for project in store.projects()], line
        line += 1
    assert [str(project.folder) for project in store.projects()] == ["/before", "/during"]
    print(line)
    """
)


@posix_only
def test_a_process_that_is_killed_at_any_line_of_trusting_leaves_a_whole_record(store: TrustStore) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DYING, str(store.path)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stderr == ""
    assert int(done.stdout) > 50


def test_what_a_killed_process_left_half_written_is_cleared_away(store: TrustStore, project: Path) -> None:
    write(store.path.parent, {".trust.toml.new": "half"})

    store.trust(read(project), when=WHEN)

    assert sorted(path.name for path in store.path.parent.iterdir()) == ["trust.toml", "trust.toml.lock"]


@posix_only
def test_a_lock_that_another_process_does_not_give_back_is_an_error(store: TrustStore, project: Path) -> None:
    import fcntl

    store.path.parent.mkdir()
    with open(store.path.parent / "trust.toml.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        with pytest.raises(TrustError, match="locked by another process"):
            TrustStore(store.path, patience=0.02).trust(read(project), when=WHEN)

    assert not store.path.exists()


@pytest.fixture
def without_fcntl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)


@pytest.mark.usefixtures("without_fcntl")
def test_without_fcntl_the_lock_is_a_file_that_is_deleted_again(store: TrustStore, project: Path) -> None:
    store.trust(read(project), when=WHEN)

    assert [path.name for path in store.path.parent.iterdir()] == ["trust.toml"]
    assert store.verdict(read(project)) == Trusted()


@pytest.mark.usefixtures("without_fcntl")
def test_without_fcntl_a_lock_that_stays_is_an_error_that_names_its_file(store: TrustStore, project: Path) -> None:
    write(store.path.parent, {"trust.toml.lock": ""})

    with pytest.raises(TrustError) as caught:
        TrustStore(store.path, patience=0.02).trust(read(project), when=WHEN)

    assert str(store.path.parent / "trust.toml.lock") in caught.value.problem
    assert "delete that file" in caught.value.remedy


# What the person is told


def test_the_error_for_unknown_code_names_plugin_project_and_command() -> None:
    error = untrusted_error("weather", Path("/home/me/app"), Unknown())

    assert isinstance(error, PluginUntrustedError)
    assert isinstance(error, OpencodeError)
    assert error.plugin == "weather"
    assert error.problem == "The plugin 'weather' is code of the project '/home/me/app', which was not trusted yet."
    assert error.remedy == "Read its code, then run `opencode-core plugins trust /home/me/app`."


def test_the_error_for_changed_code_names_what_changed() -> None:
    changed = Changed(added=("c.py",), removed=("b.py",), modified=("a.py", "d.py"), declarations=True)

    error = untrusted_error("weather", Path("/app"), changed)

    assert error.problem == (
        "The plugin 'weather' is code of the project '/app', which changed since it was trusted "
        "(added 'c.py'; removed 'b.py'; modified 'a.py', 'd.py'; what its configuration says)."
    )


def test_the_error_names_five_of_many_changed_files() -> None:
    names = tuple(f"{number}.py" for number in range(8))

    error = untrusted_error("weather", Path("/app"), Changed(added=names, removed=(), modified=(), declarations=False))

    assert "(added '0.py', '1.py', '2.py', '3.py', '4.py' and 3 more)" in error.problem


def test_the_command_in_the_error_can_be_pasted_into_a_shell() -> None:
    error = untrusted_error("weather", Path("/my app"), Unknown())

    assert "`opencode-core plugins trust '/my app'`" in error.remedy


def test_importing_the_trust_store_imports_no_toml_library() -> None:
    script = "import sys, opencode_core.plugins.trust; sys.exit(bool({'tomllib', 'tomli_w'} & sys.modules.keys()))"

    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(),
        check=False,
    )

    assert done.returncode == 0
