"""The high parts of queries over groups that the merge has completed.

In: high parts, and the low-level aggregations of which each group is now one row. Out: the same
high parts without super-aggregations that have nothing left to merge: a projection of the row; and
over streams of windows, which the merge assembles from whole slices: a window over elements becomes
one row for each group and window, as a grouping by that window gives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from terascope.functions.base import Scalar
from terascope.functions.roles import GREATER, Comparator, FloorDivision, SlicePart
from terascope.functions.slices import SliceVector, parse_slices
from terascope.optimize.driver import apply_below
from terascope.optimize.rules.drop_identities import drop_identities
from terascope.optimize.rules.merge_projects import merge_projects
from terascope.physical.low_plan import LowOutput, Windows
from terascope.physical.split.drafts import Names
from terascope.physical.split.split_aggregation import unscaled
from terascope.plan.build import call, term_expr
from terascope.plan.expr import AggCall, Call, Cast, Col, Expr, Lit, columns_of, substitute
from terascope.plan.plan import reads
from terascope.plan.rel import (
    WEND,
    WSTART,
    Aggregate,
    Field,
    Filter,
    Merge,
    Named,
    Project,
    Read,
    Rel,
    Sliding,
    Window,
    inputs,
    with_inputs,
)
from terascope.sharing.slices import Periodic


def assume_merged(
    rel: Rel, low_keys: Mapping[str, tuple[str, ...]], steps: Mapping[str, int] | None = None
) -> Rel:
    """Before: Aggregate by a, b: sum(cnt) (Read low)      After: Project a, b, cnt (Read low).

    `low_keys`: the key columns of each merged low-level aggregation. An aggregation by fewer keys,
    with grouping sets or with rows for empty epochs stays. `steps`: the number of which the ends of
    windows are multiples, in streams of windows.
    """
    return apply_below(rel, lambda one: without_merging(one, low_keys, steps or {}))


def without_merging(
    rel: Rel, low_keys: Mapping[str, tuple[str, ...]], steps: Mapping[str, int]
) -> Project | None:
    if not isinstance(rel, Aggregate):
        return None
    below = rel.source
    source = below.source if isinstance(below, Filter) else below
    if not isinstance(source, Read) or source.stream not in low_keys:
        return None
    if rel.sets is not None or rel.emit_empty is not None:
        return None
    # A key must determine every low key; further keys may only follow from low keys.
    known = set(low_keys[source.stream])
    step = steps.get(source.stream, 1)
    determined = {base.name for _, e in rel.keys if isinstance(base := determined_by(e, step), Col)}
    if not known <= determined or any(not columns_of(e) <= known for _, e in rel.keys):
        return None
    values = [(name, value_of_one(agg)) for name, agg in rel.aggs]
    kept = tuple((name, value) for name, value in values if value is not None)
    if len(kept) < len(values):
        return None
    return Project(below, (*rel.keys, *kept), span=rel.span)


def merged_jointly(rels: Iterable[Rel]) -> frozenset[str]:
    """The streams of which some aggregation merges several columns at once. Their groups may have
    several rows: a sum of FLOATs has no single row before it is rounded.
    """
    found: set[str] = set()
    for rel in rels:
        aggs = rel.aggs if isinstance(rel, Aggregate) else ()
        if any(agg.function.of_one() is not None for _, agg in aggs):
            found |= {read.stream for read in reads(rel)}
        found |= merged_jointly(inputs(rel))
    return frozenset(found)


def determined_by(expr: Expr, step: int) -> Expr:
    """The expressions that an expression determines: of multiples of a step, also a quotient."""
    base = unscaled(expr)
    match base:
        case Call(Scalar(role=FloorDivision()), (dividend, Lit(value=int(n)))):
            return unscaled(dividend) if n > 0 and step > 1 and step % n == 0 else base
    return base


def tidy(rel: Rel) -> Rel | None:
    """The relation without nested projections and without projections that change nothing."""
    return merge_projects(rel) or drop_identities(rel)


def value_of_one(agg: AggCall) -> Expr | None:
    """The value of an aggregate over a group of one row, where the row's values determine it."""
    term = agg.function.of_one()
    if term is not None:
        return term_expr(term, agg.args)
    if not agg.function.keeps_one or len(agg.args) != 1:
        return None
    (value,) = agg.args
    return value if value.type is agg.type else Cast(value, agg.type)


