"""The generated kernels of a source: prefilter bits and derived vectors (3.4.2, 3.4.3).

In: predicates and expressions. Out: a `Program`, the text of two functions and what they read and
give. `prefilter` evaluates every shared predicate once for each tuple into a bit vector; `derive`
computes the keys and arguments that are not columns, each different one once. The same statements
run as machine code or as numpy (`compiled=False`).

A function is cut into pieces of bounded size: the time to compile one grows faster than its length,
and a piece that another set has, too, is in the cache. Beyond so many lines nothing is compiled:
numpy computes the rest, block by block, before a compiler would be done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np

from terascope.kernels.codegen.arithmetic_recipes import can_overflow
from terascope.kernels.codegen.expressions import Writer
from terascope.kernels.codegen.generated_modules import load_module
from terascope.kernels.codegen.statements import Input, is_number, is_true
from terascope.kernels.columns.payload_tests import is_payload_test
from terascope.kernels.merge.float_ranges import totals
from terascope.machine_code import INTEGER, column, compile_for, output
from terascope.plan.expr import Col, Expr
from terascope.types import Type

WORD: Final = 64
PIECE_LINES: Final = 120
"""The number of lines at which a piece ends, or a few more."""
MOST_LINES: Final = 480
"""The most lines of a function that are compiled: some seconds of work."""
BLOCK: Final = 1 << 13
"""Tuples that numpy computes at once: intermediate arrays stay in the caches."""

Kernel: TypeAlias = Callable[..., Any]
"""A piece: called with the number of tuples, counters, the vectors it reads and those it writes."""
Vectors: TypeAlias = Callable[[Input], tuple[Any, Any]]
Computation: TypeAlias = Callable[[int, Any, Vectors, Mapping[str, Any]], None]
"""All pieces: called with the number of tuples, counters, a function that gives the vector of an
input, and the arrays that are written, by name."""

PICK: Final = """

@kernel
def pick(condition, yes, no):
    if condition:
        return yes
    return no
