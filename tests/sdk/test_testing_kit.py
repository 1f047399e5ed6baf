"""The kit that plugin authors test with does what the kernel does, and hides nothing."""

from pathlib import Path

import attrs
import pytest

from opencode_core.errors import PluginError
from plugin_sdk import (
    ContextSource,
    HostFacts,
    PluginManifest,
    PluginScope,
    Tool,
    ToolCall,
    ToolFailure,
    ToolOutput,
    hookimpl,
)
from plugin_sdk.testing import StillClock, load_plugin


@attrs.frozen
class GreetingOptions:
    word: str = "hello"


class Greeting:
    opencode_plugin = PluginManifest(options=GreetingOptions)

    @hookimpl
    def opencode_tools(self, options: GreetingOptions) -> dict[str, Tool]:
        async def greet(call: ToolCall) -> ToolOutput:
            if not call.arguments.get("whom"):
                raise ToolFailure("Say whom to greet.")
            return ToolOutput(text=f"{options.word} {call.arguments['whom']}")

        return {"greet": Tool(description="Greets.", execute=greet)}

    @hookimpl
    def opencode_context_sources(self) -> list[ContextSource[str]]:
        async def load() -> str:
            return "polite"

        return [ContextSource(key="test/mood", load=load, baseline=lambda mood: f"Be {mood}.", update=lambda _, m: m)]


async def test_an_author_reads_the_baseline_and_calls_a_tool(tmp_path: Path) -> None:
    async with load_plugin(Greeting(), directory=tmp_path) as plugin:
        assert await plugin.baseline() == "Be polite."
        assert list(await plugin.sources()) == ["test/mood"]
        assert list(plugin.tools) == ["greet"]
        assert (await plugin.call("greet", whom="world")).text == "hello world"


async def test_options_reach_the_plugin(tmp_path: Path) -> None:
    async with load_plugin(Greeting(), directory=tmp_path, options={"word": "goodbye"}) as plugin:
        assert (await plugin.call("greet", whom="world")).text == "goodbye world"


async def test_what_the_model_would_be_told_is_raised(tmp_path: Path) -> None:
    async with load_plugin(Greeting(), directory=tmp_path) as plugin:
        with pytest.raises(ToolFailure, match="Say whom"):
            await plugin.call("greet")
        with pytest.raises(ToolFailure, match="no tool called 'wave'"):
            await plugin.call("wave")


async def test_a_plugin_that_breaks_the_contract_raises(tmp_path: Path) -> None:
    class Broken:
        @hookimpl
        def opencode_tools(self) -> int:
            return 42

    with pytest.raises(PluginError, match=r"'opencode_tools'.*'plugin_under_test'"):
        async with load_plugin(Broken(), directory=tmp_path):
            pytest.fail("a broken plugin was loaded")


async def test_a_file_is_loaded_and_reloaded(tmp_path: Path) -> None:
    file = tmp_path / "moody.py"
    source = (
        "from plugin_sdk import ContextSource, hookimpl\n"
        "async def load():\n    return 'MOOD'\n"
        "@hookimpl\ndef opencode_context_sources():\n"
        "    yield ContextSource(key='test/mood', load=load, baseline=str, update=lambda b, n: n)\n"
    )
    file.write_text(source.replace("MOOD", "good"))
    async with load_plugin(file, directory=tmp_path) as plugin:
        assert await plugin.baseline() == "good"
        file.write_text(source.replace("MOOD", "better"))
        assert (await plugin.reload()).generation == 2
        assert await plugin.baseline() == "better"


@pytest.mark.parametrize("file_name", ["My.Plugin.py", "plain.py"])
async def test_a_file_of_any_name_is_the_one_under_test_whatever_else_is_there(tmp_path: Path, file_name: str) -> None:
    (tmp_path / ".opencode" / "plugins").mkdir(parents=True)
    (tmp_path / ".opencode" / "plugins" / "aaa.py").write_text("raise SystemExit('untrusted code ran')")
    file = tmp_path / file_name
    file.write_text("from plugin_sdk import *\n@hookimpl\ndef opencode_agents():\n    yield Agent(name='a')\n")
    async with load_plugin(file, directory=tmp_path, name="mine") as plugin:
        assert plugin.status.state == "active"
        assert plugin.names["agents"] == ("a",)


class Looking:
    """A plugin that keeps what it is told of the host around it."""

    host: HostFacts

    @hookimpl
    def opencode_context_sources(self, scope: PluginScope) -> list[ContextSource[str]]:
        self.host = scope.host
        return []


async def test_an_author_holds_time_and_environment_still(tmp_path: Path) -> None:
    plugin, clock, mine = Looking(), StillClock(), tmp_path / "mine"
    async with load_plugin(plugin, directory=tmp_path, clock=clock, environ={"COLOUR": "blue"}, config_dir=mine):
        before = plugin.host.now()
        assert plugin.host.now() == before
        clock.move(days=1, hours=2)
        assert (plugin.host.now() - before).total_seconds() == 26 * 3600
        assert clock.monotonic() <= clock.monotonic()
        assert (dict(plugin.host.environ), plugin.host.config_dir) == ({"COLOUR": "blue"}, mine)


async def test_the_persons_own_configuration_is_never_the_real_one_unless_it_is_named(tmp_path: Path) -> None:
    plugin = Looking()
    async with load_plugin(plugin, directory=tmp_path, environ={}):
        assert not plugin.host.config_dir.exists()
        assert plugin.host.config_dir.parent == plugin.host.data_dir.parent
    async with load_plugin(plugin, directory=tmp_path, environ={"OPENCODE_CONFIG_DIR": str(tmp_path / "named")}):
        assert plugin.host.config_dir == tmp_path / "named"
