"""What is asked before something is done, and the possible answers. Decides nothing."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

PermissionAnswer: TypeAlias = Literal["allow", "deny", "ask"]


@attrs.frozen(kw_only=True)
class PermissionRequest:
    """One question: may this agent do this action to these resources?"""

    action: str
    resources: tuple[str, ...]
    session: str = ""
    agent: str = ""
