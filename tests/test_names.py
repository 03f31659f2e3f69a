"""Two things never share a class name: a name says which thing is meant, wherever it stands."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "terascope"


def class_names() -> dict[str, list[str]]:
    """The modules that define a class of each name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(path.relative_to(PACKAGE).as_posix())
    return found


def test_no_two_classes_have_one_name() -> None:
    several = {name: modules for name, modules in class_names().items() if len(modules) > 1}
    assert not several
