"""Where the cards of a picture stand: columns from left to right, in the direction tuples flow.

In: a picture, and how large each card is. Out: a place for each card. A card stands right of all it
reads; within a column, cards stand near those they are connected with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from terascope.explain.model import Picture

GAP_X = 70
GAP_Y = 26
SWEEPS = 6
SHELF = 1400
"""Width of a row of cards without arrows."""


@dataclass(frozen=True)
class BoxPlace:
    x: int
    y: int


def arrange(picture: Picture, sizes: Mapping[str, tuple[int, int]]) -> dict[str, BoxPlace]:
    """The upper left corner of every box."""
    if not picture.arrows:
        return shelved([box.id for box in picture.boxes], sizes)
    columns = sorted_columns(picture, layers(picture))
    heights = [sum(sizes[b][1] for b in c) + GAP_Y * (len(c) - 1) for c in columns]
    tallest = max(heights, default=0)
    places: dict[str, BoxPlace] = {}
    x = 0
    for column, height in zip(columns, heights, strict=True):
        y = (tallest - height) // 2
        for box in column:
            places[box] = BoxPlace(x, y)
            y += sizes[box][1] + GAP_Y
        x += max(sizes[b][0] for b in column) + GAP_X
    return places


def shelved(boxes: list[str], sizes: Mapping[str, tuple[int, int]]) -> dict[str, BoxPlace]:
    """Boxes that have nothing to do with each other: side by side, then the next row."""
    places: dict[str, BoxPlace] = {}
    x = y = tallest = 0
    for box in boxes:
        width, height = sizes[box]
        if x and x + width > SHELF:
            x, y, tallest = 0, y + tallest + GAP_Y, 0
        places[box] = BoxPlace(x, y)
        x += width + GAP_Y
        tallest = max(tallest, height)
    return places


def layers(picture: Picture) -> list[list[str]]:
    """Boxes by the length of the longest way from a source; those without arrows one by one."""
    depth = {box.id: 0 for box in picture.boxes}
    # Boxes stand after what they read, so one pass is enough.
    order = {box.id: number for number, box in enumerate(picture.boxes)}
    for source, target in sorted(picture.arrows, key=lambda a: order[a[1]]):
        depth[target] = max(depth[target], depth[source] + 1)
    found: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for box, level in depth.items():
        found[level].append(box)
    return [level for level in found if level]


def sorted_columns(picture: Picture, columns: list[list[str]]) -> list[list[str]]:
    """A few sweeps that move each box to the middle of its neighbours."""
    neighbours: dict[str, list[str]] = {box.id: [] for box in picture.boxes}
    for source, target in picture.arrows:
        neighbours[source].append(target)
        neighbours[target].append(source)
    rank = {box: float(i) for column in columns for i, box in enumerate(column)}
    for _ in range(SWEEPS):
        for column in columns:
            wanted = {
                box: sum(rank[n] for n in near) / len(near)
                if (near := neighbours[box])
                else rank[box]
                for box in column
            }
            column.sort(key=lambda box: (wanted[box], rank[box]))
            rank |= {box: float(i) for i, box in enumerate(column)}
    return columns


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
