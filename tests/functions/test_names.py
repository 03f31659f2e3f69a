"""Nobody asks for a function's name: analyses, rules, kernels and engines ask the function itself
(its role, its slot, its forms). A name stands in messages only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import terascope

ROOT = Path(terascope.__file__).parent
FOLDERS = (
    "analysis", "optimize", "physical", "kernels", "execute", "streaming", "spark", "sharing",
    "bind", "operate", "local",
)  # fmt: skip
ALLOWED = {
    "analysis/costs.py": "costs are configured and measured by name",
    "physical/statistics/calibrate.py": "measures costs, which are noted by name",
}


def is_name_of_function(node: ast.AST) -> bool:
    """`function.name` or `<anything>.function.name`."""
    match node:
        case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr="name"):
            return owner == "function"
    return False


def asked_names(tree: ast.AST) -> Iterator[int]:
    """The lines in which the name of a function is used for anything but a text."""
    if isinstance(tree, ast.JoinedStr):
        return
    if isinstance(tree, ast.expr) and is_name_of_function(tree):
        yield tree.lineno
    for child in ast.iter_child_nodes(tree):
        yield from asked_names(child)


@pytest.mark.parametrize("folder", FOLDERS)
def test_nobody_asks_for_the_name_of_a_function(folder: str) -> None:
    found = [
        f"{place}:{line}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (place := path.relative_to(ROOT).as_posix()) not in ALLOWED
        for line in asked_names(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "ask the function for its role or for a form of it"


@pytest.mark.parametrize("place", ALLOWED)
def test_exceptions_are_needed(place: str) -> None:
    assert list(asked_names(ast.parse((ROOT / place).read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    "text",
    [
        'call.function.name == "sum"',
        'function.name in ("+", "-")',
        "KINDS[agg.function.name]",
        "RECIPES.get(function.name)",
        'match function.name:\n    case "and": pass',
        "name = function.name",
    ],
)
def test_what_it_finds(text: str) -> None:
    assert list(asked_names(ast.parse(text)))


def test_messages_may_name_a_function() -> None:
    assert not list(asked_names(ast.parse('f"aggregate {call.function.name} does not split"')))
