"""Gives a session a name that people can say. The same id always gets the same one."""

from __future__ import annotations

import hashlib

_ADJECTIVES = (
    "amber", "bold", "brave", "bright", "brisk", "calm", "clear", "clever", "cosy", "crisp", "curious", "eager",
    "fair", "fleet", "gentle", "glad", "golden", "happy", "hidden", "honest", "jolly", "keen", "kind", "lively",
    "lucky", "merry", "mighty", "misty", "neat", "nimble", "noble", "patient", "playful", "proud", "quick", "quiet",
    "rapid", "shiny", "silent", "silver", "sleek", "smooth", "snowy", "stellar", "sunny", "swift", "tidy", "witty",
)  # fmt: skip
_NOUNS = (
    "badger", "bay", "beacon", "birch", "brook", "canyon", "cedar", "cliff", "comet", "coral", "cove", "crane",
    "creek", "delta", "dune", "eagle", "ember", "falcon", "fern", "forest", "fox", "garden", "glacier", "grove",
    "harbor", "heron", "hill", "island", "lagoon", "lake", "lynx", "maple", "meadow", "moon", "otter", "panda",
    "pebble", "pine", "planet", "reef", "river", "rocket", "sparrow", "star", "stone", "tiger", "willow", "wolf",
)  # fmt: skip


def slug_of(session: str) -> str:
    """Returns an adjective and a noun for a session's id."""
    number = int.from_bytes(hashlib.sha256(session.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    return f"{_ADJECTIVES[number % len(_ADJECTIVES)]}-{_NOUNS[number // len(_ADJECTIVES) % len(_NOUNS)]}"
