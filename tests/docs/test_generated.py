"""The generated pages say what the code says, and every example of a hook is a plugin that loads."""

import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import plugin_sdk
from docs import generate
from opencode_core import Host, errors
from plugin_sdk import HOOK_API, events, sessions, storage

ROOT = Path(__file__).resolve().parents[2]
HOOKS = generate.hooks()


def test_the_generated_pages_are_what_the_code_says_now() -> None:
    differences = [difference for _path, difference in generate.stale(ROOT)]
    assert not differences, "\n".join([*differences, f"Run `{generate.COMMAND}`."])


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.name)
def test_a_hook_has_every_section(hook: generate.HookDoc) -> None:
    wanted = {*generate.SECTIONS} - (set() if set(hook.arguments) - {"options", "scope"} else {"Args"})
    assert {name for name, text in hook.sections.items() if text} == wanted


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.name)
def test_a_hook_describes_exactly_its_own_arguments(hook: generate.HookDoc) -> None:
    described = generate._entries(hook.sections.get("Args", ""))
    assert list(described) == [name for name in hook.arguments if name not in generate.SHARED_ARGUMENTS]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.name)
def test_a_hook_is_as_old_as_a_hook_api_that_there_was(hook: generate.HookDoc) -> None:
    assert 1 <= int(hook.sections["Since"]) <= HOOK_API


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.name)
def test_a_hook_says_that_it_may_be_async_exactly_when_it_may(hook: generate.HookDoc) -> None:
    assert hook.summary.endswith("May be async.") == hook.is_async


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.name)
async def test_the_example_of_a_hook_is_a_plugin_that_loads_without_complaint(
    hook: generate.HookDoc, tmp_path: Path
) -> None:
    example = types.ModuleType("example")
    exec(compile(hook.example, hook.name, "exec", dont_inherit=True), example.__dict__)
    async with Host.open(tmp_path, plugins={"example": example}, config={}, entry_points=False) as host:
        status = host.plugins.get("example")
        assert status.state == "active"
        assert status.diagnostics == ()
        assert status.hooks == (hook.name,)


async def test_the_builtins_named_with_a_hook_are_those_that_have_it(tmp_path: Path) -> None:
    async with Host.open(tmp_path, config={}) as host:
        builtins = [status for status in host.plugins.list() if status.builtin]
    for hook in HOOKS:
        named = ", ".join(sorted(each.name for each in builtins if hook.name in each.hooks))
        assert hook.sections["Builtins"] == (named or "none"), hook.name


def test_the_tree_of_errors_shows_every_error_below_its_parent() -> None:
    shown = _tree((errors.__doc__ or "").split("\n\n", 1)[1])
    real = {kind.__name__: kind.__mro__[1].__name__ for kind in generate.error_classes()}
    assert shown == {name: "" if parent == "Exception" else parent for name, parent in real.items()}
    assert set(errors.__all__) == {*real, "Place"}


@pytest.mark.parametrize(
    ("exporter", "families"),
    [(events, generate._EVENT_FAMILIES), (sessions, generate._SESSION_FAMILIES)],
    ids=["events", "sessions"],
)
def test_what_a_page_says_can_be_imported_can_be(exporter: Any, families: dict[Any, str]) -> None:
    shown = {each.__name__ for module in families for each in generate._classes_of(module)}
    assert shown <= set(exporter.__all__)
    assert all(hasattr(exporter, name) for name in exporter.__all__)


def test_every_type_that_a_field_names_can_be_imported_by_an_author() -> None:
    known = {*plugin_sdk.__all__, *events.__all__, *sessions.__all__}
    families = [*generate._EVENT_FAMILIES, *generate._SESSION_FAMILIES]
    named = {name for module in families for each in generate._classes_of(module) for name in _types_named(each)}
    assert named - known <= {"Decimal", "Literal", "Mapping", "None"}


def test_the_pages_show_the_types_of_arguments_and_what_a_call_returns() -> None:
    page = generate._storage_page()
    assert "`async transact(work: Callable[[Transaction], R]) -> R`" in page
    assert "`StorageVersionError(problem: str, remedy: str = '', *, found: int, known: int)`" in page
    assert "`waiting(table: str, prefix: Key = ()) -> AbstractAsyncContextManager[AsyncIterator[None]]`" in page
    assert "async def get(session: str) -> Session: ..." in generate._sessions_page()
    for name in storage.__all__:
        assert f"`{name}" in page, name


def test_a_stale_page_is_shown_as_a_difference_with_the_command_that_mends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate.main([], tmp_path) == 0
    assert generate.main(["--check"], tmp_path) == 0
    page = tmp_path / "docs/reference/hooks.md"
    page.write_text(page.read_text(encoding="utf-8").replace("# Hooks", "# Hoks"), encoding="utf-8")
    capsys.readouterr()
    assert generate.main(["--check"], tmp_path) == 1
    said = capsys.readouterr().out
    assert "-# Hoks\n+# Hooks\n" in said
    assert "make docs" in said


def _types_named(kind: type) -> Iterator[str]:
    for field in attrs.fields(kind) if attrs.has(kind) else ():
        if not field.name.startswith("_"):
            without_texts = re.sub(r"'[^']*'|\"[^\"]*\"", "", generate._declared(kind, field.name))
            yield from re.findall(r"\b[A-Z]\w+", without_texts)


def _tree(drawing: str) -> dict[str, str]:
    """Return each name of a drawn tree with the name above it."""
    parents: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in drawing.splitlines():
        if not line.strip():
            continue
        bare = line.lstrip("│├└─ ")
        depth, name = len(line) - len(bare), bare.split()[0]
        above = [(level, each) for level, each in above if level < depth]
        parents[name] = above[-1][1] if above else ""
        above.append((depth, name))
    return parents
