"""The same wheel and environments that the packaging is tested with."""

from tests.distribution.conftest import checkout, environment, wheel

__all__ = ["checkout", "environment", "wheel"]
