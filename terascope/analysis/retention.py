"""Retention: the stored rows of a stream that later rows of its queries can contain.

In: how a stream is released and the value its rows were released up to. Out: for every leaf it
reads a bound on the column the leaf itself is released by: earlier rows of the leaf cannot matter
for rows that are still to be released. Rows without a value (NULL) are always kept.

`RowBounds` carries a value of an operator's rows down to the leaves: for every place at which a
leaf is read, it gives the rows from which operator rows that are not earlier, or have no value
(NULL), can be computed. The leaves may hold more rows: these do not change rows that are not
earlier.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, TypeAlias, assert_never

from terascope.analysis.bounded import JoinBound, is_true_always, only_column, stream_side
from terascope.analysis.moving import ALL, earliest, moved, oldest_start, reaches, value_at
from terascope.analysis.order import FINENESS, Trees
from terascope.analysis.release import Release, ReleasePart, release_columns
from terascope.analysis.watermarks import Watermarks
from terascope.functions.base import Trend, Value
from terascope.plan.expr import Col, Expr
from terascope.plan.rel import (
    WEND,
    WSTART,
    Aggregate,
    Filter,
    Join,
    Lookup,
    Merge,
    Project,
    Rank,
    Read,
    Rel,
    Running,
    Scan,
    SourceField,
    Window,
    inputs,
)

Leaf: TypeAlias = str | Scan
"""A stored stream, by name, or a scan of a plan that was not split."""

CAPTURE_CLOCKS: Final = frozenset({"time", "timestamp"})
"""Columns of packets that are one time in different units."""


@dataclass(frozen=True)
class RowBound:
    """The rows of one leaf, read at one place, that are not earlier than `bound`."""

    leaf: Read | Scan
    column: str | None = None
    bound: Value = None
    """None: all rows."""


@dataclass(frozen=True)
class RowBounds:
    trees: Trees
    leaves: Collection[str] = ()
    """Streams whose rows are stored as they are: bounds go down to them and no further."""

    def of_release(self, release: Release, values: tuple[Value, ...]) -> Iterator[RowBound]:
        """Bounds of the rows from which later rows of a release are computed."""
        if release.kind == "at_end":
            yield from self.everything(release.node)
        elif release.kind == "at_once" or all(v is ALL for v in values):
            yield from (RowBound(n.leaf, None, ALL) for n in self.everything(release.node))
        else:
            for part, value in zip(release.parts, values, strict=True):
                yield from self.of_part(release.node, part, value)

    def of_part(self, node: Rel, part: ReleasePart, value: Value) -> Iterator[RowBound]:
        bound = self.trees.temporal_bound(node)
        if isinstance(node, Join) and bound is not None:
            if bound.band is None:
                yield from self.of_expr(node.left, bound.left, value)
                yield from self.of_expr(node.right, bound.right, value)
            else:
                yield from self.of_band(node, bound, value, part.value == bound.left)
        elif isinstance(node, Aggregate) and isinstance(part.value, Col):
            # The last row with tuples is not released before the next one, so that gaps are seen.
            yield from self.of_expr(node.source, dict(node.keys)[part.value.name], value)
        else:
            yield from self.of_expr(node, part.value, value)

    def of_epochs(self, running: Running, value: Value) -> Iterator[RowBound]:
        """Bounds of the rows of the epochs of a running aggregate from `value` on."""
        return self.of_expr(running.source, running.keys[0][1], value)

    def everything(self, rel: Rel) -> Iterator[RowBound]:
        """All rows of all leaves below."""
        match rel:
            case Scan():
                yield RowBound(rel)
            case Read() if rel.stream in self.leaves:
                yield RowBound(rel)
            case Read():
                yield from self.everything(self.trees.streams[rel.stream])
            case _:
                for part in inputs(rel):
                    yield from self.everything(part)

    def of_expr(self, rel: Rel, expr: Expr, value: Value) -> Iterator[RowBound]:
        """Bounds of the rows that make the rows of `rel` in which `expr` is NULL or not earlier
        than `value`.
        """
        column = only_column(expr, rel)
        orders = self.trees.orders(rel)
        slope = self.trees.slope(expr, rel)
        if value is None or column is None or not slope.is_ordered or column.name not in orders:
            yield from self.everything(rel)
            return
        trend, own = slope.trend, orders[column.name].slope.trend
        bound = reaches(expr, trend, column, own, value, self.trees.parameters)
        yield from self.of_column(rel, column.name, bound)

    def of_column(self, rel: Rel, name: str, bound: Value) -> Iterator[RowBound]:
        """The bounds for a column of `rel` that is ordered."""
        if bound is None:
            yield from self.everything(rel)
            return
        match rel:
            case Scan():
                yield RowBound(rel, name, bound)
            case Read() if rel.stream in self.leaves:
                yield RowBound(rel, name, bound)
            case Read():
                yield from self.of_column(self.trees.streams[rel.stream], name, bound)
            case Lookup():
                return
            case Filter():
                yield from self.of_column(rel.source, name, bound)
            case Rank() if rel.limit is None or name in rel.per:
                yield from self.of_column(rel.source, name, bound)
            case Project():
                yield from self.of_expr(rel.source, dict(rel.items)[name], bound)
            case Window() if name in (WSTART, WEND):
                time = WSTART if rel.elements else rel.on
                yield from self.of_time(rel.source, time, oldest_start(rel.spec, name, bound))
            case Window():
                yield from self.of_column(rel.source, name, bound)
            case Aggregate() if rel.emit_empty is None:
                yield from self.of_expr(rel.source, dict(rel.keys)[name], bound)
            case Join():
                yield from self.of_join(rel, name, bound)
            case Merge():
                place = rel.names.index(name)
                for source in rel.sources:
                    yield from self.of_time(source, source.names[place], bound)
            case Rank() | Aggregate() | Running():
                # Running groups are made of all earlier rows; so are gaps.
                yield from self.everything(rel)
            case _:
                assert_never(rel)

    def of_time(self, rel: Rel, name: str, bound: Value) -> Iterator[RowBound]:
        yield from self.of_expr(rel, Col(name, rel.type_of(name)), bound)

    # ---- joins

    def of_join(self, join: Join, name: str, bound: Value) -> Iterator[RowBound]:
        side = join.side_of(name)
        column = Col(name, side.type_of(name))
        if stream_side(join) is side and not join.may_miss(side):
            yield from self.of_column(side, name, bound)
            return
        for mine_side, mine, other_side, other in self.trees.temporal_equalities(join):
            tells = mine_side is side and only_column(mine, side) == column
            if tells and is_true_always(join, side, mine, other):
                value = value_at(mine, {name: bound}, self.trees.parameters)
                yield from self.of_expr(side, mine, value)
                yield from self.of_expr(other_side, other, value)
                return
        band = self.trees.temporal_bound(join)
        if band and band.band and band.left == column and not join.may_miss(join.left):
            yield from self.of_band(join, band, bound, by_left=True)
        else:
            # A missing side makes the value NULL at any time: who is alone must not change.
            yield from self.everything(join)

    def of_band(
        self, join: Join, bound: JoinBound, value: Value, by_left: bool
    ) -> Iterator[RowBound]:
        """Rows of a band join by the time x of the left side, or y of the right side."""
        from_x, from_y = self.band_ends(bound)
        left = value if by_left else moved(value, -from_y, Trend.INCREASING)
        right = moved(value, from_x, Trend.INCREASING) if by_left else value
        yield from self.of_expr(join.left, bound.left, left)
        yield from self.of_expr(join.right, bound.right, right)

    def band_ends(self, bound: JoinBound) -> tuple[int | float, int | float]:
        """Rows not before a value: partners of x begin at x + low, partners of y at y - high."""
        assert bound.band is not None
        return bound.band


# ---- by leaf -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RetentionBounds(RowBounds):
    """Bounds by leaf: the value of the column it is kept by before which no row can matter. None:
    all rows of the leaf can; ALL: none can.
    """

    kept_by: Mapping[Leaf, str] = field(default_factory=dict)
    """The column of each leaf that its rows are kept by; else the first of `release_columns`."""

    def after_release(self, release: Release, values: Iterable[Value]) -> dict[Leaf, Value]:
        """The bounds for rows of a release that are not earlier than `values`, one for each
        part.
        """
        return self.by_leaf(self.of_release(release, tuple(values)))

    def from_epoch(self, running: Running, value: Value) -> dict[Leaf, Value]:
        """The bounds for the epochs of a running aggregate from `value` on; the states of its
        groups are stored with them.
        """
        return self.by_leaf(self.of_epochs(running, value))

    def by_leaf(self, needed: Iterable[RowBound]) -> dict[Leaf, Value]:
        found: dict[Leaf, Value] = {}
        for need in needed:
            leaf, orders = leaf_of(need), self.trees.orders(need.leaf)
            first = next(iter(release_columns(need.leaf, self.trees)), None)
            column = self.kept_by.get(leaf) or first
            trend = orders[column].slope.trend if column else Trend.INCREASING
            bound = bound_on(column, need, self.trees)
            found[leaf] = earliest((found.get(leaf, ALL), bound), trend)
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
    rows = RowBounds(trees, leaves)
    # Which columns bounds are on does not depend on how far time has moved.
    needed = [rows.of_release(release, (1,) * len(release.parts)) for release in releases]
    needed += [rows.of_epochs(one, 1) for one in running]
    asked: dict[Leaf, list[RowBound]] = {}
    for need in chain.from_iterable(needed):
        asked.setdefault(leaf_of(need), []).append(need)
    found: dict[Leaf, str] = {}
    for leaf, made in asked.items():
        bounds = {
            column: sum(bound_on(column, need, trees) is not None for need in made)
            for column in release_columns(made[0].leaf, trees)
        }
        if bounds:
            found[leaf] = max(bounds, key=lambda column: bounds[column])
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
    match list(RowBounds(trees).of_column(tree, need.column, need.bound)):
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
