"""Promotes admitted prompts into the conversation, inside the caller's transaction. Admits none."""

from __future__ import annotations

from collections.abc import Sequence

from opencode_core.model.codec import decode
from opencode_core.model.event.session import PromptPromoted
from opencode_core.model.prompt import AdmittedPrompt
from opencode_core.model.rows import INBOX, PENDING, Rows
from opencode_core.storage.writer import Writer


def pending(rows: Rows, session: str) -> tuple[AdmittedPrompt, ...]:
    """Returns the prompts that were admitted and not yet promoted, in the order of their admission."""
    return tuple(decode(row, AdmittedPrompt) for _, row in rows.scan(INBOX, (session, PENDING)))


def promotable(prompts: Sequence[AdmittedPrompt], *, is_idle: bool) -> tuple[AdmittedPrompt, ...]:
    """Returns what the next boundary promotes: all that steer, or else, when the session would be idle, one queued."""
    steers = tuple(each for each in prompts if each.delivery == "steer")
    return steers or (tuple(prompts[:1]) if is_idle else ())


def promote(writer: Writer, prompts: Sequence[AdmittedPrompt], *, at: int) -> tuple[str, ...]:
    """Makes user messages of prompts, and returns their ids; one that somebody else promoted meanwhile is left out.

    Raises:
        LifecycleConflictError: One of them does not fit what was admitted.
    """
    promoted = []
    for each in prompts:
        if writer.rows.get(INBOX, (each.session, PENDING, each.admitted)) is not None:
            writer.append(
                PromptPromoted(
                    session=each.session,
                    at=at,
                    message=each.message,
                    admitted=each.admitted,
                    admitted_at=each.at,
                    delivery=each.delivery,
                )
            )
            promoted.append(each.message)
    return tuple(promoted)
