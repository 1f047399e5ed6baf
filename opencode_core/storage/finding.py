"""What is said about something that is wrong in a store. Never its content."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

Area: TypeAlias = Literal["backend", "log", "rows", "orphans"]


@attrs.frozen(kw_only=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        area: The backend's own files; a log; rows that are not what their log leads to; rows that belong to nothing.
        problem: What is wrong, one sentence with tables and keys.
        session: The log or session that it concerns; empty for the store as a whole.
    """

    area: Area
    problem: str
    session: str = ""

    def __str__(self) -> str:
        return f"{self.session}: {self.problem}" if self.session else self.problem
