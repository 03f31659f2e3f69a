"""docs/architecture.md lists the functions that a packet passes through, batch and stream."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
HOP = re.compile(r"^\d+\. `(?P<path>[\w/]+\.py)`: `(?P<name>[\w.]+)`", re.MULTILINE)

MOST_HOPS = {"batch": 25, "stream": 32}
MOST_CHANGES = {"batch": 8, "stream": 12}
"""How often the next function stands in another folder of terascope/."""


def way(kind: str) -> list[tuple[str, str]]:
    section = PAGE.split(f"### The way of a packet: {kind}", 1)[1].split("\n## ", 1)[0]
    section = section.split("\n### ", 1)[0]
    return [(hop["path"], hop["name"]) for hop in HOP.finditer(section)]


def defined(path: str) -> dict[str, ast.AST]:
    """The functions and classes of a module; a method under the name of its class."""
    tree = ast.parse((ROOT / "terascope" / path).read_text(encoding="utf-8"))
    found: dict[str, ast.AST] = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        if isinstance(node, ast.ClassDef):
            methods = (one for one in node.body if isinstance(one, ast.FunctionDef))
            found |= {f"{node.name}.{one.name}": one for one in methods}
    return found


def folder(path: str) -> str:
    return path.split("/")[0] if "/" in path else ""


@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_the_way_is_short(kind: str) -> None:
    hops = way(kind)
    changes = sum(folder(a) != folder(b) for (a, _), (b, _) in pairwise(hops))
    assert 15 < len(hops) <= MOST_HOPS[kind]
    assert changes <= MOST_CHANGES[kind]


@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_every_hop_is_there_and_leads_to_the_next(kind: str) -> None:
    """Each function is called by one before it, or calls the one before it."""
    hops = way(kind)
    for path, name in hops:
        assert name in defined(path), f"{path}: {name}"
    seen = ""
    for (path, name), (then, after) in pairwise(hops):
        seen += (ROOT / "terascope" / path).read_text(encoding="utf-8")
        there = (ROOT / "terascope" / then).read_text(encoding="utf-8")
        leads = names(after, seen) or names(name, there)
        assert leads, f"{path}: {name} and {then}: {after}"


def names(function: str, text: str) -> bool:
    """Whether a text has the name of a function, or of its class."""
    return any(re.search(rf"\b{word}\b", text) for word in function.split("."))
