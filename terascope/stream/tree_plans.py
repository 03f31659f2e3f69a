"""The aggregate trees of a running set: which are in force, and how tasks come to know them.

In: low-level plans without trees, and the trees that were decided. Out: low-level plans with them;
`trees.json` in the folder of the run, put in place by rename, which tells those who plan batches
and whoever goes on from the checkpoint.

A family is known by what it is: the source, conditions, epochs and keys of its aggregations. So a
set that has changed finds the trees of those families that have not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from terascope.low.groups import Block
from terascope.low.plan import LowAggregate, LowPlan, Where
from terascope.low.slots import Shape
from terascope.physical.trees import Grafting, TreeSettings, attributes_of, plain_families
from terascope.plan.show import show_expr
from terascope.sharing.model import Node, Query, Tree
from terascope.stream.control import put

TREES: Final = "trees.json"


@dataclass(frozen=True)
class Family:
    """Aggregations that could be one tree."""

    key: str
    members: tuple[LowAggregate, ...]

    @property
    def queries(self) -> tuple[Query, ...]:
        return tuple(Query(attributes_of(query), len(query.slots)) for query in self.members)


def families_of(read: str, low: LowPlan) -> list[Family]:
    """Of a read, by its name, whose plan has no trees."""
    return [Family(family_key(read, low, some), tuple(some)) for some in plain_families(low)]


def family_key(read: str, low: LowPlan, members: Sequence[LowAggregate]) -> str:
    first = members[0]
    assert first.epoch is not None

    def conditions(where: Where) -> list[str]:
        exprs = (*(low.predicates[bit] for bit in where.signature), *where.rest)
        return sorted(show_expr(expr) for expr in exprs)

    what = [
        read,
        sorted(first.interfaces),
        conditions(Where(first.signature, first.rest)),
        sorted(conditions(where) for where in first.anyof),
        show_expr(first.keys[first.epoch][1]),
        sorted({tuple(sorted(attributes_of(query))) for query in members}),
    ]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]


# ---- trees ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlannedTree:
    """The tree of a family, and what it was expected to save."""

    tree: Tree
    whole: tuple[bool, ...]
    """Nodes whose tables have room for all of their groups, and may grow."""
    gain: float
    """Compared with what was in force before."""
    since: float
    """When it took its place, in unix seconds."""


@dataclass(frozen=True)
class TreesInForce:
    """What tasks are told."""

    number: int = 0
    """How often trees were changed; 0: every query is made of the tuples themselves."""
    since: float = 0.0
    """When they were changed last, or the run began; unix seconds."""
    trees: Mapping[str, PlannedTree] = field(default_factory=dict)
    """By the key of a family; one that is not here has none."""

    def changed(self, trees: Mapping[str, PlannedTree], now: float) -> TreesInForce:
        return TreesInForce(self.number + 1, now, {**self.trees, **trees})

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "trees": {k: tree_to_json(t) for k, t in self.trees.items()}}

    @staticmethod
    def of(told: Mapping[str, Any]) -> TreesInForce:
        trees = {key: tree_from_json(one) for key, one in told["trees"].items()}
        return TreesInForce(told["number"], told["since"], trees)


def tree_to_json(planned: PlannedTree) -> dict[str, Any]:
    nodes = [{**asdict(n), "attributes": sorted(n.attributes)} for n in planned.tree.nodes]
    return {
        "nodes": nodes,
        "whole": list(planned.whole),
        "gain": planned.gain,
        "since": planned.since,
    }


def tree_from_json(told: Mapping[str, Any]) -> PlannedTree:
    nodes = (Node(**{**one, "attributes": frozenset(one["attributes"])}) for one in told["nodes"])
    return PlannedTree(Tree(tuple(nodes)), tuple(told["whole"]), told["gain"], told["since"])


def put_in_force(folder: Path, trees: TreesInForce) -> None:
    put(folder / TREES, trees.to_json())


def in_force(folder: Path) -> TreesInForce | None:
    """None: none were ever decided, or what is there is not to be understood."""
    try:
        return TreesInForce.of(json.loads((folder / TREES).read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None


# ---- low-level plans -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Grafted:
    """A low-level plan with trees."""

    low: LowPlan
    nodes: Mapping[str, tuple[str, ...]]
    """By the key of a family: its queries and its inner nodes, by name."""


def grafted(
    read: str, low: LowPlan, trees: Mapping[str, PlannedTree], settings: TreeSettings
) -> Grafted:
    """The plan of a read with the trees of its families. One that needs more slots than a table
    has is left out.
    """
    made, nodes = low, dict[str, tuple[str, ...]]()
    for family in families_of(read, low):
        names = tuple(query.name for query in family.members)
        planned = trees.get(family.key)
        grown = None if planned is None else with_tree(made, family, planned, settings)
        if grown is not None:
            names += tuple(node.name for node in grown.inner[len(made.inner) :])
            made = grown
        nodes[family.key] = names
    return Grafted(made, nodes)


def with_tree(
    low: LowPlan, family: Family, planned: PlannedTree, settings: TreeSettings
) -> LowPlan | None:
    """None when a node would need more slots than a table has."""
    pairs = zip(planned.tree.nodes, planned.whole, strict=True)
    bounded = {node.attributes for node, whole in pairs if not whole}

    def wanted(attributes: frozenset[str]) -> float:
        return float("inf") if attributes in bounded else 0.0

    return Grafting(low, family.members, planned.tree, settings, wanted).plan()


def widened_places(flat: LowPlan, low: LowPlan) -> dict[int, Shape]:
    """The queries that keep more than their own slots, for others that are made of them: by place,
    the rows that those above know.
    """
    found: dict[int, Shape] = {}
    for place, (own, now) in enumerate(zip(flat.queries, low.queries, strict=True)):
        if not isinstance(own, LowAggregate) or not isinstance(now, LowAggregate):
            continue
        if len(now.slots) > len(own.slots):
            found[place] = Shape(len(own.plain_keys), own.shape.slots)
    return found


def narrowed(block: Block, shape: Shape) -> Block:
    """Groups with their own slots only, which are the first of those in their rows."""
    rows = block.rows[:, : shape.stride].copy()
    rows[:, 0] &= (1 << (1 + len(shape.slots))) - 1
    return replace(block, rows=rows)
