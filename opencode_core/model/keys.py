"""The grammars of keys and names. Says what is wrong with one; never repairs it."""

from __future__ import annotations

import re

from opencode_core.errors import InvalidKeyError

_SOURCE_KEY = re.compile(r"[a-z0-9._-]+(?:/[a-z0-9._-]+)+")
_TOOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_PLUGIN_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_ENTRY_NAME = re.compile(r"[^\s/][^\s]*")


def check_source_key(key: object) -> str:
    """Returns the key of a context source, or of any other namespaced contribution, unchanged.

    Raises:
        InvalidKeyError: It has no namespace, or a character outside ``a-z 0-9 . _ -``.
    """
    if isinstance(key, str) and _SOURCE_KEY.fullmatch(key):
        return key
    if isinstance(key, str) and "/" not in key:
        raise InvalidKeyError(f"The key '{key}' has no namespace.", f"Write it as 'your-plugin/{key or 'name'}'.")
    raise InvalidKeyError(
        f"{_quoted(key)} is not a key.",
        "Use lower-case letters, digits, '.', '_' and '-', with a '/' after the namespace.",
    )


def check_tool_name(name: object) -> str:
    """Returns the name of a tool unchanged.

    Raises:
        InvalidKeyError: It is not a letter followed by at most 63 letters, digits, '_' or '-'.
    """
    if isinstance(name, str) and _TOOL_NAME.fullmatch(name):
        return name
    raise InvalidKeyError(
        f"{_quoted(name)} is not a tool name.", "Use a letter, then at most 63 letters, digits, '_' or '-'."
    )


def check_plugin_name(name: object) -> str:
    """Returns the name of a plugin unchanged.

    Raises:
        InvalidKeyError: It is not a lower-case letter or digit followed by at most 63 of ``a-z 0-9 . _ -``.
    """
    if isinstance(name, str) and _PLUGIN_NAME.fullmatch(name):
        return name
    raise InvalidKeyError(
        f"{_quoted(name)} is not a plugin name.",
        "Use lower-case letters, digits, '.', '_' and '-', at most 64.",
    )


def check_entry_name(name: object) -> str:
    """Returns the name of an agent, a command, a skill or a provider unchanged.

    Raises:
        InvalidKeyError: It is empty, starts with a slash, or holds white space.
    """
    if isinstance(name, str) and _ENTRY_NAME.fullmatch(name):
        return name
    raise InvalidKeyError(f"{_quoted(name)} is not a name.", "Use at least one character, without white space.")


def _quoted(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else f"A value of type '{type(value).__name__}'"
