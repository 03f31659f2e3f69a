"""The operators of a Job, one line each: what it does, where, its predicted and measured cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from terascope.explain.model import Facts, OperatorLine
from terascope.physical import operators as physical
from terascope.physical.operators import Measure, Measures, Operator
from terascope.physical.row_pipeline import Keep, RowPipeline
from terascope.plan.expr import Expr
from terascope.plan.show import order_in_words, show_expr
from terascope.units import plural, readable_bytes


def operator_lines(
    operators: Sequence[Operator], measures: Measures | None = None
) -> tuple[OperatorLine, ...]:
    """One line for each operator; `measures`: what they did, after a run."""
    return tuple(
        OperatorLine(
            one.name,
            one.places,
            does(one),
            one.inputs,
            "" if one.cost_ns is None else f"{one.cost_ns:.0f} ns each",
            one.choice,
            () if measures is None or one.name not in measures else figures(measures[one.name]),
        )
        for one in operators
    )


def does(operator: Operator) -> str:
    """The work of an operator, in a few words."""
    match operator:
        case physical.ReadSource(columns=columns, splits=splits, bytes=size):
            known = f"{readable_bytes(size)} in {plural(splits, 'split')}, " if splits else ""
            return known + plural(columns, "column")
        case physical.PrefilterTuples(predicates=predicates):
            return f"{plural(len(predicates), 'predicate')}, each evaluated once a tuple"
        case physical.SelectTuples(query=query):
            numbers = ", ".join(map(str, query.signature))
            bits = f"bits {numbers}" if numbers else "any bits"
            return f"{plural(len(query.items), 'column')} of tuples with {bits}"
        case physical.GroupTuples(query=query):
            return f"by {names(query.keys)}: {plural(len(query.slots), 'slot')}"
        case physical.TreeEdge(query=query):
            return f"by {names(query.keys)}: {plural(len(query.slots), 'slot')}, of groups"
        case physical.SendTuples(columns=columns, aggregations=count):
            return f"{plural(columns, 'column')}, instead of the groups of {count} aggregations"
        case physical.ReceiveTuples(column=column):
            return f"the tuples of all partitions, by ranges of {column}"
        case physical.CombineGroups(groups=groups):
            return f"by {', '.join(f.name for f in groups.keys)}, on each host"
        case physical.Exchange(by=by):
            return f"partial groups, by hash of {by}"
        case physical.StoreSlices(kept_by=column):
            return f"in the slice store, by {column}"
        case physical.MergeGroups(groups=groups):
            return f"by {', '.join(f.name for f in groups.keys)}"
        case physical.AssembleWindows(windows=windows):
            return f"range {windows.window.range}, slide {windows.window.slide}"
        case physical.RunPipeline(pipeline=pipeline):
            return steps(pipeline)
        case physical.RankRows(top=top):
            return f"the first {top.limit} per {', '.join(top.per) or 'stream'}"
        case physical.RegroupRows(regroup=regroup):
            return f"by {names(regroup.keys)}: {plural(len(regroup.slots), 'slot')}"
        case physical.JoinGroups(join=join):
            pairs = " AND ".join(f"{show_expr(a)} = {show_expr(b)}" for a, b in join.equalities)
            return f"{join.kind} on {pairs}"
        case physical.JoinLeftovers():
            return "rows of epochs that no task has alone"
        case physical.ComputeRelation(kept=kept):
            return "computed once, kept" if kept else "computed"
        case physical.WriteRows(columns=columns, order=order):
            return plural(columns, "column") + (
                f", in order of {order_in_words(order)}" if order else ""
            )
        case _:
            assert_never(operator)


def figures(measure: Measure) -> Facts:
    """The measured figures, as words and values; zeros are left out."""
    rest = (
        (measure.probes, "probes", f"{measure.probes:,}"),
        (measure.evicted, "evicted", f"{measure.evicted:,}"),
        (measure.exchanged_bytes, "exchanged", readable_bytes(measure.exchanged_bytes)),
        (measure.spilled_bytes, "spilled", readable_bytes(measure.spilled_bytes)),
        (measure.seconds, "time", f"{measure.seconds:.3f} s"),
    )
    counts = (("in", f"{measure.taken:,}"), ("out", f"{measure.given:,}"))
    return (*counts, *((word, text) for amount, word, text in rest if amount))


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
