"""Tests of whole hosts leave Python's imports as they were."""

from tests.host.making import clean_imports, site

__all__ = ["clean_imports", "site"]
