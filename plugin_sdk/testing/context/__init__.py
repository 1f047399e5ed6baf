"""The laws of a context source, as tests; `plugin_sdk.testing.context_contract` puts them together."""
