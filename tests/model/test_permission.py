"""Permission rules: the last one that matches counts, and a wildcard is as wide as it looks."""

import pytest

from opencode_core.model.permission import PermissionAnswer, PermissionRule, evaluate_rules, matches


def rules(*said: tuple[str, str, PermissionAnswer]) -> tuple[PermissionRule, ...]:
    return tuple(PermissionRule(permission=name, pattern=pattern, action=action) for name, pattern, action in said)


def test_without_a_rule_somebody_is_asked() -> None:
    assert evaluate_rules((), "edit", "a.py") == "ask"
    assert evaluate_rules(rules(("read", "*", "allow")), "edit", "a.py") == "ask"


def test_the_last_rule_that_matches_both_counts() -> None:
    said = rules(("*", "*", "deny"), ("edit", "*", "allow"), ("edit", "*.lock", "deny"), ("read", "*", "ask"))
    assert evaluate_rules(said, "edit", "a.py") == "allow"
    assert evaluate_rules(said, "edit", "uv.lock") == "deny"
    assert evaluate_rules(said, "bash", "ls") == "deny"
    assert evaluate_rules(said, "read", "a.py") == "ask"


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("*", "", True),
        ("*", "any/thing\nat all", True),
        ("src/*", "src/a/b.py", True),
        ("src/*", "src", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("git *", "git", True),
        ("git *", "git status", True),
        ("git *", "gitk", False),
        ("git status*", "git status --short", True),
        ("a.b", "axb", False),
        ("[ab]", "a", False),
        ("src/*", "src\\windows\\a.py", True),
        ("src\\*", "src/a.py", True),
        ("Readme", "readme", False),
    ],
)
def test_a_pattern_fits_what_it_says(pattern: str, text: str, fits: bool) -> None:
    assert matches(pattern, text) is fits
