"""What the two public packages promise is there, written out the same in all three places."""

import ast
import importlib
from pathlib import Path

import pytest

PACKAGES = ["opencode_core", "plugin_sdk"]


def _imported_for_type_checkers(package: str) -> dict[str, str]:
    source = Path(str(importlib.import_module(package).__file__)).read_text()
    return {
        alias.name: str(node.module)
        for block in ast.parse(source).body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_and_python_find_the_same_names(package: str) -> None:
    module = importlib.import_module(package)

    assert _imported_for_type_checkers(package) == module._HOMES
    assert sorted(module.__all__) == sorted(module._HOMES)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_promised_name_can_be_imported(package: str) -> None:
    module = importlib.import_module(package)

    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_is_not_promised_is_an_ordinary_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        importlib.import_module(package).__getattr__("no_such_name")
