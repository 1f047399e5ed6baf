"""What a skill is: knowledge that the model asks for by name. Reads nothing."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Skill:
    """Knowledge offered by name and description; the body is only shown through the ``skill`` tool."""

    name: str
    body: str
    description: str = ""
    directory: str = ""
