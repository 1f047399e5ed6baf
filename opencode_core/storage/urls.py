"""Shows storage URLs without their secrets. Opens nothing."""

from __future__ import annotations

import re

_SECRET_SWITCH = re.compile(r"(?i)([?&][^=&]*(?:password|passfile|secret|token|key)[^=&]*=)[^&#]*")


def shown(url: str) -> str:
    """Returns a URL without the passwords and tokens in it, for people and logs."""
    scheme, colon, rest = url.partition("://")
    if colon and not rest.startswith("/"):
        # The last one, because a password that nobody escaped may have any of these signs in it: hide too much then.
        who, at, where = rest.rpartition("@")
        user, has_password, _ = who.partition(":")
        if at and has_password:
            rest = f"{user}:***@{where}"
    return _SECRET_SWITCH.sub(r"\1***", scheme + colon + rest)
