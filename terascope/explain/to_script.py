"""A split plan as a GSQL script that can be run; costs and reasons are comments."""

from __future__ import annotations

from collections.abc import Iterator

from terascope.explain.model import Box, Picture, PictureNode

COMMENT = "-- "


def as_script(picture: Picture) -> str:
    blocks = ["\n".join(f"{COMMENT}{n}" for n in note.splitlines()) for note in picture.notes]
    blocks += ["\n".join(statement(box)) for box in picture.boxes if box.root is not None]
    return "\n\n".join(blocks) + "\n"


def statement(box: Box) -> Iterator[str]:
    facts = dict(box.facts)
    if "form" in facts:
        yield f"{COMMENT}low: {facts['form']}, {facts['cost']}, read by {facts['read by']}"
    else:
        yield f"{COMMENT}{', '.join(mark for mark in box.marks if mark != 'output')}"
    yield from (f"{COMMENT}  {note}" for note in box.notes)
    if box.text:
        yield box.text
    elif box.root is not None:
        yield f"{COMMENT}{box.name} has no words in GSQL:"
        yield from (f"{COMMENT}{line}" for line in tree(box.root, 1))


def tree(node: PictureNode, depth: int) -> Iterator[str]:
    yield "  " * depth + node.label
    for child in node.children:
        yield from tree(child, depth + 1)
