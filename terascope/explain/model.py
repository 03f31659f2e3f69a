"""The one picture all formats are drawn from.

In: nothing. Out: `Picture`, plain data: boxes (sources, streams, outputs, statements), each with a
tree of operators in it, and arrows between the boxes. A stage of a query set becomes a Picture;
text, JSON, Graphviz and HTML are four ways of showing one. JSON is the picture itself, for other
programs. Keys, which later versions keep and only add to:

    terascope   the version that wrote it
    stage       ast, plan, optimized, split, job, partitions, stream or advise
    title       where the query set came from
    parameters  [{name, type, value}]
    boxes       [{id, name, kind, marks, columns, facts, notes, query, root}]
                kind: source, stream or statement; facts: {word: value}; query: canonical GSQL
    columns     [{name, type, order, clock}], order and clock null where there is none
    root        an operator or null: {kind, label, remarks, columns, reads, inputs: [operators]}
                reads: ids of boxes
    arrows      [[id, id]], in the direction tuples flow
    notes       [text]
    rules       [{rule, streams, changes}], with --verbose
    operators   [{name, places, does, reads, predicted, choice, measured}], of a job;
                measured: {word: value}, after a run
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, Literal, TypeAlias

from terascope.version import VERSION

BoxKind: TypeAlias = Literal["source", "stream", "statement"]
PARTITIONED: Final = "in partitions"
CENTRAL: Final = "central"
"""Marks of boxes that every partition of a source computes by itself, and of those above them."""
Facts: TypeAlias = tuple[tuple[str, str], ...]
"""Facts about a box, as word and value: files, partitions, order of the rows."""


@dataclass(frozen=True)
class ColumnNote:
    """A column with what the analyses know of it."""

    name: str
    type: str
    order: str | None = None
    """`increasing`, `strictly increasing`, `increasing within 5`; None for no order."""
    clock: str | None = None

    def __str__(self) -> str:
        text = f"{self.name} {self.type}" + (f" {self.order}" if self.order else "")
        return text + (f" clock({self.clock})" if self.clock else "")


@dataclass(frozen=True)
class PictureNode:
    """An operator, or a part of a statement."""

    kind: str
    """Its first word: Filter, Join, Select."""
    label: str
    """All of it on one line, without its inputs."""
    remarks: tuple[str, ...] = ()
    """Results of the analyses: the key that closes a group, the condition that bounds a join."""
    columns: tuple[str, ...] = ()
    """All columns it gives, hidden ones included; empty where there are none."""
    children: tuple[PictureNode, ...] = ()
    reads: tuple[str, ...] = ()
    """The boxes it takes its tuples from."""

    def walk(self) -> Iterator[PictureNode]:
        yield self
        for child in self.children:
            yield from child.walk()

    def lines(self, depth: int = 0, remarks: bool = False) -> Iterator[str]:
        """The tree as text, children indented below their parents."""
        told = f"   -- {'; '.join(self.remarks)}" if remarks and self.remarks else ""
        yield "  " * depth + self.label + told
        for child in self.children:
            yield from child.lines(depth + 1, remarks)


@dataclass(frozen=True)
class Box:
    """A source, a stream or a statement."""

    id: str
    name: str
    kind: BoxKind
    marks: tuple[str, ...] = ()
    """`internal`, `kept`, `output`."""
    columns: tuple[ColumnNote, ...] = ()
    facts: Facts = ()
    notes: tuple[str, ...] = ()
    root: PictureNode | None = None
    text: str = ""
    """Canonical GSQL, where the box is a query."""


@dataclass(frozen=True)
class OperatorLine:
    """A physical operator, on one line."""

    name: str
    places: tuple[str, ...]
    does: str
    reads: tuple[str, ...] = ()
    """The names of the operators it reads."""
    cost: str = ""
    """The predicted cost."""
    choice: str = ""
    """The condition that decides between its places."""
    measured: Facts = ()
    """The figures of a run."""


@dataclass(frozen=True)
class Picture:
    stage: str
    title: str
    boxes: tuple[Box, ...]
    parameters: tuple[tuple[str, str, str], ...] = ()
    """Name, type, value."""
    notes: tuple[str, ...] = ()
    rules: tuple[RuleStep, ...] = ()
    operators: tuple[OperatorLine, ...] = ()
    """The physical operators of a Job."""

    @property
    def arrows(self) -> tuple[tuple[str, str], ...]:
        """Arrows between boxes, each pair once, in order of appearance."""
        found = {
            (source, box.id): None
            for box in self.boxes
            if box.root is not None
            for node in box.root.walk()
            for source in node.reads
        }
        return tuple(found)


@dataclass(frozen=True)
class RuleStep:
    """One thing the optimiser did."""

    rule: str
    streams: tuple[str, ...] = ()
    """The streams it changed."""
    changes: tuple[str, ...] = ()
    """Lines taken away (`- `) and added (`+ `)."""


# ---- JSON ----------------------------------------------------------------------------------------

NAMES = {"text": "query", "children": "inputs", "cost": "predicted"}
"""Keys that differ from the names of fields."""
PAIRS = ("facts", "measured")
"""Fields of words and values, which become objects."""


def as_json(picture: Picture) -> str:
    document = {"terascope": VERSION, **json_value(picture), "arrows": picture.arrows}
    document["parameters"] = [
        {"name": name, "type": type, "value": value} for name, type, value in picture.parameters
    ]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def json_value(value: Any) -> Any:
    """A part of a picture as JSON has it: dataclasses become objects, tuples lists."""
    if isinstance(value, tuple):
        return [json_value(one) for one in value]
    if not is_dataclass(value):
        return value
    parts = {f.name: getattr(value, f.name) for f in fields(value)}
    return {
        NAMES.get(name, name): dict(part) if name in PAIRS else json_value(part)
        for name, part in parts.items()
    }
