"""What a command is: a prompt template that a person calls by name. Expands nothing."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Command:
    """A prompt template; ``$ARGUMENTS`` stands for what the person typed after the name."""

    name: str
    template: str
    description: str = ""
    agent: str = ""
    model: str = ""
