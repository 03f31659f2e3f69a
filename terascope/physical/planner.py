"""Plan -> Job: how each source is read once, which streams are kept, what is delivered.

In: an optimised Plan and the interfaces it names. Out: a `Job`. The columns of a read are the union
of what all scans of its interfaces use; its predicate is what every one of them agrees to drop.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from terascope.analysis.at_source import can_evaluate
from terascope.analysis.costs import Costs
from terascope.analysis.order import Orders, emitted_orders, plan_orders
from terascope.analysis.sequence import falls, sequence
from terascope.connectors.arrival import arrived, is_arrival
from terascope.connectors.base import INTERFACE, LAYERS, Column, Edge, Split
from terascope.connectors.registry import Interface, versioned
from terascope.diagnostic import SourceError
from terascope.functions.aggregates.float_sums import FloatRange
from terascope.optimize.driver import apply_below
from terascope.physical.bundles import SPLIT_BYTES
from terascope.physical.job import Job, LowOutput, Output, SourceRead, StreamStage, TreeDecision
from terascope.physical.row_pipeline import KeptOrder
from terascope.physical.rules.assemble_windows import Assembly
from terascope.physical.rules.low_planner import (
    TableSettings,
    common_edge,
    low_groups,
    low_plan,
    scanned,
)
from terascope.physical.rules.merged import assume_merged, merged_jointly, tidy
from terascope.physical.rules.share_tables import Rides, never, share_tables
from terascope.physical.rules.trees import TreeSettings, widened, with_trees
from terascope.physical.split.drafts import Names
from terascope.physical.split.host import COMPILED_HOST, Host
from terascope.physical.split.slicing import InForce, Slicing, nothing_in_force
from terascope.physical.split.split_plan import SplitPlan, split_plan
from terascope.physical.statistics.measured import Measured
from terascope.physical.statistics.prospects import Prospect, prospect_of
from terascope.physical.statistics.sampling import SampleLimits
from terascope.plan.build import TRUE, call, conjunction, disjunction
from terascope.plan.expr import Col, Expr, Lit, conjuncts, substitute
from terascope.plan.plan import Plan, Stream, reads
from terascope.plan.rel import (
    WEND,
    WSTART,
    Aggregate,
    Filter,
    Project,
    Rank,
    Rel,
    Scan,
    inputs,
    with_inputs,
)
from terascope.sharing.windows import Mode
from terascope.types import Type

PACKETS = "packets"
MOST_TERMS = 12
"""A source predicate of more alternatives costs more than it saves."""

Backend = Literal["native", "catalyst", "auto"]


ENOUGH_TO_DECIDE = SampleLimits(tuples=1 << 15, seconds=0.5)
"""What is read of a source before it is read."""


@dataclass(frozen=True)
class SharingSettings:
    """What the queries of a set share."""

    windows: Mode = "cost"
    """Slices."""
    predicates: Literal["cost", "never", "always"] = "cost"
    """Tables of aggregations with the same keys and different conditions."""
    trees: TreeSettings = field(default_factory=TreeSettings)
    """Intermediate aggregates."""
    sample: SampleLimits | None = ENOUGH_TO_DECIDE
    """What is read of a source to decide by; None: nothing."""
    sampling: Literal["cost", "always"] = "cost"
    """Whether that is read: where what could be saved pays for it, or always. Trees that save
    operations are asked for whatever that takes."""


SAMPLED = SharingSettings(sampling="always")
"""Everything is shared where that is cheaper, however little there is to be saved."""

APART = SharingSettings(predicates="never", trees=TreeSettings("never"), sample=None)
"""Every aggregation has a table of its own, and nothing is measured."""


@dataclass(frozen=True)
class LowSettings:
    """Who runs the low level, and how.

    `native`: compiled kernels in the tasks that read; `catalyst`: DataFrame operations over the
    tuples; `auto`: native wherever the source can host it, which all but DataFrames can.
    """

    backend: Backend = "auto"
    host: Host = COMPILED_HOST
    costs: Costs = field(default_factory=Costs)
    tables: TableSettings = field(default_factory=TableSettings)
    sharing: SharingSettings = field(default_factory=SharingSettings)


ScanUse = tuple[Scan, Expr]
"""A scan and the predicate that stands on it."""


def plan_job(
    plan: Plan,
    interfaces: Mapping[str, Interface],
    split_bytes: int = SPLIT_BYTES,
    low: LowSettings | None = None,
    live: bool = False,
) -> Job:
    """The job that computes every visible stream of a plan. The sources of a live one have no
    splits yet.
    """
    return plan_job_and_split(plan, interfaces, split_bytes, low, live)[0]


def plan_job_and_split(
    plan: Plan,
    interfaces: Mapping[str, Interface],
    split_bytes: int = SPLIT_BYTES,
    low: LowSettings | None = None,
    live: bool = False,
    in_force: InForce = nothing_in_force,
) -> tuple[Job, SplitPlan]:
    """Return the job of a plan and the split plan that it runs; sources are looked at once.
    `in_force`: how a running stream composes its windows.
    """
    settings = low or LowSettings()
    prospect = None if live else prospect_before(plan, interfaces, settings)
    drafting = Drafting(
        plan, interfaces, settings, None if live else split_bytes, prospect, in_force
    )
    draft = drafting.draft()
    if settings.backend == "catalyst":
        whole = draft.whole
        stages = stream_stages(whole, draft.trees)
        job = Job(draft.reads, stages, outputs(whole), dict(plan.values), trees=draft.trees)
        return job, draft.split
    refused = [i for i in draft.interfaces if not i.hosts_low_level]
    if settings.backend == "native" and refused:
        raise SourceError(not_native(refused))
    measured = Measured(drafting.limits)
    draft = drafting.measured(draft, measured)
    # What else could be shared is found while a stream runs.
    job = native_job(draft, Measured(None) if live else measured, settings, live)
    return replace(job, prospect=prospect), draft.split


def prospect_before(
    plan: Plan, interfaces: Mapping[str, Interface], settings: LowSettings
) -> Prospect | None:
    """What samples could gain; None where nobody asks."""
    sharing = settings.sharing
    if settings.backend == "catalyst" or sharing.sample is None:
        return None
    if sharing.sampling == "always" or sharing.trees.mode == "operations":
        return None
    return prospect_of(plan, interfaces)


def plan_split(
    plan: Plan,
    interfaces: Mapping[str, Interface],
    split_bytes: int = SPLIT_BYTES,
    low: LowSettings | None = None,
    live: bool = False,
) -> SplitPlan:
    """Return the split plan that the job of a plan runs, windows decided."""
    settings = low or LowSettings()
    prospect = None if live else prospect_before(plan, interfaces, settings)
    drafting = Drafting(plan, interfaces, settings, None if live else split_bytes, prospect)
    draft = drafting.draft()
    if settings.backend == "catalyst":
        return draft.split
    return drafting.measured(draft, Measured(drafting.limits)).split


@dataclass(frozen=True)
class Draft:
    """A split plan, and how its sources are read."""

    split: SplitPlan
    reads: tuple[SourceRead, ...]
    """With low-level plans where the source can host one."""
    interfaces: tuple[Interface, ...]
    streams: tuple[Stream, ...]
    """The low-level streams of the sources that host them."""
    in_spark: Mapping[str, Rel]
    """Those of the others."""

    @property
    def whole(self) -> Plan:
        return self.split.plan

    @property
    def trees(self) -> dict[str, Rel]:
        return {s.name: s.rel for s in self.whole}


@dataclass(frozen=True)
class Drafting:
    """Splits a plan, knowing more or less of its sources."""

    plan: Plan
    interfaces: Mapping[str, Interface]
    settings: LowSettings
    split_bytes: int | None
    prospect: Prospect | None = None
    """None: sources are sampled whether that pays or not."""
    in_force: InForce = nothing_in_force
    arrival_ns: int = field(default_factory=time.time_ns)
    """When all tuples of a batch arrive, for those who ask: now."""
    found: dict[tuple[str, Edge | None], tuple[Split, ...]] = field(default_factory=dict)
    """The splits of interfaces: to find them takes a while."""

    @property
    def samples(self) -> bool:
        return self.prospect is None or self.prospect.pays

    @property
    def limits(self) -> SampleLimits | None:
        """What is read of a source; None: nothing."""
        return self.settings.sharing.sample if self.samples else None

    def draft(self, decided: Slicing | None = None) -> Draft:
        """Split the plan. `decided`: the slices of its windows, where they are known."""
        settings, live = self.settings, self.split_bytes is None
        split = split_plan(
            self.plan, settings.host, settings.costs, live, settings.sharing.windows,
            tumbling_apart=not self.samples, in_force=self.in_force, decided=decided,
        )  # fmt: skip
        whole = split.plan
        uses = [use for stream in whole for use in scan_uses(stream.rel)]
        names = sorted({n for scan, _ in uses for n in scan.interfaces})
        own = tuple(self.interfaces[n] for n in names)
        packets = [i for i in own if i.is_packets]
        groups = [(PACKETS, packets)] if packets else []
        groups += [(i.name, [i]) for i in own if not i.is_packets]
        lowest = {stream.name for stream in split.low}
        lower = [s for s in whole if s.name in lowest]
        edge = common_edge([s.rel for s in lower])
        reads_ = [
            source_read(name, members, uses, self.splits(members, edge), edge, self.arrival_ns)
            for name, members in groups
        ]
        if settings.backend == "catalyst":
            return Draft(split, tuple(reads_), own, (), {})
        hosting = {i.name for i in own if i.hosts_low_level}
        streams = tuple(on_interfaces(lower, hosting))
        in_spark = {s.name: s.rel for s in on_interfaces(lower, set(names) - hosting)}
        native = [native_read(r, streams, settings) if hosts_low(r) else r for r in reads_]
        return Draft(split, tuple(native), own, streams, in_spark)

    def splits(self, members: Sequence[Interface], edge: Edge | None) -> list[Split] | None:
        """Of a source; a live one has none yet."""
        if self.split_bytes is None:
            return None
        return versioned(self.splits_of(members, edge, self.split_bytes))

    def splits_of(
        self, members: Sequence[Interface], edge: Edge | None, split_bytes: int
    ) -> list[Split]:
        for member in members:
            if (member.name, edge) not in self.found:
                self.found[member.name, edge] = tuple(member.splits(split_bytes, edge))
        return [split for member in members for split in self.found[member.name, edge]]

    def sampled(self, read: SourceRead) -> SourceRead:
        """A read with splits that a sample can be made of. Of a live one those are what its files
        have so far; it may have none yet, and when its tuples will arrive they do not tell.
        """
        if self.split_bytes is not None or any(is_arrival(c.name) for c in read.columns):
            return read
        try:
            splits = self.splits_of(read.interfaces, read.edge, SPLIT_BYTES)
        except SourceError:  # the run will say so, if it is still so then
            return read
        return replace(read, splits=tuple(splits))

    def measured(self, draft: Draft, measured: Measured) -> Draft:
        """The same with what a sample says of the windows that could share their slices."""
        slicing = draft.split.slicing
        if self.settings.sharing.windows != "cost" or not slicing.has_choices:
            return draft
        reads_ = [self.sampled(read) for read in draft.reads]
        known = {
            family: measured.traffic(family, slicing, draft.whole, reads_)
            for family in slicing.asked
            if slicing.is_open(family)
        }
        if not any(known.values()):
            return draft
        decided = slicing.knowing(known.get)
        if decided.decides_as(slicing):
            return replace(draft, split=replace(draft.split, slicing=decided))
        return self.draft(decided)


def native_job(draft: Draft, measured: Measured, settings: LowSettings, live: bool) -> Job:
    """The job of a draft whose tasks run the low level themselves."""
    whole, streams = draft.whole, draft.streams
    lowest = {stream.name for stream in draft.split.low}
    # Of a stream that both give, groups are merged above. Spark gives a row for each range of a
    # group whose FLOATs are summed.
    both = {s.name for s in streams} & draft.in_spark.keys()
    partial = both | {name for name, rel in draft.in_spark.items() if has_ranges(rel)}
    keys = {name: keys for name, keys in draft.split.low_keys.items() if name not in partial}
    shared = share_tables(
        draft.reads,
        [low_output(stream) for stream in streams if stream.name not in both],
        rides(settings.sharing, measured, draft.reads),
        measured.size,
    )
    reads_, low, decisions = shared.reads, shared.low, list[TreeDecision]()
    if not live:
        before = {read.name: read for read in draft.reads}
        counted = Counter(q.name for r in shared.reads if r.low is not None for q in r.low.queries)
        several = {name for name, number in counted.items() if number > 1}
        grown = [
            with_trees(r, before[r.name], measured, settings.sharing.trees, several)
            for r in shared.reads
        ]
        reads_ = tuple(read for read, _ in grown)
        low = widened(shared.low, reads_)
        decisions = [one for _, made in grown for one in made]
    over = [s for s in whole if s.name not in lowest]

    def above(keys: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, Rel], Assembly]:
        made = {s.name: apply_below(shared.read(assume_merged(s.rel, keys)), tidy) for s in over}
        assembly = Assembly(
            {} if live else {o.name: o for o in low}, Names({s.name for s in whole})
        )
        return assembly.over_windows(made), assembly

    high, assembly = above(keys)
    merged = merged_jointly(high.values())
    if merged & keys.keys():  # then all who read such a stream merge its groups
        high, assembly = above({name: key for name, key in keys.items() if name not in merged})
    outputs_ = (*low, *(low_output(stream) for stream in streams if stream.name in both))
    return Job(
        reads_,
        stream_stages(whole, {**draft.in_spark, **high}),
        outputs(whole),
        dict(whole.values),
        (
            *(replace(o, merged_above=o.name in merged) for o in outputs_),
            *assembly.made.values(),
        ),
        draft.trees | assembly.trees,
        tuple(decisions),
    )


def has_ranges(rel: Rel) -> bool:
    """Whether groups have a row for each range of the FLOATs that are summed."""
    aggs = rel.aggs if isinstance(rel, Aggregate) else ()
    return any(isinstance(call.function, FloatRange) for _, call in aggs)


def rides(sharing: SharingSettings, measured: Measured, reads: Sequence[SourceRead]) -> Rides:
    """Whether aggregations with the same keys and different conditions share a table."""
    if sharing.predicates == "cost":
        return lambda members: measured.rides(members, reads)
    return (lambda _: True) if sharing.predicates == "always" else never


def hosts_low(read: SourceRead) -> bool:
    return all(interface.hosts_low_level for interface in read.interfaces)


def not_native(refused: Iterable[Interface]) -> str:
    named = ", ".join(f"'{interface.name}' is {interface.noun}" for interface in refused)
    return (
        f"the low level cannot be native: {named}, whose tuples stay in Spark; set low to auto,"
        " which is native for all other sources, or to catalyst"
    )


def on_interfaces(streams: Iterable[Stream], names: set[str]) -> Iterator[Stream]:
    """The low-level streams that have tuples of these interfaces, reading only them."""
    for stream in streams:
        scan = scanned(stream.rel)
        wanted = tuple(n for n in scan.interfaces if n in names)
        if wanted:
            part = with_scan(stream.rel, replace(scan, interfaces=wanted))
            yield stream if wanted == scan.interfaces else replace(stream, rel=part)


def with_scan(rel: Rel, scan: Scan) -> Rel:
    if isinstance(rel, Scan):
        return scan
    return with_inputs(rel, tuple(with_scan(part, scan) for part in inputs(rel)))


def stream_stages(plan: Plan, trees: Mapping[str, Rel]) -> tuple[StreamStage, ...]:
    counted = Counter(read.stream for rel in trees.values() for read in reads(rel))
    counted.update(stream.name for stream in plan.visible)
    return tuple(StreamStage(name, rel, counted[name] > 1) for name, rel in trees.items())


def native_read(read: SourceRead, streams: Sequence[Stream], settings: LowSettings) -> SourceRead:
    """A read whose tasks run the low-level streams themselves."""
    names = {i.name for i in read.interfaces}
    ours = [s for s in streams if names & set(scanned(s.rel).interfaces)]
    plan = low_plan(
        ours, read.interfaces, read.columns, read.splits, settings.costs, settings.tables
    )
    return replace(read, low=plan, predicate=None)


def low_output(stream: Stream) -> LowOutput:
    groups = low_groups(stream.rel) if isinstance(stream.rel, Aggregate) else None
    return LowOutput(stream.name, stream.rel.fields, groups)


# ---- sources -------------------------------------------------------------------------------------


def scan_uses(rel: Rel, predicate: Expr = TRUE) -> Iterator[ScanUse]:
    """Every scan below, with the filter that stands directly on it."""
    match rel:
        case Scan():
            yield rel, predicate
        case Filter(source=Scan() as scan, predicate=own):
            yield scan, own
        case _:
            for part in inputs(rel):
                yield from scan_uses(part)


def source_read(
    name: str,
    members: list[Interface],
    uses: list[ScanUse],
    splits: list[Split] | None,
    edge: Edge | None,
    arrival_ns: int,
) -> SourceRead:
    ours = {m.name for m in members}
    relevant = [(scan, p) for scan, p in uses if ours & set(scan.interfaces)]
    columns: dict[str, Column] = {}
    for scan, _ in relevant:
        for one in (*scan.columns, *scan.checked):
            add_column(columns, Column(one.read_from, one.type, one.clock), name)
        if scan.layer is not None:
            add_column(columns, Column(LAYERS, Type.LLONG), name)
        if ours - set(scan.interfaces):
            add_column(columns, Column(INTERFACE, Type.STRING), name)
    clocks = {f.read_from for scan, _ in relevant for f in scan.columns if f.slope is not None}
    return SourceRead(
        name,
        tuple(members),
        tuple(columns.values()),
        # The tuples that nobody wants tell how far time moved; Spark has them anyway.
        source_predicate(relevant, ours) if members[0].hosts_low_level else None,
        tuple(arrived(splits or (), columns.values(), arrival_ns)),
        tuple(sorted(clocks)),
        () if splits is None else tuple(notes(members)),
        edge=edge,
        arrival_ns=arrival_ns if any(map(is_arrival, columns)) else 0,
    )


def add_column(columns: dict[str, Column], column: Column, source: str) -> None:
    known = columns.setdefault(column.name, column)
    same = known.type is column.type or (known.type.is_integer and column.type.is_integer)
    if not same:
        raise SourceError(
            f"column '{column.name}' of '{source}' is declared {known.type.label} "
            f"in one PROTOCOL and {column.type.label} in another"
        )
    if known.clock and column.clock and known.clock != column.clock:
        # A date in a file becomes ticks of one unit; a second one would be told the wrong time.
        raise SourceError(
            f"column '{column.name}' of '{source}' is declared clock({known.clock}) "
            f"in one PROTOCOL and clock({column.clock}) in another"
        )


def source_predicate(uses: list[ScanUse], members: set[str]) -> Expr | None:
    """What makes a tuple of use to at least one scan; None when all are, or it is not worth it."""
    terms = list(dict.fromkeys(scan_term(scan, p, members) for scan, p in uses))
    if len(terms) > MOST_TERMS:
        terms = list(dict.fromkeys(scan_term(scan, TRUE, members) for scan, _ in uses))
    terms = weakest(terms)
    if not terms or TRUE in terms or len(terms) > MOST_TERMS:
        return None
    return disjunction(terms)


def weakest(terms: list[Expr]) -> list[Expr]:
    """Without the terms that ask for more than another one does."""
    parts = [frozenset(conjuncts(t)) for t in terms]
    return [t for t, own in zip(terms, parts, strict=True) if not any(p < own for p in parts)]


def scan_term(scan: Scan, predicate: Expr, members: set[str]) -> Expr:
    """The tuples one scan wants, in columns of the connector."""
    parts: list[Expr] = []
    if scan.layer is not None:
        bit = Lit(scan.layer, Type.LLONG)
        parts.append(call("!=", call("&", Col(LAYERS, Type.LLONG), bit), Lit(0, Type.LLONG)))
    if members - set(scan.interfaces):
        wanted = [Lit(n, Type.STRING) for n in scan.interfaces]
        parts.append(call("in", Col(INTERFACE, Type.STRING), *wanted))
    names: dict[str, Expr] = {c.name: Col(c.read_from, c.type) for c in scan.columns}
    if predicate != TRUE:
        below = (substitute(c, names) for c in conjuncts(predicate))
        parts += [c for c in below if can_evaluate(c)]
    return conjunction(parts)


def notes(members: list[Interface]) -> Iterator[str]:
    for member in members:
        packed = [p.name for p in member.files if p.suffix == ".gz"]
        if packed:
            yield f"{', '.join(packed)}: compressed, each file is read as one partition"
        if not member.hosts_low_level:
            yield f"low level by catalyst: {member.noun}"


# ---- results -------------------------------------------------------------------------------------


def outputs(plan: Plan) -> tuple[Output, ...]:
    known = plan_orders(plan)
    orders = {s.name: emitted_orders(s.rel, known[s.name]) for s in plan.visible}
    return tuple(
        Output(
            s.name,
            tuple(f.name for f in s.rel.visible),
            output_order(s, orders[s.name]),
            kept_order(s, orders[s.name]),
        )
        for s in plan.visible
    )


def output_order(stream: Stream, orders: Orders) -> tuple[tuple[str, bool], ...]:
    """Rows in the order of the stream; where the query says ORDER BY, in that order per window.
    Columns that are known to be in order come first, or what breaks the ties of one would break the
    order of another.
    """
    plain = sequence(stream.rel, orders)
    edges = [(name, down) for name, down in plain if name in (WEND, WSTART)]
    ranked = rank_order(stream.rel, orders)
    found: dict[str, bool] = {}
    for name, down in (*ranked, *edges, *kept_order(stream, orders), *plain):
        found.setdefault(name, down)
    return tuple(found.items())


def kept_order(stream: Stream, orders: Orders) -> KeptOrder:
    """The columns in whose order rows are delivered; within a band they need not be."""
    known = [f.name for f in stream.rel.visible if f.name in orders]
    return tuple((n, falls(n, orders)) for n in known if not orders[n].slope.band)


def rank_order(rel: Rel, orders: Orders) -> tuple[tuple[str, bool], ...]:
    """The ORDER BY of a query, as far as its columns are delivered."""
    names: dict[Expr, str] = {Col(f.name, f.type): f.name for f in rel.fields}
    if isinstance(rel, Project):
        names = {expr: name for name, expr in rel.items}
        rel = rel.source
    if not isinstance(rel, Rank):
        return ()
    order: list[tuple[str, bool]] = [
        (names[column], falls(names[column], orders))
        for n in rel.per
        if (column := Col(n, rel.type_of(n))) in names
    ]
    windows = {name for name, _ in order}
    for expr, descending in rel.order:
        if expr not in names:
            break
        if names[expr] not in windows:
            order.append((names[expr], descending))
    return tuple(order)
