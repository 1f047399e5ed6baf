"""What a host offers to the program around it, beside its plugins."""

import json
from pathlib import Path

import pytest

from opencode_core import Host, InitializationBlockedError, InvalidKeyError
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
        assert host.plugins.get("picky").quarantined == (str(host.location.location.directory),)


async def test_settings_of_an_untrusted_project_are_ignored_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "opencode.json").write_text(json.dumps({"plugin_block": ["date"]}))
    async with Host.open(tmp_path) as host:
        assert host.plugins.get("date").state == "active"
        [notice] = host.plugins.notices
        assert "opencode.json' says about plugins is ignored" in notice.problem
        assert "opencode-core plugins trust" in notice.remedy
        await host.refresh()
        assert len(host.plugins.notices) == 1


async def test_what_the_body_raises_comes_out_unwrapped_also_while_watching(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"):
        async with Host.open(tmp_path, config={}, watch=True, control=True):
            raise ValueError("mine")
