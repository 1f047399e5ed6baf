"""What a session is: where it runs, what it is called, what was chosen for it. Stores nothing."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from opencode_core.model.permission import PermissionRule

DEFAULT_VARIANT = "default"

Delivery: TypeAlias = Literal["steer", "queue"]
"""Whether a prompt joins the work that is under way, or waits until the session would be idle."""


def _variant(name: str | None) -> str | None:
    return None if name == DEFAULT_VARIANT else name


@attrs.frozen(kw_only=True)
class ModelChoice:
    """Which model of which provider, and which of its variants; no variant is the same as ``default``."""

    provider: str
    model: str
    variant: str | None = attrs.field(default=None, converter=_variant)


@attrs.frozen(kw_only=True)
class FileDiff:
    """How one file changed."""

    file: str
    before: str = ""
    after: str = ""
    additions: int = 0
    deletions: int = 0
    status: str | None = None


@attrs.frozen(kw_only=True)
class SessionSummary:
    """How much a session changed; the diffs themselves are kept beside it."""

    additions: int = 0
    deletions: int = 0
    files: int = 0
    diffs: tuple[FileDiff, ...] | None = None


@attrs.frozen(kw_only=True)
class Share:
    """Where a session was made public."""

    url: str


@attrs.frozen(kw_only=True)
class Revert:
    """A staged revert: everything behind this message, or this part of it, is to go.

    Attributes:
        message: The boundary, which stays.
        part: The last part of it that stays; None for all of it.
        snapshot: The files as they were before the first staging.
        diff: What the revert changes, for people.
    """

    message: str
    part: str | None = None
    snapshot: str | None = None
    diff: str | None = None


@attrs.frozen(kw_only=True)
class SessionTime:
    """When things happened to a session, in milliseconds since 1970. Nothing is ordered by these."""

    created: int
    updated: int
    compacting: int | None = None
    archived: int | None = None


@attrs.frozen(kw_only=True)
class Session:
    """One conversation, and what was chosen for it.

    Attributes:
        project: The id of the project: its root commit, so that worktrees share it; ``global`` without one.
        directory: Where it runs.
        parent: The session that started it, and that it is removed with.
        version: The version of the program that created it.
        permission: Rules of its own, which beat the agent's.
        workspace: The workspace that it belongs to, where a host has several.
    """

    id: str
    slug: str = ""
    version: str = ""
    project: str
    directory: str
    parent: str | None = None
    title: str = ""
    agent: str | None = None
    model: ModelChoice | None = None
    workspace: str | None = None
    summary: SessionSummary | None = None
    share: Share | None = None
    permission: tuple[PermissionRule, ...] | None = None
    revert: Revert | None = None
    time: SessionTime
