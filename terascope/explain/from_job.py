"""A Job as a picture: what is read, how often, how much of it; what is kept; what is delivered.

In: a compiled set. Out: boxes for the reads (files, partitions, columns decoded, what is dropped at
the source) and the streams. A set without sources is explained as far as it goes: the planner is
given interfaces that have no files yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace

from terascope.analysis.order import column_orders, emitted_orders, plan_orders
from terascope.analysis.slopes import Orders
from terascope.config import Config
from terascope.connectors.base import LAYERS, POSITION, Edge, Split
from terascope.connectors.dataframe import DataFrameInterface
from terascope.connectors.packets.fields import LAYER_BITS
from terascope.connectors.registry import Interface
from terascope.explain.decisions import prospect_notes, slices_in_words, slicing_notes, tree_lines
from terascope.explain.from_operators import operator_lines
from terascope.explain.from_partitions import file_bytes, ownership_notes, partition_facts
from terascope.explain.from_plan import (
    PLACE,
    column_notes,
    operator_node,
    parameter_notes,
    source_id,
    stream_box,
    stream_id,
)
from terascope.explain.model import Box, Facts, Picture, PictureNode
from terascope.local.choice import choose_engine
from terascope.physical.job import Job, SourceRead
from terascope.physical.low_plan import LowAggregate, LowOutput, LowPlan, LowQuery, Slot
from terascope.physical.operators import Measures
from terascope.physical.planner import plan_job
from terascope.physical.rules.low_planner import scanned
from terascope.physical.settings import costs_of, host_of
from terascope.physical.split.split_plan import SplitPlan, split_plan
from terascope.pipeline import Compiled
from terascope.plan.expr import Call, Col, Expr, Lit, children, rebuild
from terascope.plan.plan import Plan, reads
from terascope.plan.rel import Rel, Scan, inputs, walk, with_inputs
from terascope.plan.show import is_hidden, order_in_words, show_expr
from terascope.types import Type
from terascope.units import plural, readable_bytes

UNBOUND = "no source is bound, so that files and partitions are not known; add --source"
PROTOCOL_OF_BIT = {bit: name for name, bit in LAYER_BITS.items()}
ANY = "any"
"""The name of an interface that no query names and that is not bound."""


@dataclass(frozen=True)
class NoFiles(Interface):
    """An interface that a query names and that is not bound."""

    def splits(self, target_bytes: int, edge: Edge | None = None) -> list[Split]:
        return []

    def __post_init__(self) -> None:
        # `files` is computed and kept by the base class; there are none to be found.
        self.__dict__["files"] = ()


def picture_of_job(
    compiled: Compiled,
    ran: tuple[Job, SplitPlan] | None = None,
    measures: Measures | None = None,
) -> Picture:
    """The reads, the kept streams and the outputs. `ran`: the job of a run, with its `measures`.

    Raises:
        SourceError: a bound source is missing or unreadable.
    """
    plan = compiled.optimized
    notes: tuple[str, ...] = ()
    if ran is not None:
        job, split = ran
    elif compiled.runnable:
        job, split = compiled.job_and_split(destination="files")
        notes = (str(choose_engine(job, compiled.bindings.engine)),)
    else:
        config = compiled.bindings.config
        plan, job = unbound_job(plan, config)
        split = split_plan(plan, host_of(config), costs_of(config))
        notes = (UNBOUND,)
    known = orders_with_windows(job, split.plan)
    sources = [read_box(read) for read in job.reads]
    return Picture(
        "job",
        compiled.source.title,
        (*sources, *low_boxes(job, known), *stream_boxes(job, split, known)),
        parameter_notes(plan.parameters),
        (
            *prospect_notes(job.prospect),
            *slicing_notes(split.slicing),
            *("\n".join(tree_lines(one)) for one in job.decisions),
            *ownership_notes(job.ownership, job),
            *notes,
        ),
        operators=operator_lines(job.operators, measures),
    )


# ---- sources -------------------------------------------------------------------------------------


def read_box(read: SourceRead) -> Box:
    facts = [
        (interface.name, interface_fact(interface, read))
        for interface in read.interfaces
        if not isinstance(interface, NoFiles) and interface.partition is None
    ]
    facts += partition_facts(read)
    tasks = len(read.splits)
    if tasks:
        facts.append(("partitions", f"{tasks}"))
    facts.append(("columns", column_list(read)))
    if read.predicate is not None:
        facts.append(("keeps", show_expr(in_words(read.predicate))))
    if read.clocks:
        facts.append(("clocks", ", ".join(read.clocks)))
    if read.low is not None:
        facts += low_facts(read.low)
    return Box(source_id(read.name), read.name, "source", facts=tuple(facts), notes=read.notes)


def low_facts(low: LowPlan) -> list[tuple[str, str]]:
    """The prefilter, and what the tasks may use."""
    facts = [
        (f"bit {bit}", f"{show_expr(in_words(predicate))} ({plural(users, 'query', 'queries')})")
        for bit, predicate in enumerate(low.predicates)
        if (users := sum(bit in query.signature for query in low.queries))
    ]
    how = "machine code" if low.compiled else "numpy"
    return [*facts, ("kernels", f"{how}, {readable_bytes(low.memory_bytes)} for a task's tables")]


def orders_with_windows(job: Job, plan: Plan) -> dict[str, Orders]:
    known: dict[str, Orders] = dict(plan_orders(plan))
    for output in job.low:
        if output.windows is not None:
            known[output.name] = column_orders(job.trees[output.name], known)
    for name, rel in job.streams.items():
        if name not in known:  # a rule over the Job has made it
            known[name] = column_orders(rel, known)
    return known


def window_box(output: LowOutput, known: Mapping[str, Orders]) -> Box:
    """A stream of windows that the merge puts together from slices."""
    windows = output.windows
    assert windows is not None
    window = windows.window
    facts = (
        ("made of", f"{windows.stream}, where all slices of a group meet"),
        ("window", f"range {window.range}, slide {window.slide}"),
        ("slices", slices_in_words(windows.vector).removeprefix("slices ")),
    )
    root = PictureNode(
        "Windows", f"Windows of slices of {windows.stream}", reads=(stream_id(windows.stream),)
    )
    columns = column_notes(output.fields, known[output.name])
    return stream_box(output.name, columns, root, ("low",), facts)


def low_boxes(job: Job, known: Mapping[str, Orders]) -> list[Box]:
    """The low-level streams: what runs in the tasks that read."""
    queries = {query.name: query for read in job.reads for query in read.queries}
    boxes = []
    for output in job.low:
        if output.windows is not None:
            boxes.append(window_box(output, known))
            continue
        rel = job.trees[output.name]
        facts = query_facts(queries[output.name])
        if output.name in job.streams:
            others = ", ".join(scanned(job.streams[output.name]).interfaces)
            facts.append(("catalyst", f"the tuples of {others}"))
        columns = column_notes(rel.visible, column_orders(rel, known))
        root = operator_node(rel, known, sources_of(queries[output.name], queries, job))
        boxes.append(stream_box(output.name, columns, root, ("low",), tuple(facts)))
    return boxes


def sources_of(
    query: LowQuery, shown: Container[str], job: Job
) -> Callable[[Scan], tuple[str, ...]]:
    """The boxes of a query's input: its source, or the stream of groups it is made of."""
    parent = query.parent if isinstance(query, LowAggregate) else None
    if parent is not None and parent in shown:
        return lambda _: (stream_id(parent),)
    return lambda scan: read_names(job, scan)


