"""What is asked before something is done, the rules about it, and what they answer. Asks nobody."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, TypeAlias

import attrs

PermissionAnswer: TypeAlias = Literal["allow", "deny", "ask"]


@attrs.frozen(kw_only=True)
class PermissionRequest:
    """One question: may this agent do this action to these resources?

    Attributes:
        action: What is to be done, such as ``edit`` or ``skill``.
        resources: To what.
        session: In which session.
        agent: For which agent: that of the Provider Turn that issued the call.
        save: The patterns that an answer for always would remember; nothing is remembered when empty.
    """

    action: str
    resources: tuple[str, ...]
    session: str = ""
    agent: str = ""
    save: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class PermissionRule:
    """One rule: for this permission and this pattern, this answer. Both may hold wildcards."""

    permission: str
    pattern: str
    action: PermissionAnswer


def evaluate_rules(rules: Iterable[PermissionRule], action: str, resource: str) -> PermissionAnswer:
    """Returns what the last rule that matches both says; ``ask`` when none does."""
    found: PermissionAnswer = "ask"
    for rule in rules:
        if matches(rule.permission, action) and matches(rule.pattern, resource):
            found = rule.action
    return found


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern fits: ``*`` is any run of characters, ``?`` one; ``git *`` fits ``git`` as well.

    Backslashes count as slashes, so that one pattern serves every platform.
    """
    return _compiled(pattern).fullmatch(text.replace("\\", "/")) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    normal = pattern.replace("\\", "/")
    optional = normal.endswith(" *")
    body = normal[:-2] if optional else normal
    parts = "".join(".*" if char == "*" else "." if char == "?" else re.escape(char) for char in body)
    return re.compile(parts + ("( .*)?" if optional else ""), re.DOTALL)
