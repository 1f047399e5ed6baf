"""Shows storage URLs without their secrets. Opens nothing."""

from __future__ import annotations

import re
from urllib.parse import unquote

_SECRET = re.compile(r"(?i)pass|secret|token|key|credential")


def shown(url: str) -> str:
    """Returns a URL without the passwords and tokens in it, for people and logs."""
    address, question, switches = url.partition("?")
    scheme, colon, rest = address.partition("://")
    if colon and not rest.startswith("/"):
        # The last one, because a password that nobody escaped may have any of these signs in it: hide too much then.
        whole = rest + question + switches
        who, at, where = whole.rpartition("@")
        user, has_password, _ = who.partition(":")
        if at and has_password:
            rest, question, switches = f"{user}:***@{where}".partition("?")
    return scheme + colon + rest + question + "&".join(map(_masked, switches.split("&")))


def _masked(switch: str) -> str:
    name, equals, _ = switch.partition("=")
    return f"{name}=***" if equals and _SECRET.search(unquote(name)) else switch
