"""Walking over the nodes of the Script, without recursion: text may nest as deep as it likes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from terascope.syntax.ast import SyntaxNode


def children(node: SyntaxNode) -> Iterator[SyntaxNode]:
    pending: list[Any] = [getattr(node, each.name) for each in fields(node)]
    while pending:
        value = pending.pop()
        if isinstance(value, SyntaxNode):
            yield value
        elif isinstance(value, tuple):
            pending += value


def walk(node: SyntaxNode) -> Iterator[SyntaxNode]:
    """A node and all nodes below it."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending += children(node)
