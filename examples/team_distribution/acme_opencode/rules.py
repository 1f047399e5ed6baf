"""Tells the model the house rules, and people too: ``opencode-core acme-rules`` prints them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from plugin_sdk import ContextSource, PluginManifest, hookimpl

if TYPE_CHECKING:
    from click import Group

opencode_plugin = PluginManifest(api=1, description="Tells the model the house rules.")

RULES = (
    "Every change comes with a test that fails without it.",
    "Names are written out; abbreviations are for units.",
    "Ask before adding a dependency.",
)


@hookimpl
def opencode_context_sources() -> Iterator[ContextSource[list[str]]]:
    """Contributes the rules; a new release of them reaches running sessions as an update."""

    async def load() -> list[str]:
        return list(RULES)

    yield ContextSource(
        key="acme/rules",
        load=load,
        baseline=lambda rules: f"The rules of this team:\n{render(rules)}",
        update=lambda _before, rules: f"The rules of this team have changed. They are now:\n{render(rules)}",
        removed=lambda _rules: "The rules of this team no longer apply.",
    )


@hookimpl
def opencode_cli(cli: Group) -> None:
    """Adds a command that prints the rules."""
    import click  # here, so that sessions, which need no command line, do not import it

    @cli.command("acme-rules")
    def print_rules() -> None:
        """Print the rules of the team."""
        click.echo(render(RULES))


def render(rules: list[str] | tuple[str, ...]) -> str:
    """Returns the rules as a list, one line each."""
    return "\n".join(f"- {rule}" for rule in rules)
