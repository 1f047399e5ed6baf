"""What people are told was left out. Tells nobody."""

from __future__ import annotations

import attrs


@attrs.frozen
class Problem:
    """Something that was left out: what and why, and what to do."""

    problem: str
    remedy: str
