"""Each plugin of the team contributes its part."""

from pathlib import Path

import click
from click.testing import CliRunner

from acme_opencode import models, release, review, rules
from plugin_sdk.testing import ContextSourceContract, load_plugin


class TestRules(ContextSourceContract, plugin=rules, key="acme/rules"): ...


async def test_the_model_is_told_the_rules(tmp_path: Path) -> None:
    async with load_plugin(rules, directory=tmp_path) as plugin:
        baseline = await plugin.baseline()
    assert baseline.startswith("The rules of this team:\n- Every change comes with a test")


def test_people_can_print_the_rules() -> None:
    cli = click.Group()
    rules.opencode_cli(cli)
    assert CliRunner().invoke(cli, ["acme-rules"]).output.splitlines() == [f"- {rule}" for rule in rules.RULES]


async def test_the_review_command_is_answered_by_an_agent_that_exists(tmp_path: Path) -> None:
    async with load_plugin(review, directory=tmp_path) as plugin:
        assert plugin.names["agents"] == ("acme-reviewer",)
        assert plugin.names["commands"] == ("acme-review",)
    [command] = review.opencode_commands()
    assert command.agent == "acme-reviewer"


async def test_the_model_can_look_up_how_to_release(tmp_path: Path) -> None:
    async with load_plugin(release, directory=tmp_path) as plugin:
        assert plugin.names["skills"] == ("acme-release",)
    [skill] = release.opencode_skills()
    assert "Never push it yourself" in skill.body


async def test_the_gateway_is_in_the_catalog(tmp_path: Path) -> None:
    async with load_plugin(models, directory=tmp_path) as plugin:
        assert [model.id for model in plugin.catalog.models] == ["large", "small"]


async def test_a_developer_can_use_a_gateway_of_their_own(tmp_path: Path) -> None:
    async with load_plugin(models, directory=tmp_path, options={"url": "http://127.0.0.1:8080/v1"}) as plugin:
        [provider] = plugin.catalog.providers
    assert provider.url == "http://127.0.0.1:8080/v1"
