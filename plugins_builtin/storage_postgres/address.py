"""Reads the URL of a PostgreSQL store. Connects to nothing, and never repeats a password."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlencode

import attrs
import psycopg
from psycopg.conninfo import conninfo_to_dict

from plugin_sdk.storage import StorageUrlError, shown

_OWN = {"schema": "opencode", "pool": "8", "timeout": "10"}
_SCHEMA = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_DEFAULTS: Mapping[str, str | int] = {
    "application_name": "opencode-core",
    # A machine that vanished without a word is noticed after about half a minute: by the keepalives while an answer is
    # awaited, by the other while something is sent (on Linux; elsewhere only when the system itself gives up). Not so a
    # server process that hangs, because its machine still confirms everything.
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_SECRETS = ("password", "sslpassword", "oauth_client_secret")


@attrs.frozen(kw_only=True, repr=False)
class Address:
    """Where a store is, and how to use it.

    Attributes:
        url: What the person configured, without its secrets.
        parameters: What psycopg is told; there may be a password in it.
        schema: The database schema that the store has to itself.
        pool: How many connections do the work.
        timeout: How many seconds connecting may take.
    """

    url: str
    parameters: Mapping[str, str | int]
    schema: str
    pool: int
    timeout: float

    def scrubbed(self, message: str) -> str:
        """Returns a message of libpq without the secrets that it may repeat."""
        for name in _SECRETS:
            secret = str(self.parameters.get(name) or "")
            for spelling in (secret, quote(secret), quote(secret, safe="")):
                if spelling:
                    message = message.replace(spelling, "***")
        return message


def read_address(url: str) -> Address:
    """Returns what a URL says.

    Raises:
        StorageUrlError: It is not the URL of a PostgreSQL store.
    """
    base, own, theirs = _split(url)
    parameters = _parameters(base, theirs)
    _check_credentials(parameters)
    if _SCHEMA.fullmatch(own["schema"]) is None:
        raise StorageUrlError(
            f"{own['schema']!r} is not the name of a schema for a store.",
            "Use lower-case letters, digits and underscores, and do not begin with a digit or 'pg_'.",
        )
    timeout = _number(own, "timeout", least=0.1)
    return Address(
        url=shown(url),
        # libpq takes whole seconds, and 1 as 2.
        parameters={**_DEFAULTS, "connect_timeout": max(2, round(timeout)), **parameters, "client_encoding": "UTF8"},
        schema=own["schema"],
        pool=int(_number(own, "pool", least=2)),
        timeout=timeout,
    )


def _split(url: str) -> tuple[str, dict[str, str], list[tuple[str, str]]]:
    base, _, query = url.partition("?")
    own: dict[str, str] = {}
    theirs: list[tuple[str, str]] = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in _OWN:
            theirs.append((name, value))
        elif name in own:
            raise StorageUrlError(f"The storage URL '{shown(url)}' has twice the switch '{name}'.", "Leave one out.")
        else:
            own[name] = value
    return base, {**_OWN, **own}, theirs


def _parameters(base: str, theirs: list[tuple[str, str]]) -> dict[str, str | int]:
    query = f"?{urlencode(theirs, quote_via=quote)}" if theirs else ""
    try:
        found = conninfo_to_dict(base + query)
    except psycopg.Error:
        # Neither the URL nor what libpq says about it: either may repeat a misplaced password.
        raise StorageUrlError(
            "The storage URL is not one that PostgreSQL understands: a part of it or a switch is wrong.", _LIKE
        ) from None
    return {name: value for name, value in found.items() if value is not None}


def _check_credentials(parameters: Mapping[str, str | int]) -> None:
    """Refuses what a password with bare ``@``, ``:`` or ``/`` in it makes of a URL, before anybody repeats it."""
    host, port = str(parameters.get("host", "")), str(parameters.get("port", ""))
    ports = port.split(",") if port else []
    if "@" in host or "@" in str(parameters.get("dbname", "")) or not all(one.isdecimal() for one in ports if one):
        raise StorageUrlError("The host, the port or the database of the storage URL is malformed.", _LIKE)


def _number(own: Mapping[str, str], name: str, *, least: float) -> float:
    try:
        number = float(own[name])
    except ValueError:
        number = -1
    if not least <= number <= 10_000:
        raise StorageUrlError(
            f"The switch '{name}' of the storage URL is {own[name]!r}.", f"Give a number of at least {least}."
        )
    return number


_LIKE = (
    "Write it like 'postgresql://user:password@host:5432/database?schema=opencode', and the characters '@', ':', '/', "
    "'?' and '%' in a password as '%40', '%3A', '%2F', '%3F' and '%25'."
)
