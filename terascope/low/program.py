"""The generated kernels of a source: prefilter bits and derived lanes (3.4.2, 3.4.3).

In: a LowPlan. Out: a `Program`, the text of two functions and what they read and give. `prefilter`
evaluates every shared predicate once for each tuple into a bit vector; `derive` computes the keys
and arguments that are not columns, each different one once. The same statements run as machine code
or as numpy (`compiled=False`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Final

import numpy as np

from terascope.low.arithmetic_recipes import can_overflow
from terascope.low.expressions import Writer
from terascope.low.kernels import INTEGER, column, compile_for, load_module, output
from terascope.low.payload_tests import is_payload_test
from terascope.low.plan import LowAggregate, LowPlan
from terascope.low.terms import Input, is_number, is_true
from terascope.plan.expr import Col, Expr
from terascope.types import Type

WORD: Final = 64

PICK: Final = """

@kernel
def pick(condition, yes, no):
    if condition:
        return yes
    return no
"""


@dataclass(frozen=True)
class Function:
    """A generated function: what it reads, its statements, what it stores."""

    name: str
    inputs: tuple[Input, ...]
    lines: tuple[str, ...]
    stores: tuple[tuple[str, str], ...]
    """(output array, text of the value), in the order of the arguments."""
    counters: tuple[int, ...] = ()
    """Counters that go up by one for each tuple: the predicates evaluated."""

    def arguments(self) -> list[str]:
        lanes = [f"{letter}{i}" for i in range(len(self.inputs)) for letter in "am"]
        return [*lanes, *(array for array, _ in self.stores)]


@dataclass(frozen=True)
class Program:
    """Both functions of a plan."""

    prefilter: Function
    words: int
    """64-bit words of the bit vector."""
    derive: Function
    derived: tuple[Expr, ...]
    """What `derive` computes: outputs come as value, validity, and whether it overflowed."""

    def source(self) -> str:
        return PICK + "".join(looped(f) for f in (self.prefilter, self.derive))


def program(plan: LowPlan) -> Program:
    """Generate the kernels of a plan."""
    w = Writer()
    words = (len(plan.predicates) + WORD - 1) // WORD
    vectors: list[list[str]] = [[] for _ in range(words)]
    for k, predicate in enumerate(plan.predicates):
        bit = is_true(w.term(predicate))
        vectors[k // WORD].append(f"(np.uint64({bit}) << np.uint64({k % WORD}))")
    bits = tuple((f"bits{i}", " | ".join(parts)) for i, parts in enumerate(vectors))
    counters = tuple(range(len(plan.predicates)))
    prefilter = Function("prefilter", tuple(w.inputs), tuple(w.lines), bits, counters)
    w = Writer()
    expressions = derived_expressions(plan)
    stores: list[tuple[str, str]] = []
    for k, expr in enumerate(expressions):
        term = w.term(expr)
        stores += [
            (f"v{k}", f"{number_type(expr.type)}({term.value})"),
            (f"m{k}_", f"np.uint8({term.valid or 'True'})"),
        ]
        if can_overflow(expr):
            stores.append((f"q{k}", f"np.uint8({w.overflows(expr) or 'False'})"))
    derive = Function("derive", tuple(w.inputs), tuple(w.lines), tuple(stores))
    return Program(prefilter, words, derive, tuple(expressions))


def programs(plan: LowPlan) -> tuple[Program, Program]:
    """What is computed of a batch as it is read, for the prefilter and the selections; and what of
    the columns that aggregations read, when many batches are together. Those that are made of the
    groups of others read none.
    """
    selections = tuple(q for q in plan.queries if not isinstance(q, LowAggregate))
    aggregations = tuple(
        node
        for node in (*plan.queries, *plan.inner)
        if isinstance(node, LowAggregate) and node.parent is None
    )
    return (
        program(LowPlan((), plan.predicates, selections)),
        program(LowPlan((), (), aggregations)),
    )


def number_type(type: Type) -> str:
    return "np.float64" if type is Type.FLOAT else "np.int64"


def derived_expressions(plan: LowPlan) -> list[Expr]:
    """Keys and arguments that are computed from numbers."""
    found: dict[Expr, None] = {}
    for query in plan.queries:
        if isinstance(query, LowAggregate):
            wanted = [expr for _, expr in query.keys]
            wanted += [s.argument for s in query.slots if s.argument is not None]
        else:
            wanted = [expr for _, expr in query.items]
        for expr in wanted:
            if not isinstance(expr, Col) and is_number(expr.type) and not is_payload_test(expr):
                found[expr] = None
    return list(found)


# ---- as machine code, as numpy -------------------------------------------------------------------


def looped(function: Function) -> str:
    """The function with its loop, for numba."""
    body = [line.replace("@", "[i]") for line in function.lines]
    body += [f"{array}[i] = {text}" for array, text in function.stores]
    body += [f"counted[{k}] += 1" for k in function.counters]
    header = f"def {function.name}(n, counted, {', '.join(function.arguments())}):"
    loop = ["    for i in range(n):", *(f"        {line}" for line in body or ["pass"])]
    return "\n".join(["", "", "@kernel", header, *loop, ""])


def plain(function: Function) -> str:
    """The function without it, for numpy."""
    body = [line.replace("@", "") for line in function.lines]
    body += [f"{array}[:] = {text}" for array, text in function.stores]
    body += [f"counted[{k}] += n" for k in function.counters]
    header = f"def {function.name}(n, counted, {', '.join(function.arguments())}):"
    return "\n".join(["", "", header, *(f"    {line}" for line in body or ["pass"]), ""])


@cache
def plain_module(source: Program) -> ModuleType:
    module = ModuleType("terascope_numpy")
    module.__dict__.update(np=np, pick=np.where)
    text = plain(source.prefilter) + plain(source.derive)
    exec(compile(text, "<terascope numpy>", "exec"), module.__dict__)
    return module


def functions(source: Program, compiled: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(prefilter, derive), ready to be called."""
    if not compiled:
        module = plain_module(source)
        return module.prefilter, module.derive
    module = load_module(source.source())
    bits = [output(np.uint64)] * source.words
    derived: list[Any] = []
    for expr in source.derived:
        derived += [output(np.float64 if expr.type is Type.FLOAT else np.int64), output(np.uint8)]
        derived += [output(np.uint8)] if can_overflow(expr) else []
    return (
        compile_for(module.prefilter, *signature(source.prefilter), *bits),
        compile_for(module.derive, *signature(source.derive), *derived),
    )


def signature(function: Function) -> list[Any]:
    """Types of the arguments up to the outputs."""
    lanes = [a for one in function.inputs for a in (column(lane_type(one.expr)), column(np.uint8))]
    return [INTEGER, output(np.int64), *lanes]


def lane_type(expr: Expr) -> Any:
    if expr.type is Type.BOOL:
        return np.bool_
    return np.float64 if expr.type is Type.FLOAT else np.int64


@cache
def vector(expr: Expr) -> tuple[tuple[Input, ...], Callable[..., tuple[Any, Any, Any]]]:
    """One expression as a numpy function of its lanes (a0, m0, a1, ...): value, valid, overflow."""
    w = Writer()
    term = w.term(expr)
    flags = w.overflows(expr) or "False"
    names = [f"{letter}{i}" for i in range(len(w.inputs)) for letter in "am"]
    lines = [line.replace("@", "") for line in w.lines]
    text = [f"def value({', '.join(names)}):", *(f"    {line}" for line in lines)]
    text.append(f"    return {term.value}, {term.valid or 'True'}, {flags}")
    scope: dict[str, Any] = {"np": np, "pick": np.where}
    exec(compile("\n".join(text), "<terascope numpy>", "exec"), scope)
    return tuple(w.inputs), scope["value"]
