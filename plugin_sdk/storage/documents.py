"""Turns documents into compact JSON text and back. Knows no store."""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from opencode_core.errors import InvalidDocumentError, StorageDamagedError
from opencode_core.model.json import JSON

DEEPEST = 200
"""How many lists and mappings may stand inside each other: what one program can write, another must be able to read."""

__all__ = ["decode_document", "decode_documents", "encode_document"]


def encode_document(document: JSON) -> str:
    """Returns a document as one line of JSON, with its keys in their order.

    The text can always be encoded as UTF-8 and has no zero in it.

    Raises:
        InvalidDocumentError: It is null, or not JSON.
    """
    if document is None:
        raise InvalidDocumentError("A document is null, which means that there is none.", "Delete it instead.")
    try:
        text = _encoded(document)
        if type(document) not in _LEAVES:
            _check_names(document)
        if len(text) > 2 * DEEPEST and text.count("{") + text.count("[") > DEEPEST:  # each is closed, too
            _check_depth(document)
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON can only spell
        return _ESCAPING.encode(document)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidDocumentError(
            f"A document is not JSON: {error}.", "Use texts, finite numbers, booleans, lists and mappings of texts."
        ) from error
    return text


def decode_document(text: str) -> JSON:
    """Returns the document that a line of JSON holds.

    Raises:
        StorageDamagedError: It is not JSON.
    """
    try:
        document: JSON
        document, end = _DECODER.raw_decode(text)
        if end != len(text):
            document = _DECODER.decode(text)  # which allows for blanks around it
    except (ValueError, RecursionError) as error:
        raise _damaged(error) from error
    return document


def decode_documents(texts: Sequence[str]) -> list[JSON]:
    """Returns the documents of many lines of JSON; this is faster than one at a time.

    Raises:
        StorageDamagedError: One of them is not JSON.
    """
    try:
        documents: list[JSON] = _DECODER.decode(f"[{','.join(texts)}]")
        if len(documents) != len(texts):
            raise ValueError("One of the texts is not one value.")
    except (ValueError, RecursionError) as error:
        raise _damaged(error) from error
    return documents


def _check_names(value: Any) -> None:
    """Refuses names that are not texts, which the encoder would make texts of."""
    if isinstance(value, (list, tuple)):
        members: Iterable[Any] = value
    elif isinstance(value, (dict, Mapping)):
        "".join(value)  # the fastest way to have Python look at each
        members = value.values()
    else:
        return
    if not _LEAVES.issuperset(map(type, members)):
        for member in members:
            if type(member) not in _LEAVES:
                _check_names(member)


def _check_depth(document: Any) -> None:
    level, depth = [document] if type(document) not in _LEAVES else [], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"more than {DEEPEST} lists and mappings stand inside each other")
        inside = (each.values() if isinstance(each, Mapping) else each for each in level)
        level = [one for each in inside for one in each if type(one) not in _LEAVES and not isinstance(one, str)]


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return list(value)
    raise TypeError(f"a '{type(value).__name__}' is not a JSON value")


def _damaged(error: Exception) -> StorageDamagedError:
    # What the text says stays out of the message: it may be private.
    return StorageDamagedError(
        f"A stored document is not JSON ({type(error).__name__}).", "Run 'opencode-core storage check'."
    )


def _make_encoder() -> Callable[[Any], str]:
    """Makes the encoder once: `json` makes it anew for each document, which costs more than a small one takes."""
    slow = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return slow.encode
    # No marks against circles: they are shared between threads, and a circle is a RecursionError anyway.
    chunks = make(None, _plain, json.encoder.encode_basestring, None, ":", ",", False, False, False)
    return lambda document: "".join(chunks(document, 0))


_LEAVES = frozenset({str, int, float, bool, type(None)})
_encoded = _make_encoder()
_ESCAPING = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False, default=_plain)
_DECODER = json.JSONDecoder()
