"""Copies a conversation into a new session, under new ids. Changes nothing in the old one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from opencode_core.errors import MessageNotFoundError
from opencode_core.ids import Ids
from opencode_core.model.event.conversation import MessageImported
from opencode_core.model.json import JSON
from opencode_core.model.rows import MESSAGES
from opencode_core.session.reading import message_keys, part_documents
from opencode_core.storage.writer import Writer


def copy_messages(writer: Writer, ids: Ids, source: str, target: str, *, until: str | None, at: int) -> None:
    """Records the messages of one session in another, up to a message that is not among them.

    Args:
        writer: The transaction.
        ids: Makes the new ids.
        source: The session that is copied.
        target: The session that they are recorded in.
        until: Where to stop; None to copy all.
        at: When.

    Raises:
        MessageNotFoundError: The message to stop at is not in the session.
    """
    order = [id for _, id in message_keys(writer.rows, source)]
    if until is not None:
        if until not in order:
            raise MessageNotFoundError(
                f"There is no message '{until}' in session '{source}'.", "Fork at one that is there.", session=source
            )
        order = order[: order.index(until)]
    new = {old: ids.ascending("message") for old in order}
    for old in order:
        writer.append(_copied(writer, ids, source, target, old, new, at))


def _copied(
    writer: Writer, ids: Ids, source: str, target: str, old: str, new: Mapping[str, str], at: int
) -> MessageImported:
    document = dict(cast("Mapping[str, JSON]", writer.rows.get(MESSAGES, (source, old))))
    document |= {"id": new[old], "sessionID": target}
    _point(document, "parentID", new)
    _point(document, "tail_start_id", new)
    parts = []
    for part in part_documents(writer.rows, old):
        copied = {**part, "id": ids.ascending("part"), "sessionID": target, "messageID": new[old]}
        _point(copied, "tail_start_id", new)
        parts.append(copied)
    return MessageImported(session=target, at=at, message=new[old], document=document, parts=tuple(parts))


def _point(document: dict[str, JSON], name: str, new: Mapping[str, str]) -> None:
    """Lets a reference follow what it points to; one that points outside the copy is left out."""
    if name in document:
        found = new.get(str(document.pop(name)))
        if found is not None:
            document[name] = found
        elif name == "parentID":
            document[name] = ""
