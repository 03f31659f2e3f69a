"""A picture as SVG: a card per box, the operators in it, arrows from what is read to who reads it.

In: a picture. Out: one `<svg>` element with its own style sheet, light or dark as the reader's
screen is; no script, nothing fetched. Letters are of one width, so that sizes can be computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from terascope.explain.layout import BoxPlace, arrange, wrapped
from terascope.explain.model import Box, Picture, PictureNode

CHAR = 7.3
"""Width of a letter at 12 pixels; a little more than most monospaced fonts have."""
LINE = 18
HEADER = 30
PADDING = 12
WIDTH = 58
"""Letters per line at most."""
INDENT = 2
MARGIN = 8
FONT = "ui-monospace, 'SF Mono', 'DejaVu Sans Mono', Menlo, Consolas, monospace"

STYLE = f"""
.ts-pic {{ --bg:#fff; --card:#fbfbfd; --line:#c9ced8; --ink:#1f2430; --soft:#667085;
  --arrow:#98a2b3; --good:#1a7f4b; --warn:#a15c00; --head:#eaf0fb; --src:#f3efdd; --op:#2f5fb3; }}
@media (prefers-color-scheme: dark) {{ .ts-pic {{ --bg:#14171d; --card:#1b1f27; --line:#3a4150;
  --ink:#e4e7ec; --soft:#98a2b3; --arrow:#667085; --good:#5fd39a; --warn:#f0b35a; --head:#222b3c;
  --src:#2b2a20; --op:#8db4ff; }} }}
.ts-pic {{ background:var(--bg); }}
.ts-pic text {{ font:12px {FONT}; fill:var(--ink); white-space:pre; }}
.ts-pic .card {{ fill:var(--card); stroke:var(--line); }}
.ts-pic .internal {{ stroke-dasharray:5 4; }}
.ts-pic .head {{ fill:var(--head); }}
.ts-pic .source .head {{ fill:var(--src); }}
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
    """How many letters at its start are the operator's name."""
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Card:
    box: Box
    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        return self.box.name

    @property
    def marks(self) -> str:
        return ", ".join(self.box.marks)

    @property
    def size(self) -> tuple[int, int]:
        letters = max((len(r.text) + r.indent for r in self.rows), default=0)
        head = (len(self.title) + len(self.marks) + 3) * 1.1
        width = int(max(letters, head) * CHAR) + 2 * PADDING
        body = len(self.rows) * LINE + PADDING if self.rows else 0
        return max(width, 90), HEADER + body


def as_svg(picture: Picture) -> str:
    cards = {box.id: Card(box, tuple(card_rows(box))) for box in picture.boxes}
    sizes = {name: card.size for name, card in cards.items()}
    places = arrange(picture, sizes)
    width = max((p.x + sizes[n][0] for n, p in places.items()), default=0) + 2 * MARGIN
    height = max((p.y + sizes[n][1] for n, p in places.items()), default=0) + 2 * MARGIN
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


def card_shapes(card: Card, at: BoxPlace) -> Iterator[str]:
    width, height = card.size
    internal = " internal" if "internal" in card.box.marks else ""
    yield f'<g class="{card.box.kind}" transform="translate({at.x} {at.y})">'
    if card.box.text:
        yield f"<title>{escape(card.box.text)}</title>"
    yield f'<rect class="card{internal}" width="{width}" height="{height}" rx="8"/>'
    yield (
        f'<path class="head" d="M.5 {HEADER} V8 Q.5 .5 8 .5 H{width - 8} Q{width - 0.5} .5 '
        f'{width - 0.5} 8 V{HEADER} Z"/>'
    )
    marks = f'<tspan class="mark" dx="8">{escape(card.marks)}</tspan>' if card.marks else ""
    yield f'<text class="name" x="{PADDING}" y="20">{escape(card.title)}{marks}</text>'
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
    cards: dict[str, Card], sizes: dict[str, tuple[int, int]], places: dict[str, BoxPlace]
) -> Iterator[str]:
    for name, card in cards.items():
        for number, row in enumerate(card.rows):
            y = places[name].y + HEADER + number * LINE + LINE - 4
            for source in row.reads:
                start = places[source]
                yield curve(start.x + sizes[source][0], start.y + HEADER // 2, places[name].x, y)


def curve(x1: int, y1: int, x2: int, y2: int) -> str:
    bend = max(30, (x2 - x1) // 2)
    return (
        f'<path class="arrow" d="M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2 - 6} {y2}"/>'
        f'<path class="tip" d="M{x2} {y2} l-8 -4 v8 z"/>'
    )
