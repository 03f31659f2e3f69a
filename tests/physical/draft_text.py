"""A draft of a Job as text: one line for each thing that rules have decided so far.

In: a `JobDraft`. Out: lines in the order of the data: reads with their low-level queries, the
streams that tasks emit, relations above them, outputs, what tasks write, operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import indent

from terascope.physical.draft import JobDraft
from terascope.physical.job import SourceRead
from terascope.physical.low_plan import LowAggregate, LowPlan, LowQuery, Slot, Where
from terascope.physical.row_pipeline import Compute, Keep, RowPipeline
from terascope.plan.expr import Expr
from terascope.plan.rel import Rel
from terascope.plan.show import show_expr, show_rel


def draft_text(draft: JobDraft) -> str:
    return "\n".join(lines(draft)) or "nothing"


def lines(draft: JobDraft) -> Iterator[str]:
    if draft.made is not None and not draft.streams:
        low = {part.name for part in draft.made.low}
        for stream in draft.made.plan:
            kind = "low" if stream.name in low else "high"
            yield from relation(f"{kind} part {stream.name}", stream.rel)
    for read in draft.reads:
        yield from source_read(read)
    for name in draft.in_spark:
        yield f"in Spark: {name}"
    for output in draft.low:
        slices = "" if output.windows is None else f", windows of {output.windows.stream}"
        yield f"emits {output.name}: {', '.join(f.name for f in output.fields)}{slices}"
    for name, rel in draft.streams.items():
        yield from relation(f"stream {name}{' (kept)' if name in draft.kept else ''}", rel)
    for made in draft.outputs:
        order = ", ".join(f"{name}{' DESC' if down else ''}" for name, down in made.order)
        yield f"output {made.stream}: {', '.join(made.columns)}, ordered by {order or 'nothing'}"
    if draft.ownership is not None:
        sets = ", ".join(f"{source} by {one}" for source, one in draft.ownership.sets.items())
        yield f"each partition ({sets}) owns {', '.join(sorted(draft.ownership.kept)) or 'nothing'}"
        for source, sent in draft.ownership.sending.items():
            yield f"partitions send tuples of {source} for {', '.join(sorted(sent))}"
    for direct in draft.deliveries.direct.values():
        yield f"tasks write {direct.query}: {pipeline(direct.program)}"
    for query, join in draft.deliveries.joined.items():
        sides = " and ".join(side.program.stream for side in join.sides)
        yield f"tasks join {query}: {sides}"
    for name, one in draft.deliveries.inside.items():
        ways = ["written"] * bool(one.written) + ["handed up"] * (one.number is not None)
        yield f"partitions compute {name}: {', '.join(ways) or 'for others'}"
    for operator in draft.operators:
        inputs = f" of {', '.join(operator.inputs)}" if operator.inputs else ""
        yield f"{type(operator).__name__} '{operator.name}'{inputs}: {', '.join(operator.places)}"


def relation(title: str, rel: Rel) -> Iterator[str]:
    yield f"{title}:"
    yield indent(show_rel(rel).rstrip(), "  ")


def source_read(read: SourceRead) -> Iterator[str]:
    yield f"read {read.name}: {', '.join(column.name for column in read.columns)}"
    if read.low is not None:
        for bit, predicate in enumerate(read.low.predicates):
            yield f"  bit {bit}: {show_expr(predicate)}"
        for query in (*read.low.inner, *read.low.queries):
            yield f"  {low_query(query, read.low)}"


def low_query(query: LowQuery, low: LowPlan) -> str:
    where = condition(Where(query.signature, query.rest))
    if not isinstance(query, LowAggregate):
        return f"select {query.name}: {', '.join(name for name, _ in query.items)}{where}"
    keys = ", ".join(show_expr(expr) for _, expr in query.keys)
    slots = ", ".join(map(slot_text, query.slots))
    kind = "inner " if query in low.inner else ""
    above = "" if query.parent is None else f", of the groups of {query.parent}"
    either = "".join(f", or{condition(one)}" for one in query.anyof)
    return f"{kind}group {query.name}: by {keys}: {slots}{where}{either}{above}"


def slot_text(slot: Slot) -> str:
    argument = f"({', '.join(map(show_expr, slot.arguments))})" if slot.arguments else ""
    kind = slot.kind.state
    if kind is not None:
        argument += ", undecided" if kind.choose else f", {kind.strategy}" if kind.strategy else ""
    return f"{slot.kind.name}{argument}{'' if slot.where is None else condition(slot.where)}"


def condition(where: Where) -> str:
    bits = [f"bit {bit}" for bit in where.signature]
    asked = [*bits, *map(show_expr, where.rest)]
    return f" where {' and '.join(asked)}" if asked else ""


def pipeline(program: RowPipeline) -> str:
    whole = "" if program.whole is None else f", {type(program.whole).__name__}"
    after = "".join(map(step_text, program.after))
    return f"{program.stream}{''.join(map(step_text, program.steps))}{whole}{after}"


def step_text(step: Keep | Compute) -> str:
    if isinstance(step, Keep):
        return f", keep {show_expr(step.predicate)}"
    return f", compute {names(step.items)}"


def names(items: Sequence[tuple[str, Expr]]) -> str:
    return " ".join(name for name, _ in items)
