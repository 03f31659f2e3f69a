"""A Script as a picture: a box per statement, in it the tree of what was read.

Every node of the Script is shown with the name of the part it plays, so that precedence and
nesting can be seen as the parser saw them.
"""

from __future__ import annotations

from dataclasses import fields

from terascope.explain.model import Box, Picture, PictureNode
from terascope.syntax import ast
from terascope.syntax.printer import print_statement
from terascope.types import format_ip

QUIET = (None, False, (), "")
"""Values that go without saying."""


def picture_of_script(script: ast.Script, title: str) -> Picture:
    boxes: list[Box] = []
    unnamed = 0
    for number, statement in enumerate(script.statements, 1):
        name = getattr(statement, "name", None)
        if name is None:
            unnamed += 1
            name = f"query{unnamed}"
        root, text = syntax_node(statement), print_statement(statement)
        boxes.append(Box(f"statement:{number}", name, "statement", root=root, text=text))
    return Picture("ast", title, tuple(boxes))


def syntax_node(node: ast.SyntaxNode, part: str = "") -> PictureNode:
    """A node and its children, each under the name of its field."""
    kind = type(node).__name__.rstrip("_")
    plain: list[str] = []
    children: list[PictureNode] = []
    for field in fields(node):
        value = getattr(node, field.name)
        if not field.compare or field.name == "hexadecimal" or value in QUIET:
            continue
        below = list(parts(field.name, value))
        if below:
            children += below
        else:
            plain.append(f"{field.name.rstrip('_')}={show(node, value)}")
    label = " ".join([kind, *plain])
    return PictureNode(kind, f"{part}: {label}" if part else label, children=tuple(children))


def parts(name: str, value: object) -> list[PictureNode]:
    """The nodes in a field: itself, or those of a tuple, however deep."""
    if isinstance(value, ast.SyntaxNode):
        return [syntax_node(value, name.rstrip("_"))]
    if isinstance(value, tuple):
        return [node for each in value for node in parts(name, each)]
    return []


def show(node: ast.SyntaxNode, value: object) -> str:
    if isinstance(node, ast.Literal_) and isinstance(value, bytes):
        return format_ip(value) if node.kind in ("ip", "ipv6") else value.hex()
    if isinstance(value, tuple):
        return "(" + ", ".join(map(str, value)) + ")"
    return repr(value) if isinstance(value, str) else str(value)