def query_facts(query: LowQuery) -> list[tuple[str, str]]:
    bits = ", ".join(map(str, query.signature)) or "none: all tuples"
    facts = [("signature", f"bits {bits}" if query.signature else bits)]
    if query.rest:
        facts.append(("then", " AND ".join(show_expr(in_words(e)) for e in query.rest)))
    if isinstance(query, LowAggregate):
        table = query.table
        bounded = table.kind != "open" and table.groups is not None
        limit = f"{table.groups:,} groups" if bounded else readable_bytes(table.max_bytes)
        kind = table.kind.replace("_", " ")
        facts.append(("table", f"{kind}, {table.flush} flush, at most {limit}"))
        facts += [
            ("state", state_fact(slot)) for slot in query.slots if slot.kind.state is not None
        ]
        if query.parent is not None:
            facts.append(("made of", query.parent))
        if query.epoch is not None:
            name = query.keys[query.epoch][0]
            many = ", a key of the table: epochs are short" if query.epoch_in_key else ""
            facts.append(("epoch", name + many))
    return facts


def state_fact(slot: Slot) -> str:
    """The strategy of a state, and the reason for it."""
    kind = slot.kind.state
    assert kind is not None
    told = [kind.strategy or kind.name, *([kind.why] if kind.why else [])]
    if kind.choose is not None:
        told[1:] = ["where a task chooses no other by its first tuples, or a stream by its slices"]
    return f"{slot.name}: {', '.join(told)}"