# ---- windows of whole slices ---------------------------------------------------------------------

Earlier: TypeAlias = tuple[tuple[str, SliceVector], ...]
"""Low-level streams of earlier slices."""


@dataclass
class Assembly:
    low: Mapping[str, LowOutput]
    """The low-level streams of which the merge has whole slices."""
    names: Names
    made: dict[tuple[str, SliceVector, Periodic, Earlier], LowOutput] = field(default_factory=dict)
    trees: dict[str, Rel] = field(default_factory=dict)
    """The relation of each low-level stream, except for groups that are still partial."""

    def over_windows(self, trees: Mapping[str, Rel]) -> dict[str, Rel]:
        """The high parts over streams of windows."""
        over = {name: self.read(rel) for name, rel in trees.items()}
        windows = {o.name: o.windows for o in self.made.values() if o.windows is not None}
        keys = {name: one.columns[: one.keys] for name, one in windows.items()}
        # All ends of windows are multiples of the slide.
        steps = {name: one.window.slide for name, one in windows.items()}
        return {
            name: rel if rel is trees[name] else apply_below(assume_merged(rel, keys, steps), tidy)
            for name, rel in over.items()
        }

    def read(self, rel: Rel) -> Rel:
        """The relation over streams of windows, where it can read them."""
        if isinstance(rel, Window):
            found = self.windows(rel)
            if found is not None:
                return found
        made = with_inputs(rel, tuple([self.read(part) for part in inputs(rel)]))
        return inlined(made) if isinstance(made, Aggregate) and made is not rel else made

    def windows(self, window: Window) -> Project | None:
        """Before: Window (Project ... slice_end(s) AS wend (Read low))
        After: Project ..., wend - range AS wstart, wend (Read windows).

        Elements may be merged with those of earlier slices, which have the same columns.
        """
        if not window.elements or not isinstance(window.spec, Sliding):
            return None
        below = window.source.sources if isinstance(window.source, Merge) else (window.source,)
        found = [self.elements(source) for source in below]
        parts = [one for one in found if one is not None]
        if len(parts) < len(found) or len({part.seen for part in parts}) > 1:
            return None
        now = parts[0]
        if len(parts) > 1 and (now.seen is not None or not all_plain(parts)):
            return None
        earlier = tuple((part.output.name, part.vector) for part in parts[1:])
        periodic = Periodic(window.spec.range, window.spec.slide)
        output, start = now.output, now.start
        end = Col(end_name(output, start), start.type)
        made = self.stream(now, periodic, earlier)
        if made.name not in self.trees:
            self.trees[made.name] = meaning(window, output, start, now.end, made)
        edges: dict[str, Expr] = {
            # As the edge of a window: it may be before time 0 whatever its type is.
            WSTART: replace(call("-", end, Lit(window.spec.range, start.type)), type=start.type),
            WEND: end,
        }
        read: Rel = Read(made.name, made.fields)
        read = read if now.seen is None else Filter(read, now.seen)
        values = {**now.others, **edges}
        wanted: list[Named] = [(f.name, values[f.name]) for f in window.fields]
        return Project(read, tuple(wanted))

    def elements(self, rel: Rel) -> Elements | None:
        """The groups of slices from which windows are assembled; None for any other relation."""
        if not isinstance(rel, Project):
            return None
        seen, below = condition_on_slices(rel.source)
        output = self.low.get(below.stream) if isinstance(below, Read) else None
        items = dict(rel.items)
        match items.get(WSTART), items.get(WEND):
            case Col() as start, Call(
                Scalar(role=SlicePart("end")), (Col() as of, Lit(value=str(text)))
            ) as end:
                pass
            case _:
                return None
        if output is None or of != start or not is_epoch(start, output):
            return None
        others = {n: e for n, e in items.items() if n not in (WSTART, WEND)}
        if any(start.name in columns_of(e) for e in others.values()):
            return None
        return Elements(output, start, end, parse_slices(text), others, seen)

    def stream(self, now: Elements, window: Periodic, earlier: Earlier) -> LowOutput:
        output, start, vector = now.output, now.start, now.vector
        key = output.name, vector, window, earlier
        if key not in self.made:
            name = self.names.take(f"{output.name}_{window.range}_{window.slide}")
            end = Field(end_name(output, start), start.type)
            fields = tuple(end if f.name == start.name else f for f in output.fields)
            assert output.groups is not None
            columns = tuple(f.name for f in fields)
            windows = Windows(
                output.name, vector, window, columns, len(output.groups.keys), earlier
            )
            self.made[key] = LowOutput(name, fields, None, windows)
        return self.made[key]


