"""The operators of a Job, one line each: what it does, where, its predicted and measured cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from terascope.explain.from_plan import order_in_words
from terascope.explain.model import Facts, OperatorLine
from terascope.physical.operators import (
    AssembleWindows,
    ComputeRelation,
    Exchange,
    GroupTuples,
    JoinGroups,
    JoinLeftovers,
    Measure,
    Measures,
    MergeGroups,
    Operator,
    PrefilterTuples,
    RankRows,
    ReadSource,
    RegroupRows,
    RunPipeline,
    SelectTuples,
    StoreSlices,
    TreeEdge,
    WriteRows,
)
from terascope.physical.row_pipeline import Keep, RowPipeline
from terascope.plan.expr import Expr
from terascope.plan.show import show_expr
from terascope.units import plural, readable_bytes


def operator_lines(
    operators: Sequence[Operator], measures: Measures | None = None
) -> tuple[OperatorLine, ...]:
    """One line for each operator; `measures`: what they did, after a run."""
    return tuple(operator_line(one, (measures or {}).get(one.name)) for one in operators)


def operator_line(operator: Operator, measure: Measure | None = None) -> OperatorLine:
    cost = operator.cost_ns
    return OperatorLine(
        operator.name,
        operator.places,
        does(operator),
        operator.inputs,
        "" if cost is None else f"{cost:.0f} ns each",
        operator.choice,
        () if measure is None else figures(measure),
    )


def does(operator: Operator) -> str:
    """What an operator does, in a few words."""
    match operator:
        case ReadSource(columns=columns, splits=splits, bytes=size):
            known = f"{readable_bytes(size)} in {plural(splits, 'split')}, " if splits else ""
            return known + plural(columns, "column")
        case PrefilterTuples(predicates=predicates):
            return f"{plural(len(predicates), 'predicate')}, each evaluated once a tuple"
        case SelectTuples(query=query):
            return f"{plural(len(query.items), 'column')} of tuples with {bits(query.signature)}"
        case GroupTuples(query=query):
            return f"by {names(query.keys)}: {plural(len(query.slots), 'slot')}"
        case TreeEdge(query=query):
            return f"by {names(query.keys)}: {plural(len(query.slots), 'slot')}, of groups"
        case Exchange(by=by):
            return f"partial groups, by hash of {by}"
        case StoreSlices(kept_by=column):
            return f"in the slice store, by {column}"
        case MergeGroups(groups=groups):
            return f"by {', '.join(f.name for f in groups.keys)}"
        case AssembleWindows(windows=windows):
            return f"range {windows.window.range}, slide {windows.window.slide}"
        case RunPipeline(pipeline=pipeline):
            return steps(pipeline)
        case RankRows(top=top):
            return f"the first {top.limit} per {', '.join(top.per) or 'stream'}"
        case RegroupRows(regroup=regroup):
            return f"by {names(regroup.keys)}: {plural(len(regroup.slots), 'slot')}"
        case JoinGroups(join=join):
            pairs = " AND ".join(f"{show_expr(a)} = {show_expr(b)}" for a, b in join.equalities)
            return f"{join.kind} on {pairs}"
        case JoinLeftovers():
            return "rows of epochs that no task has alone"
        case ComputeRelation(kept=kept):
            return "computed once, kept" if kept else "computed"
        case WriteRows(columns=columns, order=order):
            return plural(columns, "column") + (
                f", in order of {order_in_words(order)}" if order else ""
            )
        case _:
            assert_never(operator)


def figures(measure: Measure) -> Facts:
    """What was measured, as words and values; zeros are left out."""
    found: list[tuple[str, str]] = [("in", f"{measure.taken:,}"), ("out", f"{measure.given:,}")]
    if measure.probes:
        found.append(("probes", f"{measure.probes:,}"))
    if measure.evicted:
        found.append(("evicted", f"{measure.evicted:,}"))
    if measure.exchanged_bytes:
        found.append(("exchanged", readable_bytes(measure.exchanged_bytes)))
    if measure.spilled_bytes:
        found.append(("spilled", readable_bytes(measure.spilled_bytes)))
    if measure.seconds:
        found.append(("time", f"{measure.seconds:.3f} s"))
    return tuple(found)


def steps(pipeline: RowPipeline) -> str:
    """The steps of a row pipeline; steps after a rank or another aggregation come last."""
    conditions = [
        show_expr(step.predicate)
        for step in (*pipeline.steps, *pipeline.after)
        if isinstance(step, Keep)
    ]
    kept = f"keep {' AND '.join(conditions)}, " if conditions else ""
    return f"{kept}project"


def names(keys: Sequence[tuple[str, Expr]]) -> str:
    return ", ".join(name for name, _ in keys) or "nothing"


def bits(signature: Sequence[int]) -> str:
    return f"bits {', '.join(map(str, signature))}" if signature else "any bits"
