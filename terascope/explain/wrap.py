"""Long labels in several lines, for pictures."""

from __future__ import annotations

import re

BREAKS = re.compile(r"(?<=,) | (?=AND |OR |on |by |top |sets |closing )|(?<=:) ")


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` characters, broken behind commas and before AND where possible."""
    lines: list[str] = []
    current = ""
    for piece in BREAKS.split(text):
        if current and len(current) + 1 + len(piece) > width:
            lines.append(current)
            current = ""
        current = f"{current} {piece}" if current else piece
        while len(current) > width:
            cut = current.rfind(" ", 1, width)
            cut = width if cut <= 0 else cut
            lines.append(current[:cut])
            current = current[cut:].lstrip()
    return [*lines, current] if current or not lines else lines
