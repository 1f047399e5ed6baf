"""Which providers and models there are. A draft is edited, a catalog never."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from opencode_core.errors import InvalidKeyError
from opencode_core.model.json import JSON, frozen_copy
from opencode_core.model.keys import check_entry_name


@attrs.frozen(kw_only=True)
class ProviderInfo:
    """A provider that answers requests; ``adapter`` names who speaks its wire protocol."""

    id: str
    name: str = ""
    adapter: str = ""
    url: str = ""
    options: Mapping[str, JSON] = attrs.field(converter=frozen_copy, factory=dict)


@attrs.frozen(kw_only=True)
class ModelInfo:
    """A model of one provider, with the limits that history has to fit."""

    provider: str
    id: str
    name: str = ""
    context_limit: int | None = None
    output_limit: int | None = None
    options: Mapping[str, JSON] = attrs.field(converter=frozen_copy, factory=dict)


@attrs.frozen(kw_only=True)
class Catalog:
    """All providers and models that are known now, sorted by id."""

    providers: tuple[ProviderInfo, ...] = ()
    models: tuple[ModelInfo, ...] = ()


@attrs.define(eq=False)
class CatalogDraft:
    """What ``opencode_catalog`` edits: a fresh one each time, replayed through every plugin in order."""

    _providers: dict[str, ProviderInfo] = attrs.field(factory=dict, init=False)
    _models: dict[tuple[str, str], ModelInfo] = attrs.field(factory=dict, init=False)

    def provider(self, id: str, **changes: Any) -> ProviderInfo:
        """Adds a provider, or changes the named fields of the one that is there."""
        known = self._providers.get(check_entry_name(id)) or ProviderInfo(id=id)
        self._providers[id] = attrs.evolve(known, **changes)
        return self._providers[id]

    def model(self, provider: str, id: str, **changes: Any) -> ModelInfo:
        """Adds a model to a provider, or changes the named fields of the one that is there.

        Raises:
            InvalidKeyError: The draft has no such provider.
        """
        if provider not in self._providers:
            raise InvalidKeyError(
                f"The model '{id}' names the provider '{provider}', which is not in the catalog.",
                f"Call catalog.provider('{provider}') first.",
            )
        key = (provider, check_entry_name(id))
        self._models[key] = attrs.evolve(self._models.get(key) or ModelInfo(provider=provider, id=id), **changes)
        return self._models[key]

    def remove_provider(self, id: str) -> None:
        """Takes a provider out with all its models; an unknown one is fine."""
        self._providers.pop(id, None)
        self._models = {key: model for key, model in self._models.items() if key[0] != id}

    def remove_model(self, provider: str, id: str) -> None:
        """Takes one model out; an unknown one is fine."""
        self._models.pop((provider, id), None)

    def finish(self) -> Catalog:
        """Returns what the draft amounts to."""
        return Catalog(
            providers=tuple(self._providers[id] for id in sorted(self._providers)),
            models=tuple(self._models[key] for key in sorted(self._models)),
        )