def column_list(read: SourceRead) -> str:
    """The columns decoded; `+place` for the hidden ones."""
    shown = [c.name for c in read.columns if not is_hidden(c.name)]
    place = PLACE if any(c.name == POSITION for c in read.columns) else ""
    return (", ".join(shown) or "none, tuples are only counted") + place


def in_words(expr: Expr) -> Expr:
    """A test of a protocol's bit as the name of the protocol."""
    match expr:
        case Call(args=(Call(args=(Col(name=name), Lit(value=bit))), Lit(value=0))):
            if name == LAYERS and bit in PROTOCOL_OF_BIT:
                return Col(PROTOCOL_OF_BIT[bit], Type.BOOL)
    return rebuild(expr, tuple(in_words(part) for part in children(expr)))


def interface_fact(interface: Interface, read: SourceRead) -> str:
    if isinstance(interface, DataFrameInterface):
        return f"{interface.kind} ({plural(len(interface.held), 'column')})"
    files = interface.files
    splits = sum(split.interface == interface.name for split in read.splits)
    size = readable_bytes(sum(file_bytes(path) for path in files))
    parts = [plural(len(files), "file"), size, plural(splits, "split")]
    options = "".join(f" {key}={value!r}" for key, value in interface.options)
    return f"{interface.kind}:{interface.location}{options} ({', '.join(parts)})"


# ---- streams -------------------------------------------------------------------------------------


def stream_boxes(job: Job, split: SplitPlan, known: Mapping[str, Orders]) -> list[Box]:
    """The streams that Spark computes. A stream that the tasks of other sources give, too, has a
    box already.
    """
    native = {output.name for output in job.low}
    low = {stream.name for stream in split.low}
    outputs = {output.stream: output for output in job.outputs}
    uses = Counter(read.stream for rel in job.streams.values() for read in reads(rel))
    texts = {stream.name: stream.text for stream in split.plan}
    boxes = []
    for name, rel in job.streams.items():
        if name in native:
            continue
        output = outputs.get(name)
        marks: tuple[str, ...] = ("output",) if output else ("internal",)
        if name in low:
            marks = ("low",)
        facts: Facts = ()
        if name in job.kept:
            marks = (*marks, "kept")
            times = uses[name] + (output is not None)
            facts = (("kept", f"computed once, used {times} times"),)
        if output is not None:
            facts = (*facts, ("order", order_in_words(output.order) or "as computed"))
        orders = emitted_orders(rel, column_orders(rel, known))
        columns = column_notes(rel.visible, orders)
        root = operator_node(rel, known, lambda scan: read_names(job, scan))
        text = texts.get(name, "")
        boxes.append(stream_box(name, columns, root, marks, facts, text))
    return boxes


def read_names(job: Job, scan: Scan) -> tuple[str, ...]:
    names = {source_id(job.read_of(interface).name): None for interface in scan.interfaces}
    return tuple(names)


# ---- without sources -----------------------------------------------------------------------------


def unbound_job(plan: Plan, config: Config) -> tuple[Plan, Job]:
    """The plan with every scan on an interface, and the job over interfaces without files."""
    streams = tuple(replace(stream, rel=on_some_interface(stream.rel)) for stream in plan)
    placed = replace(plan, streams=streams)
    interfaces: dict[str, Interface] = {}
    for stream in placed:
        for rel in walk(stream.rel):
            if isinstance(rel, Scan):
                kind = "csv" if rel.layer is None else "pcap"
                interfaces |= {name: NoFiles(name, kind, "") for name in rel.interfaces}
    return placed, plan_job(placed, interfaces, config=config, destination="files")


def on_some_interface(rel: Rel) -> Rel:
    if isinstance(rel, Scan):
        # Without packets, what a protocol reads is a table of its own.
        name = rel.protocol if rel.layer is None else ANY
        return replace(rel, interfaces=rel.interfaces or (name,))
    return with_inputs(rel, tuple(map(on_some_interface, inputs(rel))))
