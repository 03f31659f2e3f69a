"""The last steps of a query without Spark: conditions and projections on columns of results.

In: the columns of a low-level stream, groups merged. Out: the columns of a query that does nothing
but filter and project them (HAVING, computed columns), so that a task can write its rows itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from terascope.functions.base import Value
from terascope.low.expressions import unsupported
from terascope.low.lanes import Batch, Dictionaries
from terascope.low.program import Function, Program
from terascope.plan.expr import Cast, Col, Expr, Lit, Param, transform
from terascope.plan.rel import Filter, Project, Read, Rel

NOTHING: Final = Program(Function("prefilter", (), (), ()), 0, Function("derive", (), (), ()), ())


@dataclass(frozen=True)
class Keep:
    predicate: Expr


@dataclass(frozen=True)
class Compute:
    items: tuple[tuple[str, Expr], ...]


Step: TypeAlias = Keep | Compute


@dataclass(frozen=True)
class RowProgram:
    """Steps, one after the other; for a task to run on every batch of results."""

    stream: str
    """The stream it begins with."""
    steps: tuple[Step, ...]

    def __call__(self, columns: pa.RecordBatch) -> pa.RecordBatch:
        for step in self.steps:
            columns = run_step(step, columns)
        return columns


def picked(program: RowProgram, names: Sequence[str]) -> tuple[int, ...] | None:
    """The places of the columns a program merely picks out of `names`; None when it does more."""
    current = {name: place for place, name in enumerate(names)}
    last: tuple[int, ...] = tuple(current.values())
    for step in program.steps:
        if isinstance(step, Keep):
            return None
        found: dict[str, int] = {}
        for name, expr in step.items:
            while isinstance(expr, Cast) and expr.type.is_integer and expr.operand.type.is_integer:
                expr = expr.operand  # integer types differ in name only
            if not isinstance(expr, Col):
                return None
            found[name] = current[expr.name]
        current, last = found, tuple(found.values())
    return last


def run_step(step: Step, columns: pa.RecordBatch) -> pa.RecordBatch:
    batch = Batch(columns, Dictionaries(), NOTHING, lambda *_: None)
    everybody = np.arange(len(batch), dtype=np.int32)
    match step:
        case Keep(predicate):
            return columns.filter(pa.array(batch.passing(predicate, everybody)))
        case Compute(items):
            made = [batch.column(expr, everybody) for _, expr in items]
            return pa.RecordBatch.from_arrays(made, [name for name, _ in items])


def row_program(rel: Rel, parameters: Mapping[str, Value]) -> RowProgram | None:
    """A query as steps over the stream it reads; None when it does anything else."""
    match rel:
        case Read(stream=stream):
            return RowProgram(stream, ())
        case Filter(source, predicate):
            return extended(row_program(source, parameters), [predicate], parameters, None)
        case Project(source, items):
            names = [name for name, _ in items]
            below = row_program(source, parameters)
            return extended(below, [expr for _, expr in items], parameters, names)
        case _:
            return None


def extended(
    below: RowProgram | None,
    expressions: list[Expr],
    parameters: Mapping[str, Value],
    names: list[str] | None,
) -> RowProgram | None:
    if below is None:
        return None
    bound = [with_values(expr, parameters) for expr in expressions]
    if any(unsupported(e) is not None for e in bound if not isinstance(e, Lit)):
        return None
    step = Keep(bound[0]) if names is None else Compute(tuple(zip(names, bound, strict=True)))
    return RowProgram(below.stream, (*below.steps, step))


def with_values(expr: Expr, parameters: Mapping[str, Value]) -> Expr:
    return transform(expr, lambda e: Lit(parameters[e.name], e.type) if isinstance(e, Param) else e)