@dataclass(frozen=True)
class Elements:
    """Groups of the slices of a low-level stream, as elements of windows."""

    output: LowOutput
    start: Col
    """The start of a slice."""
    end: Expr
    """The end of a slice."""
    vector: SliceVector
    others: Mapping[str, Expr]
    """All other columns."""
    seen: Expr | None
    """The condition that a slice has a tuple of the query."""


def all_plain(parts: Sequence[Elements]) -> bool:
    """Whether all columns are columns of the slices, unchanged."""
    return all(isinstance(e, Col) for part in parts for e in part.others.values())


def condition_on_slices(rel: Rel) -> tuple[Expr | None, Rel]:
    """The slices, and the condition that a slice has a tuple of the query, which shares its table.
    A window has a tuple of the query when one of its slices has.
    """
    match rel:
        case Filter(
            source=source, predicate=Call(Scalar(role=Comparator() as role), (Col(), Lit(value=0)))
        ) if role == GREATER:
            return rel.predicate, source
    return None, rel


def meaning(window: Window, output: LowOutput, start: Col, end: Expr, made: LowOutput) -> Rel:
    """The windows over all columns of the slices."""
    others = [(f.name, Col(f.name, f.type)) for f in output.fields if f.name != start.name]
    kept = tuple((n, e) for n, e in others if n not in (WSTART, WEND))
    read = Read(output.name, output.fields)
    elements = Project(read, (*kept, (WSTART, start), (WEND, end)))
    windows = replace(window, source=elements)
    columns = {n for n, _ in kept}
    items = tuple((f.name, Col(f.name if f.name in columns else WEND, f.type)) for f in made.fields)
    return Project(windows, items)


def is_epoch(column: Col, output: LowOutput) -> bool:
    return output.groups is not None and output.groups.epoch_name == column.name


def end_name(output: LowOutput, start: Col) -> str:
    """The name of the end of a window in a stream of windows, in the place of the slice."""
    taken = {f.name for f in output.fields} - {start.name}
    return WEND if WEND not in taken else f"{start.name}#"


def inlined(rel: Aggregate) -> Aggregate:
    source = rel.source
    if not isinstance(source, Project):
        return rel
    items = dict(source.items)
    keys = tuple((name, substitute(expr, items)) for name, expr in rel.keys)
    aggs = tuple((name, over(agg, items)) for name, agg in rel.aggs)
    if any(agg.order for _, agg in rel.aggs):
        return rel
    return replace(rel, source=source.source, keys=keys, aggs=aggs)


def over(agg: AggCall, items: Mapping[str, Expr]) -> AggCall:
    return replace(agg, args=tuple(substitute(a, items) for a in agg.args))
