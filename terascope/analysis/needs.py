"""Which rows of the leaves can still matter: what a stream must keep.

In: how a stream is released and the value its rows were let go up to. Out: for every leaf it reads
a bound on the column the leaf itself is released by: its rows that are earlier cannot matter for
rows that are still to be let go. Rows without a value (NULL) are always kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

from terascope.analysis.moving import ALL, earliest
from terascope.analysis.needed_rows import Need, Needs
from terascope.analysis.order import FINENESS
from terascope.analysis.promises import Promises
from terascope.analysis.release import Release, release_columns
from terascope.analysis.trees import Trees
from terascope.functions.base import Trend, Value
from terascope.plan.rel import Read, Running, Scan, SourceField

Leaf: TypeAlias = str | Scan
"""A stream that is read as it was kept, by name, or a scan of a plan that was not split."""

CAPTURE_CLOCKS: Final = frozenset({"time", "timestamp"})
"""Columns of packets that are one time in different units."""


def needs(
    release: Release, values: Iterable[Value], trees: Trees, leaves: Collection[str] = ()
) -> dict[Leaf, Value]:
    """For every leaf that is read: the value of its own first release column (`release_columns`)
    before which no row can matter for rows of `release` that are not earlier than `values`, one
    for each part. None: all of its rows can; ALL: none can.
    """
    rows = Needs(trees, leaves)
    return by_leaf(rows.of_release(release, tuple(values)), trees)


def epoch_needs(
    running: Running, value: Value, trees: Trees, leaves: Collection[str] = ()
) -> dict[Leaf, Value]:
    """The same for the epochs of groups that live on, from `value` on: what they were before is
    kept with them.
    """
    rows = Needs(trees, leaves)
    return by_leaf(rows.of_expr(running.source, running.keys[0][1], value), trees)


def by_leaf(needed: Iterable[Need], trees: Trees) -> dict[Leaf, Value]:
    found: dict[Leaf, Value] = {}
    for need in needed:
        leaf = need.leaf.stream if isinstance(need.leaf, Read) else need.leaf
        bound, trend = release_bound(need, trees)
        found[leaf] = earliest((found.get(leaf, ALL), bound), trend)
    return found


def release_bound(need: Need, trees: Trees) -> tuple[Value, Trend]:
    """The bound of a need as a bound on the column its leaf is released by."""
    columns = release_columns(need.leaf, trees)
    if not columns:
        return None, Trend.INCREASING
    trend = trees.orders(need.leaf)[columns[0]].slope.trend
    if need.column is None or need.bound is None or need.bound is ALL:
        return need.bound, trend
    if need.column == columns[0]:
        return need.bound, trend
    return on_release_column(need, columns[0], trees), trend


def on_release_column(need: Need, column: str, trees: Trees) -> Value:
    """A bound on another column of the leaf, when both come from one clock; else None.

    Two clocks that a PROTOCOL declares may be two different times (the first and the last packet of
    a flow), so they tell nothing of each other. A copy of a column does, and so do the two clocks
    of a packet.
    """
    tree = trees.streams[need.leaf.stream] if isinstance(need.leaf, Read) else need.leaf
    assert need.column is not None, "a bound is on a column"
    match list(Needs(trees, ()).of_column(tree, need.column, need.bound)):
        case [Need(Scan() as scan, str() as name, bound)]:
            moved_on = same_time(scan, name, bound)
            # Rows made of tuples from there on are those that are not complete there.
            return Promises(trees, lambda _: moved_on, in_order=True).of_column(column, tree)
        case _:
            return None


def same_time(scan: Scan, name: str, value: int | float) -> dict[str, Value]:
    """The columns of a scan that tell the same time as one of them, where that has a value."""
    fields = {c.name: c for c in scan.columns}
    known = {n: in_unit(scan, fields[name], c, value) for n, c in fields.items()}
    return {n: v for n, v in known.items() if v is not None}


def in_unit(scan: Scan, known: SourceField, asked: SourceField, value: int | float) -> Value:
    if asked.read_from == known.read_from:
        return value
    captured = scan.layer is not None and {asked.read_from, known.read_from} <= CAPTURE_CLOCKS
    if not captured or asked.clock is None or known.clock is None or not isinstance(value, int):
        return None
    return value * FINENESS[asked.clock] // FINENESS[known.clock]
