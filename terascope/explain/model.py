"""The one picture all formats are drawn from.

In: nothing. Out: `Picture`, plain data: boxes (sources, streams, outputs, statements), each with a
tree of operators in it, and arrows between the boxes. A stage of a query set becomes a Picture;
text, JSON, Graphviz and HTML are four ways of showing one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

BoxKind: TypeAlias = Literal["source", "stream", "statement"]
Facts: TypeAlias = tuple[tuple[str, str], ...]
"""What is known of a box, as word and value: files, partitions, order of the rows."""


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
    """What the analyses say: the key that closes a group, the condition that bounds a join."""
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
    """What was predicted."""
    choice: str = ""
    """What decides between its places."""
    measured: Facts = ()
    """What it did in a run."""


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
        """From box to box, each pair once, in order of appearance."""
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
