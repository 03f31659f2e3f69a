"""A picture in the language of Graphviz: `terascope explain --format dot ... | dot -Tsvg`.

Tuples flow from top to bottom: sources, operators, results. Every stream is a frame around its
operators; reading another stream is an arrow from its last operator, not a node.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from terascope.explain.model import Box, Picture, PictureNode
from terascope.explain.to_svg import wrapped

WIDTH = 46
COLOURS = {
    "Scan": "#d7e8d4", "Lookup": "#d7e8d4", "Filter": "#fbe3c8", "Project": "#e8e8ee",
    "Window": "#dcd9f2", "Aggregate": "#cfe0f5", "Running": "#cfe0f5", "Rank": "#f3dcea",
    "Join": "#f6d3d0", "Merge": "#d3ece9",
}  # fmt: skip
HEAD = """\
digraph terascope {
  graph [rankdir=TB, fontname="Helvetica", fontsize=12, labeljust=l, ranksep=0.35, nodesep=0.3,
         bgcolor="white", pad=0.2];
  node  [fontname="Helvetica", fontsize=10, shape=box, style="rounded,filled",
         fillcolor="#eeeeee", color="#8a8f98", penwidth=0.8, margin="0.12,0.07"];
  edge  [fontname="Helvetica", fontsize=9, color="#5b616b", arrowsize=0.6, penwidth=0.9];\
"""


def as_dot(picture: Picture) -> str:
    ends = {box.id: root_id(box) for box in picture.boxes}
    lines = [HEAD, f'  label="{quoted(picture.title)} ({picture.stage})"; labelloc=t;']
    for box in picture.boxes:
        lines += stream_lines(box, ends) if box.root is not None else [source_line(box)]
    return "\n".join([*lines, "}"]) + "\n"


def root_id(box: Box) -> str:
    """The node that arrows leave a box from."""
    return box.id if box.root is None or box.root.kind == "Read" else f"{box.id}/0"


def source_line(box: Box) -> str:
    parts = [f"<B>{escape(box.name)}</B>"]
    for word, value in box.facts:
        parts += [small(line) for line in wrapped(f"{word} {value}", WIDTH)]
    parts += [small(line, "#8a4b08") for note in box.notes for line in wrapped(note, WIDTH)]
    label = '<BR ALIGN="LEFT"/>'.join(parts) + ('<BR ALIGN="LEFT"/>' if len(parts) > 1 else "")
    look = 'shape=cylinder, style=filled, fillcolor="#f4f1e4"'
    return f'  "{quoted(box.id)}" [{look}, label=<{label}>];'


def stream_lines(box: Box, ends: dict[str, str]) -> Iterator[str]:
    marks = [mark for mark in box.marks if mark != "output"]
    title = f"<B>{escape(box.name)}</B>" + (f"  <I>{', '.join(marks)}</I>" if marks else "")
    style = "dashed" if "internal" in box.marks else "solid"
    yield f'  subgraph "cluster_{quoted(box.id)}" {{'
    yield f'    label=<{title}>; style="rounded,{style}"; color="#aab0ba"; margin=10;'
    assert box.root is not None
    edges: list[str] = []
    yield from node_lines(box, box.root, "0", ends, edges)
    yield "  }"
    yield from edges


def node_lines(
    box: Box, node: PictureNode, path: str, ends: dict[str, str], edges: list[str]
) -> Iterator[str]:
    name = f"{box.id}/{path}"
    colour = COLOURS.get(node.kind, "#eeeeee")
    yield f'    "{quoted(name)}" [fillcolor="{colour}", label=<{label(node)}>];'
    edges += [edge(ends[source], name, ends[source] == source) for source in node.reads]
    for number, child in enumerate(node.children):
        below = f"{path}.{number}"
        if child.kind == "Read" and child.reads:
            edges += [edge(ends[source], name) for source in child.reads]
            continue
        yield from node_lines(box, child, below, ends, edges)
        edges.append(edge(f"{box.id}/{below}", name))


def edge(source: str, target: str, from_source: bool = False) -> str:
    style = " [style=dashed]" if from_source else ""
    return f'  "{quoted(source)}" -> "{quoted(target)}"{style};'


def label(node: PictureNode) -> str:
    first, *rest = wrapped(node.label, WIDTH)
    word, _, behind = first.partition(" ")
    lines = [f"<B>{escape(word)}</B>" + (f" {escape(behind)}" if behind else "")]
    lines += [escape(line) for line in rest]
    lines += [small(line, "#1e6b3a") for r in node.remarks for line in wrapped(r, WIDTH + 6)]
    return '<BR ALIGN="LEFT"/>'.join(lines) + ('<BR ALIGN="LEFT"/>' if len(lines) > 1 else "")


def small(text: str, colour: str = "#444444") -> str:
    return f'<FONT POINT-SIZE="9" COLOR="{colour}">{escape(text)}</FONT>'


def quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