"""


def float_total(ranges: Any, *digits: Any) -> Any:
    """Finished sums of FLOATs: only groups have such, and only numpy computes with groups."""
    *words, _ = np.broadcast_arrays(ranges, *digits, np.zeros(1, np.int64))
    return totals(words[0], words[1:])


SCOPE: Final[Mapping[str, Any]] = {"np": np, "pick": np.where, "float_total": float_total}
"""The names that statements use, for numpy."""


@dataclass(frozen=True)
class Store:
    """A value that is written into an output array."""

    array: str
    text: str
    dtype: Any


@dataclass(frozen=True)
class CodePiece:
    """A generated function: its inputs, its statements, its outputs."""

    inputs: tuple[Input, ...]
    lines: tuple[str, ...]
    stores: tuple[Store, ...]
    counters: tuple[int, ...] = ()
    """Counters that go up by one for each tuple: the predicates evaluated."""

    @classmethod
    def of(cls, w: Writer, stores: Iterable[Store], counters: Iterable[int] = ()) -> CodePiece:
        return cls(tuple(w.inputs), tuple(w.lines), tuple(stores), tuple(counters))

    def arguments(self) -> list[str]:
        vectors = [f"{letter}{i}" for i in range(len(self.inputs)) for letter in "am"]
        return [*vectors, *(store.array for store in self.stores)]

    def signature(self) -> list[Any]:
        vectors = [
            array
            for one in self.inputs
            for array in (column(vector_type(one.expr)), column(np.uint8))
        ]
        return [INTEGER, output(np.int64), *vectors, *(output(s.dtype) for s in self.stores)]


def arrays_of(pieces: Iterable[CodePiece], rows: int) -> dict[str, Any]:
    """Arrays for the outputs of pieces, by name."""
    stores = {store.array: store for piece in pieces for store in piece.stores}
    return {name: np.empty(rows, store.dtype) for name, store in stores.items()}


@dataclass(frozen=True)
class Program:
    """Both functions of a plan."""

    prefilter: tuple[CodePiece, ...]
    derive: tuple[CodePiece, ...]
    derived: tuple[Expr, ...]
    """The outputs of `derive`: each as value, validity, and whether it overflowed."""


def program(predicates: Sequence[Expr], expressions: Sequence[Expr]) -> Program:
    """Generate the kernels of a prefilter, and of the expressions that have to be computed."""
    derived = derived_expressions(expressions)
    return Program(prefilter(predicates), derive(derived), derived)


def prefilter(predicates: Sequence[Expr]) -> tuple[CodePiece, ...]:
    """A piece has bits of one word. One that finds bits of an earlier piece there adds its own."""
    pieces: list[CodePiece] = []
    writer, bits, first = Writer(), list[str](), 0
    for k, predicate in enumerate(predicates):
        bits.append(f"(np.uint64({is_true(writer.term(predicate))}) << np.uint64({k % WORD}))")
        end = k + 1
        if is_full(writer) or end == len(predicates) or end % WORD == 0:
            array = f"bits{k // WORD}"
            before = [f"{array}@"] if first % WORD else []
            store = Store(array, " | ".join([*before, *bits]), np.uint64)
            pieces.append(CodePiece.of(writer, [store], range(first, end)))
            writer, bits, first = Writer(), [], end
    return tuple(pieces)


def derive(expressions: Sequence[Expr]) -> tuple[CodePiece, ...]:
    pieces: list[CodePiece] = []
    writer, stores = Writer(), list[Store]()
    for k, expr in enumerate(expressions):
        term = writer.term(expr)
        number = np.float64 if expr.type is Type.FLOAT else np.int64
        stores.append(Store(f"v{k}", f"np.{number.__name__}({term.value})", number))
        stores.append(Store(f"m{k}_", f"np.uint8({term.valid or 'True'})", np.uint8))
        if can_overflow(expr):
            flags = f"np.uint8({writer.overflows(expr) or 'False'})"
            stores.append(Store(f"q{k}", flags, np.uint8))
        if is_full(writer) or k + 1 == len(expressions):
            pieces.append(CodePiece.of(writer, stores))
            writer, stores = Writer(), []
    return tuple(pieces)


def is_full(writer: Writer) -> bool:
    return len(writer.lines) >= PIECE_LINES


def derived_expressions(wanted: Sequence[Expr]) -> tuple[Expr, ...]:
    """The expressions that are computed from numbers, each once."""
    computed = (e for e in wanted if not isinstance(e, Col) and is_number(e.type))
    return tuple(dict.fromkeys(e for e in computed if not is_payload_test(e)))


# ---- as machine code, as numpy -------------------------------------------------------------------


def looped(piece: CodePiece) -> str:
    """A piece with its loop, for numba."""
    body = [*piece.lines, *(f"{store.array}@ = {store.text}" for store in piece.stores)]
    body = [line.replace("@", "[i]") for line in body]
    body += [f"counted[{k}] += 1" for k in piece.counters]
    header = f"def piece(n, counted, {', '.join(piece.arguments())}):"
    loop = ["    for i in range(n):", *(f"        {line}" for line in body)]
    return "\n".join([PICK, "", "@kernel", header, *loop, ""])


def plain(piece: CodePiece) -> str:
    """The piece without it, for numpy."""
    body = [line.replace("@", "") for line in piece.lines]
    body += [f"{store.array}[:] = {store.text.replace('@', '')}" for store in piece.stores]
    body += [f"counted[{k}] += n" for k in piece.counters]
    header = f"def piece(n, counted, {', '.join(piece.arguments())}):"
    return "\n".join(["", "", header, *(f"    {line}" for line in body), ""])


@cache
def by_numpy(piece: CodePiece) -> Kernel:
    scope = dict(SCOPE)
    exec(compile(plain(piece), "<terascope numpy>", "exec"), scope)
    whole: Kernel = scope["piece"]

    def in_blocks(n: int, counted: Any, *arrays: Any) -> None:
        for start in range(0, n, BLOCK):
            end = min(n, start + BLOCK)
            whole(end - start, counted, *(array[start:end] for array in arrays))

    return in_blocks


def by_machine(piece: CodePiece) -> Kernel:
    module = load_module(looped(piece))
    kernel: Kernel = compile_for(module.piece, *piece.signature())
    return kernel


def functions(source: Program, compiled: bool) -> tuple[Computation, Computation]:
    """(prefilter, derive), ready to be called."""
    return ready(source.prefilter, compiled), ready(source.derive, compiled)


def ready(pieces: Sequence[CodePiece], compiled: bool) -> Computation:
    kernels: list[Kernel] = []
    lines = 0
    for piece in pieces:
        lines += len(piece.lines)
        kernels.append(by_machine(piece) if compiled and lines <= MOST_LINES else by_numpy(piece))

    def compute(n: int, counted: Any, vectors: Vectors, arrays: Mapping[str, Any]) -> None:
        for piece, kernel in zip(pieces, kernels, strict=True):
            read = (array for one in piece.inputs for array in vectors(one))
            kernel(n, counted, *read, *(arrays[store.array] for store in piece.stores))

    return compute


def vector_type(expr: Expr) -> Any:
    if expr.type is Type.BOOL:
        return np.bool_
    return np.float64 if expr.type is Type.FLOAT else np.int64


@cache
def numpy_function(expr: Expr) -> tuple[tuple[Input, ...], Callable[..., tuple[Any, Any, Any]]]:
    """An expression as a numpy function of its vectors a0, m0, a1, ...: value, valid, overflow."""
    w = Writer()
    term = w.term(expr)
    flags = w.overflows(expr) or "False"
    names = [f"{letter}{i}" for i in range(len(w.inputs)) for letter in "am"]
    lines = [line.replace("@", "") for line in w.lines]
    text = [f"def value({', '.join(names)}):", *(f"    {line}" for line in lines)]
    text.append(f"    return {term.value}, {term.valid or 'True'}, {flags}")
    scope = dict(SCOPE)
    exec(compile("\n".join(text), "<terascope numpy>", "exec"), scope)
    return tuple(w.inputs), scope["value"]
