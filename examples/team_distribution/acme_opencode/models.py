"""Puts the team's model gateway into the catalog."""

from __future__ import annotations

import attrs

from plugin_sdk import CatalogDraft, PluginManifest, hookimpl


@attrs.frozen
class Options:
    """What people may set under ``plugins.acme-models``.

    Attributes:
        url: Where the gateway is; a developer may run one of their own.
    """

    url: str = "https://models.acme.example/v1"


opencode_plugin = PluginManifest(api=1, options=Options, description="Adds the models of our gateway.")


@hookimpl
def opencode_catalog(catalog: CatalogDraft, options: Options) -> None:
    """Adds the gateway and its models; asked again, on a fresh draft, whenever the catalog is made anew."""
    catalog.provider("acme", name="Acme gateway", adapter="openai-compatible", url=options.url)
    catalog.model("acme", "large", name="Acme large", context_limit=200_000, output_limit=32_000)
    catalog.model("acme", "small", name="Acme small", context_limit=64_000, output_limit=8_000)
