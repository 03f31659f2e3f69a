"""Retention: the stored rows of a stream that later rows of its queries can contain.

In: how a stream is released and the value its rows were released up to. Out: for every leaf it
reads a bound on the column the leaf itself is released by: earlier rows of the leaf cannot matter
for rows that are still to be released. Rows without a value (NULL) are always kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias

from terascope.analysis.moving import ALL, earliest
from terascope.analysis.order import FINENESS, Trees
from terascope.analysis.release import Release, release_columns
from terascope.analysis.row_bounds import RowBound, RowBounds
from terascope.analysis.watermarks import Watermarks
from terascope.functions.base import Trend, Value
from terascope.plan.rel import Read, Running, Scan, SourceField

Leaf: TypeAlias = str | Scan
"""A stored stream, by name, or a scan of a plan that was not split."""

CAPTURE_CLOCKS: Final = frozenset({"time", "timestamp"})
"""Columns of packets that are one time in different units."""


def retention_bounds(
    release: Release,
    values: Iterable[Value],
    trees: Trees,
    leaves: Collection[str] = (),
    kept_by: Mapping[Leaf, str] | None = None,
) -> dict[Leaf, Value]:
    """For every leaf that is read: the value of the column it is kept by before which no row can
    matter for rows of `release` that are not earlier than `values`, one for each part. None: all
    of its rows can; ALL: none can.

    Args:
        leaves: streams whose rows are kept as they are, and which are not looked into.
        kept_by: the column of each leaf that its rows are kept by; else the first of
            `release_columns`.
    """
    return by_leaf(RowBounds(trees, leaves).of_release(release, tuple(values)), trees, kept_by)


def epoch_retention_bounds(
    running: Running,
    value: Value,
    trees: Trees,
    leaves: Collection[str] = (),
    kept_by: Mapping[Leaf, str] | None = None,
) -> dict[Leaf, Value]:
    """The bounds for the epochs of a running aggregate from `value` on; the states of its groups
    are stored with them.
    """
    rows = RowBounds(trees, leaves).of_expr(running.source, running.keys[0][1], value)
    return by_leaf(rows, trees, kept_by)


def by_leaf(
    needed: Iterable[RowBound], trees: Trees, kept_by: Mapping[Leaf, str] | None
) -> dict[Leaf, Value]:
    found: dict[Leaf, Value] = {}
    for need in needed:
        leaf = leaf_of(need)
        column = (kept_by or {}).get(leaf) or next(iter(release_columns(need.leaf, trees)), None)
        trend = trees.orders(need.leaf)[column].slope.trend if column else Trend.INCREASING
        found[leaf] = earliest((found.get(leaf, ALL), bound_on(column, need, trees)), trend)
    return found


def retention_columns(
    releases: Iterable[Release],
    trees: Trees,
    leaves: Collection[str] = (),
    running: Iterable[Running] = (),
) -> dict[Leaf, str]:
    """For every leaf that is read and has an ordered column: the column to retain it by, such that
    as many of its readers as possible give a bound.
    """
    asked: dict[Leaf, list[RowBound]] = {}
    for release in releases:
        # Which columns bounds are on does not depend on how far time has moved.
        for need in RowBounds(trees, leaves).of_release(release, (1,) * len(release.parts)):
            asked.setdefault(leaf_of(need), []).append(need)
    for one in running:
        for need in RowBounds(trees, leaves).of_expr(one.source, one.keys[0][1], 1):
            asked.setdefault(leaf_of(need), []).append(need)
    found: dict[Leaf, str] = {}
    for leaf, made in asked.items():
        told = {
            column: sum(bound_on(column, need, trees) is not None for need in made)
            for column in release_columns(made[0].leaf, trees)
        }
        if told:
            found[leaf] = max(told, key=lambda column: told[column])
    return found


def leaf_of(need: RowBound) -> Leaf:
    return need.leaf.stream if isinstance(need.leaf, Read) else need.leaf


def bound_on(column: str | None, need: RowBound, trees: Trees) -> Value:
    """A row bound as a bound on the column by which its leaf is retained."""
    if need.bound is None or need.bound is ALL or column == need.column:
        return need.bound
    return None if column is None else on_other_column(column, need, trees)


def on_other_column(column: str, need: RowBound, trees: Trees) -> Value:
    """A bound on another column of the leaf, when both come from one clock; else None.

    Two clocks that a PROTOCOL declares may be two different times (the first and the last packet of
    a flow), so neither bounds the other. A copy of a column does, and so do the two clocks of a
    packet.
    """
    tree = trees.streams[need.leaf.stream] if isinstance(need.leaf, Read) else need.leaf
    assert need.column is not None, "a bound is on a column"
    match list(RowBounds(trees, ()).of_column(tree, need.column, need.bound)):
        case [RowBound(Scan() as scan, str() as name, bound)]:
            moved_on = same_time(scan, name, bound)
            # Rows made of tuples from there on are those that are not complete there.
            return Watermarks(trees, lambda _: moved_on, in_order=True).of_column(column, tree)
        case _:
            return None


def same_time(scan: Scan, name: str, value: int | float) -> dict[str, Value]:
    """The columns of a scan that hold the same time as one of them, where that has a value."""
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
