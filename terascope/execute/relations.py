"""Rel -> rows: every operator of the algebra over Arrow batches, in this process.

In: a relation, and the batches of the streams computed before. Out: the batch of its rows, hidden
columns included. An operator has an Arrow form where the kernels of tasks compute exactly the
meaning of GSQL: the same filters, projections, aggregations, ranks and joins that tasks run on
finished rows. The reference interpreter, which defines the meaning and is slow, computes every
other operator; its rows are few, because the low level has reduced them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import arrow_type
from terascope.execute.rows.collect import Regrouping, first_rows
from terascope.execute.rows.joins import matched
from terascope.execute.rows.pairs import PairCondition
from terascope.execute.rows.steps import batch_of, run_steps
from terascope.functions.base import Value, ValueMistake
from terascope.physical.row_pipeline import Regroup, RowPipeline, RowPlanner, Top
from terascope.plan.evaluate import Parameters
from terascope.plan.horizon import Horizons
from terascope.plan.rel import (
    WEND,
    WSTART,
    Aggregate,
    Field,
    Filter,
    Join,
    Lookup,
    Merge,
    Project,
    Rank,
    Read,
    Rel,
    Scan,
    Window,
    inputs,
)
from terascope.reference.interpreter import tuples_over
from terascope.reference.rows import Evaluation, Row
from terascope.reference.watch_list import read_watch_list
from terascope.reference.window import windows_around
from terascope.types import Type

COMPILED_ROWS: Final = 1 << 20
"""Aggregations of more rows are worth machine code, which may have to be compiled first."""
NO_STEPS: Final = RowPipeline("", ())

Operator: TypeAlias = Callable[[Sequence[pa.RecordBatch]], pa.RecordBatch]
"""The rows of a relation from those of its inputs."""


@dataclass(frozen=True)
class ArrowRelations:
    """The inputs of an operator beside its relations."""

    streams: Mapping[str, pa.RecordBatch]
    """The streams that stand before this one."""
    parameters: Parameters
    horizons: Horizons
    compiled: bool = True
    """Whether large aggregations run as machine code."""

    def rows(self, rel: Rel) -> pa.RecordBatch:
        if isinstance(rel, Read):
            return self.streams[rel.stream].select(list(rel.names))
        given = [self.rows(source) for source in inputs(rel)]
        operator = arrow_operator(rel, self.parameters, self.compiled)
        if operator is None:
            return self._by_reference(rel, given)
        return batch_of([operator(given)], rel.fields)

    def _by_reference(self, rel: Rel, given: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        context = Evaluation(no_scan, {}, self.horizons, self.parameters)
        tuples = tuples_over(rel, [tuples_of(batch) for batch in given], context)
        columns = list(zip(*tuples, strict=True)) or [()] * len(rel.fields)
        arrays = [column_of(c, f) for c, f in zip(columns, rel.fields, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, list(rel.names))


def arrow_operator(rel: Rel, parameters: Parameters, compiled: bool = True) -> Operator | None:
    """The Arrow form of one operator; None: the reference interpreter computes it."""
    match rel:
        case Lookup():
            return lambda _: batch_of(read_watch_list(rel).to_batches(), rel.fields)
        case Filter() | Project():
            program = RowPlanner({}, parameters).stepped((rel,), NO_STEPS)
            return None if program is None else lambda given: run_steps(program.steps, given[0])
        case Rank():
            return rank_operator(rel, parameters)
        case Aggregate():
            return aggregate_operator(rel, parameters, compiled)
        case Window():
            is_whole = rel.source.type_of(rel.on).is_integer
            return (lambda given: in_windows(rel, given[0])) if is_whole else None
        case Join():
            return join_operator(rel, parameters)
        case Merge():
            return lambda given: batch_of(given, rel.fields)
        case _:
            return None


def rank_operator(rel: Rank, parameters: Parameters) -> Operator | None:
    if rel.limit is None:  # it only says in which order rows are delivered
        return lambda given: given[0]
    by_float = any(rel.source.type_of(name) is Type.FLOAT for name in rel.per)
    program = None if by_float else RowPlanner({}, parameters).ranked(NO_STEPS, rel)
    if program is None or not isinstance(program.whole, Top):
        return None
    top = program.whole
    return lambda given: first_rows(given[0], top)


def aggregate_operator(rel: Aggregate, parameters: Parameters, compiled: bool) -> Operator | None:
    """Each grouping set is an aggregation of its own; keys that are not in it are NULL."""
    if rel.emit_empty is not None:
        return None
    programs: list[tuple[RowPipeline, Regroup]] = []
    for chosen in [[name for name, _ in rel.keys]] if rel.sets is None else rel.sets:
        keys = tuple((name, expr) for name, expr in rel.keys if name in chosen)
        one = replace(rel, keys=keys, sets=None)
        program = RowPlanner({}, parameters).regrouped(NO_STEPS, one)
        if program is None or not isinstance(program.whole, Regroup):
            return None
        programs.append((program, program.whole))

    def aggregate(given: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        made = [
            with_missing_keys(run_steps(program.after, groups), rel)
            for program, whole in programs
            for groups in grouped(whole, given[0], compiled)
        ]
        return batch_of(made, rel.fields)

    return aggregate


def grouped(whole: Regroup, rows: pa.RecordBatch, compiled: bool) -> list[pa.RecordBatch]:
    if not rows.num_rows:
        return []
    regrouping = Regrouping(whole, compiled and rows.num_rows > COMPILED_ROWS)
    regrouping.take(rows)
    return list(regrouping.results())


def join_operator(rel: Join, parameters: Parameters) -> Operator | None:
    planner = RowPlanner({}, parameters)
    matching = planner.matching(rel)
    condition = PairCondition.of(rel, planner)
    if matching is None or (rel.residual is not None and condition is None):
        return None
    if condition is None and not rel.equalities:
        return None
    equalities, fills = matching
    return lambda given: matched(rel.kind, given[0], given[1], equalities, fills, condition)


def no_scan(scan: Scan) -> list[Row]:
    raise AssertionError(f"the low level reads {scan.protocol}")


def column_of(values: Sequence[Value], field: Field) -> pa.Array:
    """The values of a column.

    Raises:
        ValueMistake: a function of the user gave a value of another type.
    """
    try:
        return pa.array(values, arrow_type(field.type))
    except pa.ArrowException as mistake:
        raise ValueMistake(f"column {field.name}: {mistake}") from mistake


def with_missing_keys(groups: pa.RecordBatch, rel: Aggregate) -> pa.RecordBatch:
    """Groups of a grouping set with the other keys, which are NULL."""
    found = dict(zip(groups.schema.names, groups.columns, strict=True))
    columns = [found.get(f.name, pa.nulls(groups.num_rows, arrow_type(f.type))) for f in rel.fields]
    return pa.RecordBatch.from_arrays(columns, list(rel.names))


def tuples_of(batch: pa.RecordBatch) -> list[Row]:
    columns = [column.to_pylist() for column in batch.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows


def in_windows(rel: Window, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Each row once for every window that contains it; a row without a time belongs to none. The
    windows of a time are found once, by the function that defines them, and then repeated.
    """
    ends = (WSTART, WEND) if rel.elements else (rel.on, rel.on)
    present = pc.and_(*(pc.is_valid(rows.column(name)) for name in ends))
    rows = rows.filter(present)
    starts, stops = (rows.column(name).to_numpy() for name in ends)
    times, which = np.unique(np.stack([starts, stops], axis=1), axis=0, return_inverse=True)
    more = 0 if rel.elements else 1  # a tuple at time t is the element [t, t+1)
    found = [list(windows_around(rel.spec, a, b + more)) for a, b in times.tolist()]
    counts = np.array([len(some) for some in found], np.int64)
    first = np.cumsum(counts) - counts
    which = which.reshape(-1)
    repeats = counts[which]
    places = np.repeat(np.arange(rows.num_rows), repeats)
    nth = np.arange(len(places)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    chosen = np.repeat(first[which], repeats) + nth
    kept = [f.name for f in rel.fields if f.name not in (WSTART, WEND)]
    columns = rows.select(kept).take(pa.array(places)).columns
    intervals = np.array([i for some in found for i in some], np.int64).reshape(-1, 2)
    bounds = [pa.array(intervals[chosen, side]) for side in (0, 1)]
    return pa.RecordBatch.from_arrays([*columns, *bounds], [*kept, WSTART, WEND])
