"""What a host offers to the program around it, beside its plugins."""

import json
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from opencode_core import ConfigError, Host, InitializationBlockedError, InvalidKeyError
from opencode_core.plugins.packages import _failed
from opencode_core.plugins.scope import Owner
from opencode_core.plugins.slots import TOOLS
from plugin_sdk import UNAVAILABLE, ContextSource, Tool, ToolCall, ToolOutput, hookimpl

PLUGIN = "from plugin_sdk import Agent, hookimpl\n@hookimpl\ndef opencode_agents():\n    yield Agent(name='a')\n"


async def execute(call: ToolCall) -> ToolOutput:
    return ToolOutput(text="done")


def source(value: object) -> ContextSource[object]:
    async def load() -> object:
        return value

    return ContextSource(key="test/value", load=load, baseline=str, update=lambda _before, now: str(now))


class Saying:
    def __init__(self, value: object) -> None:
        self.value = value

    @hookimpl
    def opencode_context_sources(self) -> list[ContextSource[object]]:
        return [source(self.value)]


async def test_the_baseline_is_what_a_new_session_would_be_told(tmp_path: Path) -> None:
    async with Host.open(tmp_path, plugins=[Saying("hello")], config={}, entry_points=False) as host:
        baseline = await host.baseline()
        assert (baseline.text, baseline.parts) == ("hello", (("test/value", "hello"),))


async def test_a_baseline_with_an_unavailable_source_is_refused(tmp_path: Path) -> None:
    async with Host.open(tmp_path, plugins=[Saying(UNAVAILABLE)], config={}, entry_points=False) as host:
        with pytest.raises(InitializationBlockedError, match="test/value"):
            await host.baseline()


async def test_a_session_sees_its_location_and_takes_its_own_tools_with_it(tmp_path: Path) -> None:
    async with Host.open(tmp_path, config={}, entry_points=False) as host:
        host.attach("app").add_tool("of_host", Tool(description="", execute=execute))
        session = host.location.open_session("ses_1")
        session.attach(Owner("app", "host")).add_tool("of_session", Tool(description="", execute=execute))
        assert [each.key for each in session.read().all(TOOLS)] == ["of_host", "of_session"]
        await session.aclose()
        assert [each.key for each in host.location.read().all(TOOLS)] == ["of_host"]


async def test_a_host_names_the_plugins_it_hands_over_as_text_too(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(PLUGIN)
    async with Host.open(tmp_path, plugins={"nicer": "./code.py"}, config={}, entry_points=False) as host:
        assert [(each.name, each.state) for each in host.plugins.list()] == [("nicer", "active")]


async def test_a_name_that_is_not_a_plugin_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidKeyError, match="'Not A Name' is not a plugin name"):
        async with Host.open(tmp_path, plugins={"Not A Name": Saying("x")}, config={}, entry_points=False):
            pytest.fail("the host opened")


async def test_a_plugin_that_is_kept_out_of_a_location_says_so(tmp_path: Path) -> None:
    class Picky:
        @hookimpl
        def opencode_agents(self, location: object) -> None:
            raise LookupError("not here")

    async with Host.open(tmp_path, plugins={"picky": Picky()}, config={}, entry_points=False) as host:
        status = host.plugins.get("picky")
        assert (status.state, status.quarantined) == ("quarantined", (str(host.location.location.directory),))


async def test_a_host_is_short_in_a_log(tmp_path: Path) -> None:
    async with Host.open(tmp_path, plugins={"saying": Saying("x")}, config={}) as host:
        assert len(repr(host)) < 1_000


async def test_settings_of_an_untrusted_project_are_ignored_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "opencode.json").write_text(json.dumps({"plugin_block": ["date"]}))
    async with Host.open(tmp_path) as host:
        assert host.plugins.get("date").state == "active"
        [notice] = host.plugins.notices
        assert "opencode.json' says is ignored" in notice.problem
        assert "opencode-core plugins trust" in notice.remedy
        await host.refresh()
        assert len(host.plugins.notices) == 1


async def test_what_the_body_raises_comes_out_unwrapped_also_while_watching(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"):
        async with Host.open(tmp_path, config={}, watch=True, control=True):
            raise ValueError("mine")


async def test_two_tasks_that_open_one_project_find_its_plugin_once(tmp_path: Path) -> None:
    async def trusting(_code: object, _verdict: object) -> bool:
        await anyio.lowlevel.checkpoint()
        return True

    (tmp_path / "host").mkdir()
    project = tmp_path / "project"
    (project / ".opencode" / "plugins").mkdir(parents=True)
    (project / ".opencode" / "plugins" / "x.py").write_text(PLUGIN)
    async with Host.open(tmp_path / "host", config={}, entry_points=False, ask_trust=trusting) as host:

        async def open_it() -> None:
            async with host.open_location(project):
                await both.wait()

        both = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(open_it)
            group.start_soon(open_it)
            while len(host.plugins.places) < 3:
                await anyio.lowlevel.checkpoint()
            await host.plugins.wait("x")
            # The slower of two that found it asks for what is loaded already.
            await host.plugins.load(host.plugins.candidates()[0], quarantine=True)
            assert [(each.name, each.state) for each in host.plugins.list()] == [("x", "active")]
            both.set()


@pytest.mark.parametrize("trick", ["None", "object()", "type('C', (), {})"])
async def test_a_plugin_that_puts_nonsense_among_the_modules_loads_and_reloads(tmp_path: Path, trick: str) -> None:
    file = tmp_path / "tricky.py"
    file.write_text(f"import sys\nsys.modules[__name__ + '.sub'] = {trick}\n{PLUGIN}")
    async with Host.open(tmp_path, plugins=[file], config={}, entry_points=False) as host:
        assert (await host.plugins.reload("tricky")).generation == 2
        assert (await host.plugins.reload("tricky")).generation == 3


async def test_a_plugin_that_raises_a_cancellation_of_its_own_is_at_fault(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text("class Odd(BaseException): pass\nraise Odd\n")
    async with Host.open(tmp_path, plugins=[tmp_path / "odd.py"], config={}, entry_points=False) as host:
        assert host.plugins.get("odd").state == "failed"


async def test_an_address_with_a_password_is_never_shown(tmp_path: Path) -> None:
    class Installer:
        async def install(self, requirement: str) -> Path:
            raise _failed(requirement, f"no matching {requirement}")

    spec = "pip:acme @ https://me:hunter2@127.0.0.1/acme.whl"
    async with Host.open(
        tmp_path, plugins=[spec], config={}, entry_points=False, installer=Installer(), data_dir=tmp_path / "data"
    ) as host:
        shown = repr(host.plugins.list()) + repr(host)
    assert "acme" in shown
    assert "hunter2" not in shown


@pytest.mark.parametrize("wrong", ["hello.py", Path("hello.py")])
async def test_one_text_in_the_place_of_a_list_of_plugins_is_refused(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(ConfigError, match="not a list of plugins"):
        async with Host.open(tmp_path, plugins=wrong, config={}, entry_points=False):  # type: ignore[arg-type]
            pytest.fail("the host opened")


async def test_settings_that_are_not_a_mapping_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="config argument is a 'str'"):
        async with Host.open(tmp_path, config="x"):  # type: ignore[arg-type]
            pytest.fail("the host opened")
