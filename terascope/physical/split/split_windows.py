"""Windows next to the source: groups of slices below, windows of slices above (paper 0, 3 and 4).

In: an aggregation over windows of a selection of one scan, or by a key such as `time/60` that
shares slices with others. Out: its high part, a window over elements, as in paper 0's query 4; the
low part is a draft whose time key is the slice. The slices are chosen for all queries together
(terascope.physical.split.slicing). A window of a running stream may contain retired slices as well:
their low part is a draft whose condition no tuple meets, and the elements of the window are those
of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from terascope.functions.base import Scalar
from terascope.functions.roles import Conjunction, FloorDivision
from terascope.functions.slices import SliceVector
from terascope.physical.rules.low_planner import epoch_key
from terascope.physical.split.drafts import Drafts
from terascope.physical.split.selection import Selection
from terascope.physical.split.split_aggregation import (
    NotSplit,
    Reason,
    SubAggregation,
    fewest,
    follows,
    sub_aggregation,
    super_aggregation,
    unscaled,
)
from terascope.plan.build import call, conjunction, slice_call
from terascope.plan.expr import Call, Col, Expr, Lit, columns_of, transform
from terascope.plan.rel import (
    WEND,
    WSTART,
    Aggregate,
    Filter,
    Merge,
    PlanMistake,
    Project,
    Rel,
    Sliding,
    Window,
)
from terascope.plan.show import show_agg, show_expr
from terascope.sharing.slices import Periodic
from terascope.types import Type

RETIRED: Final = Lit(False, Type.BOOL, "#retired")
"""The condition of slices that receive no more tuples."""


def is_retired(condition: Expr) -> bool:
    return isinstance(condition, Lit) and condition.of == RETIRED.of


def without_retired(predicate: Expr) -> Expr:
    """The conditions of a stream before it was retired."""
    match predicate:
        case Call(Scalar(role=Conjunction()), args):
            kept = tuple(part for part in args if not is_retired(part))
            return predicate if len(kept) == len(args) else conjunction(kept)
    return predicate


@dataclass(frozen=True)
class Windowed:
    """An aggregation over windows of a selection."""

    chosen: Selection
    """The tuples; its items do not contain edges of windows."""
    time: Expr
    """The time, over the scan."""
    spec: Sliding
    above: tuple[Expr, ...] = ()
    """Conditions on the edges of windows."""
    key: Expr | None = None
    """The key over the scan that stands for a missing window, such as time/60."""

    @property
    def periodic(self) -> Periodic:
        return Periodic(self.spec.range, self.spec.slide)


def edges_in(expr: Expr) -> bool:
    return bool(columns_of(expr) & {WSTART, WEND})


def windowed(
    rel: Aggregate, chosen: Callable[[Rel], Selection | None], live: bool
) -> Windowed | None:
    """The aggregation as one over windows of a selection; None when it has another form."""
    below, above = rel.source, []
    while isinstance(below, Filter) and columns_of(below.predicate) <= {WSTART, WEND}:
        above.append(below.predicate)
        below = below.source
    if isinstance(below, Window):
        selected = chosen(below.source)
        if selected is None or below.elements or not isinstance(below.spec, Sliding):
            return None
        time = dict(selected.items)[below.on]
        items = tuple((n, e) for n, e in selected.items if n not in (WSTART, WEND))
        return Windowed(replace(selected, items=items), time, below.spec, tuple(above))
    if above or live or rel.sets is not None:
        return None
    selected = chosen(rel.source)
    return None if selected is None else by_key(rel, selected)


def by_key(rel: Aggregate, chosen: Selection) -> Windowed | None:
    """An aggregation by time/60 as tumbling windows. Only for packets, whose time is never NULL:
    NULL is a key, but in no window.
    """
    if chosen.scan.layer is None:
        return None
    keys = [chosen.over_scan(expr) for _, expr in rel.keys]
    place = epoch_key(chosen.scan, keys)
    match None if place is None else keys[place]:
        case Call(Scalar(role=FloorDivision()), (Col() as time, Lit(value=int(length)))) as key:
            others = [k for i, k in enumerate(keys) if i != place]
            if length < 2 or any(time.name in columns_of(k) for k in others):
                return None
            return Windowed(chosen, time, Sliding(length, length), key=key)
    return None


def other_keys(rel: Aggregate, windowed: Windowed) -> list[Expr]:
    """The keys beside the window, over the scan."""
    keys = [windowed.chosen.over_scan(e) for _, e in rel.keys if not edges_in(e)]
    return fewest(k for k in keys if k != windowed.key)


def split_windowed(
    query: str,
    rel: Aggregate,
    windowed: Windowed,
    vector: SliceVector | None,
    drafts: Drafts,
    earlier: tuple[SliceVector | None, ...] = (),
) -> Rel:
    """The high part of an aggregation over windows whose slices are aggregated next to the source.
    `earlier`: retired slices of the same windows, of tuples that were read before. None instead of
    slices: groups by the key of a tumbling window.

    Raises:
        NotSplit: there are reasons against it.
    """
    chosen, time = windowed.chosen, windowed.time
    refused = tuple(looking_at_windows(rel))
    if refused:
        raise NotSplit(*refused)
    bound = drafts.judge.with_value
    keys = tuple((name, bound(chosen.over_scan(expr))) for name, expr in rel.keys)
    plain = tuple((n, e) for n, e in keys if not edges_in(e) and e != windowed.key)

    def sliced(vector: SliceVector | None, *more: Expr) -> SlicedGroups:
        length = Lit(windowed.spec.slide, time.type)
        start = call("*", call("div", time, length), length)
        if vector is not None:
            start = slice_call("slice_start", time, vector)
        conditions = [call("not", call("is_null", time)), *more]
        if vector is not None and vector.gaps:
            conditions.append(slice_call("in_slices", time, vector))
        all_of = tuple(dict.fromkeys((*chosen.conditions, *conditions)))
        taken = replace(chosen, conditions=all_of)
        made = sub_aggregation(query, rel, ((WSTART, start), *plain), taken, drafts, finer=True)
        return SlicedGroups(made, start, vector, length)

    made = [sliced(vector)]
    try:
        made += [sliced(one, RETIRED) for one in earlier]
    except NotSplit as refusal:
        message = f"{query}: windows cannot be made of earlier slices"
        raise PlanMistake(message) from refusal
    source = window_of_slices(made, windowed)
    now = made[0].groups
    above = tuple((name, over_windows(expr, now, windowed)) for name, expr in keys)
    return super_aggregation(rel, source, above, now)


def looking_at_windows(rel: Aggregate) -> Iterator[Reason]:
    """The parts of a query that need the window and the tuple at once."""
    for _, one in rel.aggs:
        if any(edges_in(arg) for arg in one.args):
            yield show_agg(one), "looks at the window of every tuple"
    for _, key in rel.keys:
        if edges_in(key) and columns_of(key) - {WSTART, WEND}:
            yield show_expr(key), "looks at the window of every tuple"


@dataclass(frozen=True)
class SlicedGroups:
    """The groups of the slices of a query, next to the source."""

    groups: SubAggregation
    start: Expr
    """The start of a slice, over the scan."""
    vector: SliceVector | None
    """The slices; None: the window tumbles, and its groups are whole windows."""
    length: Lit
    """The length of the tumbling window."""

    @property
    def columns(self) -> list[Expr]:
        """Keys beside the slice, and values, in an order that does not depend on the slices."""
        made, base = self.groups, unscaled(self.start)
        keys = [made.columns[expr] for expr in made.columns if expr != base]
        values = [c for split in made.splits for c in made.columns_of(split)]
        return [*keys, *values]

    def elements(self, names: Sequence[Expr]) -> Project:
        """The groups as elements with a start and an end, under other column names."""
        start = follows(self.start, self.groups.columns)
        assert start is not None, "the slice is a key"
        items: dict[str, Expr] = {
            named.name: own
            for named, own in zip(names, self.columns, strict=True)
            if isinstance(named, Col)
        }
        items[WSTART] = start
        if self.vector is None:
            items[WEND] = call("+", start, self.length)
        else:
            items[WEND] = slice_call("slice_end", start, self.vector)
        return Project(self.groups.draft.read, tuple(items.items()))


def window_of_slices(sliced: Sequence[SlicedGroups], windowed: Windowed) -> Rel:
    """The windows over low-level streams, whose groups are elements with a start and an end. The
    columns are those of the first stream.
    """
    columns = sliced[0].columns
    if any(isinstance(c, Col) and c.name in (WSTART, WEND) for c in columns):
        raise NotSplit((f"columns {WSTART} and {WEND}", "the source has columns of that name"))
    parts = tuple(one.elements(columns) for one in sliced)
    elements: Rel = parts[0] if len(parts) == 1 else Merge(parts, WEND)
    window: Rel = Window(elements, windowed.spec, WEND, elements=True)
    for condition in windowed.above:
        window = Filter(window, condition)
    return window


def over_windows(expr: Expr, made: SubAggregation, windowed: Windowed) -> Expr:
    """A key over the scan and the edges of windows, rewritten over windows of slices."""
    start, end = (Col(name, windowed.time.type) for name in (WSTART, WEND))
    if expr == windowed.key:
        return transform(expr, lambda e: start if e == windowed.time else e)
    known = {**made.columns, start: start, end: end}
    return follows(expr, known) or expr
