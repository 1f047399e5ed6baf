"""Lets the model look up how the team releases. The text is ``release.md``, beside this file."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

from plugin_sdk import PluginManifest, Skill, hookimpl

opencode_plugin = PluginManifest(api=1, description="Lets the model look up how we release.")


@hookimpl
def opencode_skills() -> Iterator[Skill]:
    """Contributes the skill ``acme-release``."""
    yield Skill(
        name="acme-release",
        description="How we release: version, changelog, tag, announcement.",
        body=files("acme_opencode").joinpath("release.md").read_text(encoding="utf-8"),
    )
