"""A picture as SVG: a card per box, the operators in it, arrows from what is read to who reads it.

In: a picture. Out: one `<svg>` element with its own style sheet, light or dark as the reader's
screen is; no script, nothing fetched. Letters are of one width, so that sizes can be computed.
Cards stand in columns from left to right, in the direction tuples flow: a card stands right of all
it reads, and within a column near the cards it is connected with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

from terascope.explain.model import CENTRAL, PARTITIONED, Box, Picture, PictureNode

CHAR = 7.3
"""Width of a letter at 12 pixels; a little more than most monospaced fonts have."""
LINE = 18
HEADER = 30
PADDING = 12
WIDTH = 58
"""Letters per line at most."""
INDENT = 2
MARGIN = 8
GAP_X = 70
GAP_Y = 26
SWEEPS = 6
SHELF = 1400
"""Width of a row of cards without arrows."""
FONT = "ui-monospace, 'SF Mono', 'DejaVu Sans Mono', Menlo, Consolas, monospace"
COLOUR = re.compile(r"(--\w+):(#\w+)")
PLACES = {PARTITIONED: "partitioned", CENTRAL: "central"}
Pair: TypeAlias = tuple[int, int]
"""The size of a card, or the place of its upper left corner."""
STYLE = f"""
.ts-pic {{ --bg:#fff; --card:#fbfbfd; --line:#c9ced8; --ink:#1f2430; --soft:#667085;
  --arrow:#98a2b3; --good:#1a7f4b; --warn:#a15c00; --head:#eaf0fb; --src:#f3efdd; --op:#2f5fb3;
  --part:#d5efdf; --cent:#fbe0c4; }}
@media (prefers-color-scheme: dark) {{ .ts-pic {{ --bg:#14171d; --card:#1b1f27; --line:#3a4150;
  --ink:#e4e7ec; --soft:#98a2b3; --arrow:#667085; --good:#5fd39a; --warn:#f0b35a; --head:#222b3c;
  --src:#2b2a20; --op:#8db4ff; --part:#1d3a2a; --cent:#46301a; }} }}
.ts-pic {{ background:var(--bg); }}
.ts-pic text {{ font:12px {FONT}; fill:var(--ink); white-space:pre; }}
.ts-pic .card {{ fill:var(--card); stroke:var(--line); }}
.ts-pic .internal {{ stroke-dasharray:5 4; }}
.ts-pic .head {{ fill:var(--head); }}
.ts-pic .source .head {{ fill:var(--src); }}
.ts-pic .partitioned .head {{ fill:var(--part); }}
.ts-pic .partitioned .card {{ stroke:var(--good); }}
.ts-pic .central .head {{ fill:var(--cent); }}
.ts-pic .central .card {{ stroke:var(--warn); }}
.ts-pic .name {{ font-weight:700; font-size:13px; }}
.ts-pic .mark, .ts-pic .fact {{ fill:var(--soft); }}
.ts-pic .op {{ font-weight:700; fill:var(--op); }}
.ts-pic .remark {{ fill:var(--good); font-size:11px; }}
.ts-pic .note {{ fill:var(--warn); font-size:11px; }}
.ts-pic .arrow {{ fill:none; stroke:var(--arrow); stroke-width:1.4; }}
.ts-pic .tip {{ fill:var(--arrow); }}
"""


@dataclass(frozen=True)
class Row:
    """A line of a card. `reads`: the boxes whose arrows end at this line."""

    style: str
    text: str
    indent: int = 0
    bold: int = 0
    """The number of letters of the operator's name, at the start."""
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Card:
    box: Box
    rows: tuple[Row, ...]

    @property
    def size(self) -> tuple[int, int]:
        letters = max((len(r.text) + r.indent for r in self.rows), default=0)
        head = (len(self.box.name) + len(", ".join(self.box.marks)) + 3) * 1.1
        width = int(max(letters, head) * CHAR) + 2 * PADDING
        body = len(self.rows) * LINE + PADDING if self.rows else 0
        return max(width, 90), HEADER + body


def as_svg(picture: Picture) -> str:
    cards = {box.id: Card(box, tuple(card_rows(box))) for box in picture.boxes}
    sizes = {name: card.size for name, card in cards.items()}
    places = arrange(picture, sizes)
    width = max((x + sizes[name][0] for name, (x, _) in places.items()), default=0) + 2 * MARGIN
    height = max((y + sizes[name][1] for name, (_, y) in places.items()), default=0) + 2 * MARGIN
    body = [
        *arrow_shapes(cards, sizes, places),
        *(shape for name, card in cards.items() for shape in card_shapes(card, places[name])),
    ]
    return (
        f'<svg class="ts-pic" xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="{-MARGIN} {-MARGIN} {width} {height}" role="img"'
        f' aria-label="{escape(picture.stage)} of {escape(picture.title)}">'
        f"<style>{STYLE}</style>" + "".join(body) + "</svg>"
    )


def as_svg_file(picture: Picture) -> str:
    """The drawing as a file of its own, in light colours: many programs that show SVG know no
    variables of style sheets.
    """
    svg = as_svg(picture)
    light = dict(COLOUR.findall(svg[: svg.index("@media")]))
    return re.sub(r"var\((--\w+)\)", lambda found: light[found[1]], svg) + "\n"


# ---- what stands on a card -----------------------------------------------------------------------


def card_rows(box: Box) -> Iterator[Row]:
    for word, value in box.facts:
        yield from (Row("fact", line) for line in wrapped(f"{word}: {value}", WIDTH))
    for note in box.notes:
        yield from (Row("note", line) for line in wrapped(note, WIDTH))
    if box.root is not None:
        yield from node_rows(box.root, 0)


def node_rows(node: PictureNode, depth: int) -> Iterator[Row]:
    indent = depth * INDENT
    first, *rest = wrapped(node.label, max(24, WIDTH - indent))
    yield Row("", first, indent, len(node.label.split(" ")[0]), node.reads)
    yield from (Row("", line, indent + INDENT) for line in rest)
    for remark in node.remarks:
        yield from (Row("remark", line, indent + INDENT) for line in wrapped(remark, WIDTH))
    for child in node.children:
        yield from node_rows(child, depth + 1)


def card_shapes(card: Card, at: Pair) -> Iterator[str]:
    width, height = card.size
    internal = " internal" if "internal" in card.box.marks else ""
    place = "".join(f" {PLACES[mark]}" for mark in card.box.marks if mark in PLACES)
    yield f'<g class="{card.box.kind}{place}" transform="translate({at[0]} {at[1]})">'
    if card.box.text:
        yield f"<title>{escape(card.box.text)}</title>"
    yield f'<rect class="card{internal}" width="{width}" height="{height}" rx="8"/>'
    yield (
        f'<path class="head" d="M.5 {HEADER} V8 Q.5 .5 8 .5 H{width - 8} Q{width - 0.5} .5 '
        f'{width - 0.5} 8 V{HEADER} Z"/>'
    )
    words = escape(", ".join(card.box.marks))
    marks = f'<tspan class="mark" dx="8">{words}</tspan>' if words else ""
    yield f'<text class="name" x="{PADDING}" y="20">{escape(card.box.name)}{marks}</text>'
    for number, row in enumerate(card.rows):
        yield row_shape(row, HEADER + (number + 1) * LINE)
    yield "</g>"


def row_shape(row: Row, y: int) -> str:
    x = PADDING + row.indent * CHAR
    text = f'<tspan class="op">{escape(row.text[: row.bold])}</tspan>' if row.bold else ""
    style = f' class="{row.style}"' if row.style else ""
    return f'<text{style} x="{x:.1f}" y="{y}">{text}{escape(row.text[row.bold :])}</text>'


# ---- arrows --------------------------------------------------------------------------------------


def arrow_shapes(
    cards: dict[str, Card], sizes: dict[str, Pair], places: dict[str, Pair]
) -> Iterator[str]:
    for name, card in cards.items():
        x, top = places[name]
        for number, row in enumerate(card.rows):
            y = top + HEADER + number * LINE + LINE - 4
            for source in row.reads:
                left, upper = places[source]
                yield curve(left + sizes[source][0], upper + HEADER // 2, x, y)


def curve(x1: int, y1: int, x2: int, y2: int) -> str:
    bend = max(30, (x2 - x1) // 2)
    return (
        f'<path class="arrow" d="M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2 - 6} {y2}"/>'
        f'<path class="tip" d="M{x2} {y2} l-8 -4 v8 z"/>'
    )


# ---- where the cards stand -----------------------------------------------------------------------


def arrange(picture: Picture, sizes: Mapping[str, Pair]) -> dict[str, Pair]:
    """The upper left corner of every box."""
    if not picture.arrows:
        return shelved([box.id for box in picture.boxes], sizes)
    columns = sorted_columns(picture, layers(picture))
    heights = [sum(sizes[b][1] for b in c) + GAP_Y * (len(c) - 1) for c in columns]
    tallest = max(heights, default=0)
    places: dict[str, Pair] = {}
    x = 0
    for column, height in zip(columns, heights, strict=True):
        y = (tallest - height) // 2
        for box in column:
            places[box] = (x, y)
            y += sizes[box][1] + GAP_Y
        x += max(sizes[b][0] for b in column) + GAP_X
    return places


def shelved(boxes: list[str], sizes: Mapping[str, Pair]) -> dict[str, Pair]:
    """Boxes that have nothing to do with each other: side by side, then the next row."""
    places: dict[str, Pair] = {}
    x = y = tallest = 0
    for box in boxes:
        width, height = sizes[box]
        if x and x + width > SHELF:
            x, y, tallest = 0, y + tallest + GAP_Y, 0
        places[box] = (x, y)
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
