"""Splitting queries: a low part next to the source, a high part above it (dissertation 3.4.1).

In: an optimised Plan, the capability profile of the sources' host, and the costs of functions. Out:
`SplitPlan`: an equivalent Plan in which every scan stands in a low-level stream `NAME_low` of one
of two forms, Project or Aggregate over Scan or Filter(Scan), and the queries read those streams.

The low part is compiled with the values of parameters. Safe conditions go low, the others stay
above. An aggregation becomes sub- and super-aggregates when
its keys, its arguments and all its conditions are safe and every aggregate splits; else only its
selection goes low.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from terascope.analysis.costs import Costs
from terascope.optimize.driver import apply_below
from terascope.optimize.rules.drop_identities import drop_identities
from terascope.optimize.rules.merge_projects import merge_projects
from terascope.optimize.rules.prune_columns import prune_columns
from terascope.physical.rules.low_planner import scanned
from terascope.physical.split.drafts import Drafts, Names
from terascope.physical.split.host import COMPILED_HOST, Host, LowSafety
from terascope.physical.split.selection import Selection, selection
from terascope.physical.split.slicing import InForce, Slicing, family_of
from terascope.physical.split.split_aggregation import NotSplit, split_aggregation
from terascope.physical.split.split_windows import other_keys, split_windowed, windowed
from terascope.plan.build import conjunction
from terascope.plan.expr import Col, Expr, is_constant, substitute
from terascope.plan.plan import Plan, Stream, reads
from terascope.plan.rel import (
    Aggregate,
    Filter,
    Named,
    Project,
    Read,
    Rel,
    Running,
    inputs,
    refreshed,
    require,
    walk,
    with_inputs,
)
from terascope.plan.show import show_expr
from terascope.sharing.windows import Mode


@dataclass(frozen=True)
class KeptHigh:
    """An expression that a query computes in its high part, and the reason."""

    stream: str
    """The name of the query."""
    text: str
    reason: str


@dataclass(frozen=True)
class SplitPlan:
    """A Plan whose queries are split into low parts and high parts."""

    plan: Plan
    """The plan, with low-level streams first."""
    low: tuple[Stream, ...]
    """The low-level streams, which run next to the sources: selections and aggregations."""
    kept_high: tuple[KeptHigh, ...]
    host: Host
    costs: Costs
    slicing: Slicing = field(default_factory=Slicing)
    """The windows of the set and their slices."""

    @property
    def low_keys(self) -> dict[str, tuple[str, ...]]:
        """The key columns of every low-level aggregation."""
        return {
            low.name: tuple(key for key, _ in low.rel.keys)
            for low in self.low
            if isinstance(low.rel, Aggregate)
        }

    def readers(self, stream: str) -> list[str]:
        """The streams that read a stream."""
        return [s.name for s in self.plan if any(r.stream == stream for r in reads(s.rel))]


def split_plan(
    plan: Plan,
    host: Host = COMPILED_HOST,
    costs: Costs | None = None,
    live: bool = False,
    share_windows: Mode = "cost",
    tumbling_apart: bool = False,
    in_force: InForce | None = None,
    decided: Slicing | None = None,
) -> SplitPlan:
    """The plan with every query split into a low and a high part. `live`: groups have to close
    while the stream runs, so that an aggregation is split only by epochs. `tumbling_apart`: where
    windows share by cost, tumbling windows keep keys of their own. `in_force`: the composition of
    windows in a running stream. `decided`: the slices of all windows of the plan, where they are
    known.
    """
    judge = LowSafety(host, costs or Costs(), plan.values)
    # A key has a horizon, the edge of a window has none: running groups would live longer.
    windows = live or not any(lives_on_streams(stream.rel) for stream in plan)
    slicing = decided or Slicing(
        mode=share_windows,
        tumbling_apart=tumbling_apart and share_windows == "cost",
        in_force=in_force,
    )
    selections: Selections = {}

    def taken_apart() -> tuple[Splitter, list[Stream]]:
        drafts = Drafts(Names({s.name for s in plan}), judge, live)
        splitter = Splitter(drafts, slicing, windows, selections)
        return splitter, [s.over(splitter.stream(s)) for s in plan]

    splitter, high = taken_apart()
    if slicing.asked and not slicing.compositions:  # which windows there are is known only now
        slicing.decide()
        if not slicing.shares_nothing:
            splitter, high = taken_apart()
    low = [Stream(draft.name, draft.rel, visible=False) for draft in splitter.drafts.made]
    fields = {stream.name: stream.rel.fields for stream in low}
    above = [s.over(refreshed(s.rel, fields)) for s in high]
    kept = still_read(plan, (*low, *above))
    pruned = prune_columns(replace(plan, streams=kept))
    names = {stream.name for stream in low}
    tidy = tuple(s if s.name in names else tidied(s) for s in pruned)
    parts = tuple(s for s in tidy if s.name in names)
    for part in parts:
        scanned(part.rel)  # refuses a form that the low level does not run
    made = replace(plan, streams=tidy)
    return SplitPlan(made, parts, tuple(splitter.kept_high), host, judge.costs, slicing)


Selections: TypeAlias = dict[tuple[int, bool, bool], tuple[Rel, Selection | None]]
"""A cache: by the identity of a relation, by whether all views are inlined, and by whether a
tumbling window may stand on it: the relation, which has to stay alive, and its selection."""


@dataclass
class Splitter:
    """Splits the queries of a plan, one after another."""

    drafts: Drafts
    slicing: Slicing
    windows: bool
    """Whether windows may become keys of low-level groups."""
    selections: Selections
    """The selections found so far."""
    kept_high: dict[KeptHigh, None] = field(default_factory=dict)
    """The expressions kept in high parts, in the order of the queries, each once."""
    views: dict[str, Rel] = field(default_factory=dict)
    """The streams that are selections of a scan."""
    transparent: dict[str, Rel] = field(default_factory=dict)
    """The views that are not emitted and run next to the source as a whole."""

    @property
    def judge(self) -> LowSafety:
        return self.drafts.judge

    def stream(self, stream: Stream) -> Rel:
        chosen = self.chosen(stream.rel, self.views)
        if chosen is not None:
            self.views[stream.name] = stream.rel
            if not stream.visible and self.judge.is_safe(chosen):
                self.transparent[stream.name] = stream.rel
        made = self.rel(stream.name, stream.rel)
        require(made.fields == stream.rel.fields, f"splitting changed the columns of {stream.name}")
        return made

    def rel(self, query: str, rel: Rel) -> Rel:
        """The high part of a relation; its low parts become drafts."""
        if isinstance(rel, Aggregate | Running):
            windows = False
            if isinstance(rel, Aggregate) and self.windows:
                windows, of_slices = True, self.windowed(query, rel)
                if of_slices is not None:
                    return of_slices
            chosen = self.chosen(rel.source, self.views, windows)
            if chosen is not None:
                try:
                    return split_aggregation(query, rel, chosen, self.drafts)
                except NotSplit as refusal:
                    self.keep_high(query, refusal.reasons)
        chosen = self.chosen(rel, self.transparent)
        if chosen is not None:
            return self.selection(query, chosen)
        parts = inputs(rel)
        return with_inputs(rel, tuple(self.rel(query, p) for p in parts)) if parts else rel

    def windowed(self, query: str, rel: Aggregate) -> Rel | None:
        """The high part of an aggregation that is computed from slices; None when it is not."""
        found = windowed(rel, lambda below: self.chosen(below, self.views), self.drafts.live)
        if found is None:
            return None
        family = family_of(found, other_keys(rel, found))
        vector = self.slicing.ask(query, found, family)
        earlier = self.slicing.earlier(found, family)
        if vector is None and not earlier:
            return None
        try:
            return split_windowed(query, rel, found, vector, self.drafts, earlier)
        except NotSplit as refusal:
            self.slicing.refuse(query, found, family)
            self.keep_high(query, refusal.reasons)
            return None

    def chosen(self, rel: Rel, views: Mapping[str, Rel], windows: bool = False) -> Selection | None:
        # The streams that a relation reads stand before it: whether they are views is known.
        key = id(rel), views is self.views, windows
        if key not in self.selections:
            found = selection(rel, views, windows)
            made = None if found is None else self.judge.with_values(found)
            self.selections[key] = rel, made
        return self.selections[key][1]

    def selection(self, query: str, chosen: Selection) -> Rel:
        low: list[Expr] = []
        high: list[Expr] = []
        for condition in chosen.conditions:
            reason = self.judge.condition(condition)
            (low if reason is None else high).append(condition)
            if reason is not None:
                self.keep_high(query, [(show_expr(condition), reason)])
        draft = self.drafts.stream(query, chosen.scan, low)
        items: list[Named] = []
        for name, expr in chosen.items:
            if isinstance(expr, Col) or is_constant(expr):
                items.append((name, draft.carried(expr)))
                continue
            reason = self.judge.column(expr)
            if reason is not None:
                self.keep_high(query, [(show_expr(expr), reason)])
            # What a condition above may guard against is computed behind it.
            above = reason is not None or bool(high)
            items.append((name, draft.carried(expr) if above else draft.column(expr, name)))
        kept = [draft.carried(condition) for condition in high]
        source: Rel = Filter(draft.read, conjunction(kept)) if kept else draft.read
        return Project(source, tuple(items))

    def keep_high(self, query: str, parts: Iterable[tuple[str, str]]) -> None:
        for text, reason in parts:
            self.kept_high.setdefault(KeptHigh(query, text, reason))


def lives_on_streams(rel: Rel) -> bool:
    """Whether a running aggregate reads another stream."""
    return any(isinstance(r, Running) and any(reads(r)) for r in walk(rel))


def still_read(before: Plan, streams: tuple[Stream, ...]) -> tuple[Stream, ...]:
    """The streams without those that no stream reads any more."""
    read_before = {read.stream for stream in before for read in reads(stream.rel)}
    wanted = {s.name for s in before if s.visible or s.name not in read_before}
    kept: list[Stream] = []
    for stream in reversed(streams):
        if stream.name in wanted:
            kept.append(stream)
            wanted |= {read.stream for read in reads(stream.rel)}
    return tuple(reversed(kept))


def tidied(stream: Stream) -> Stream:
    """The high part without projections that splitting has made superfluous."""
    rel = stream.rel
    for rule in (filter_below_values, merge_projects, drop_identities, drop_narrowing):
        rel = apply_below(rel, rule)
    return stream.over(rel)


def filter_below_values(rel: Rel) -> Rel | None:
    """Before: Filter p (Project (Aggregate))      After: Project (Filter p (Aggregate)): HAVING."""
    match rel:
        case Filter(source=Project(source=Aggregate() as groups, items=items), predicate=p):
            return Project(Filter(groups, substitute(p, dict(items)), span=rel.span), items)
        case _:
            return None


def drop_narrowing(rel: Rel) -> Rel | None:
    """Before: Aggregate (Project a (Read with a, b))      After: Aggregate (Read with a, b)."""
    match rel:
        case (
            Aggregate(source=Project(source=Read() as source, items=items))
            | Running(source=Project(source=Read() as source, items=items))
        ):
            same = all(isinstance(e, Col) and e.name == n for n, e in items)
            return replace(rel, source=source) if same else None
        case _:
            return None
