"""What a skill is: knowledge that the model asks for by name. Reads nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import attrs


@attrs.frozen(kw_only=True)
class Skill:
    """Knowledge offered by name and description; the body is only shown through the ``skill`` tool.

    Attributes:
        name: How it is asked for.
        body: What it says.
        description: When to use it; one without is never offered, but can be asked for.
        directory: The folder that its body speaks of; empty when there is none.
        is_folder: Whether the other files in that folder belong to it.
        slash: Whether people may call it as a command.
    """

    name: str
    body: str
    description: str = ""
    directory: str = ""
    is_folder: bool = False
    slash: bool = False


class FoundSkills(dict[str, Skill]):
    """Skills by name in order.

    Attributes:
        is_complete: Whether every source of skills could be asked, now or before; otherwise some may be missing.
    """

    is_complete: bool = True


@attrs.frozen(kw_only=True, eq=False)
class SkillSource:
    """Where skills are looked for each time somebody asks for them.

    Attributes:
        key: Stable, and different for each source of one plugin.
        load: Finds them now; of two with one name, the later wins. When it raises, what it found last stays.
    """

    key: str
    load: Callable[[], Awaitable[Iterable[Skill]]]
