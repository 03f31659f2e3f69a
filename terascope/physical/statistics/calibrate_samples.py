"""A call of every scalar function, over columns that look like traffic.

In: a scalar function. Out: calls of it that make sense: one column and constants, once for the kind
of value it is made for and once for a packet's payload when it takes that too. They are found by
trying: the function's own type rule and its own meaning say what it takes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Final

import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.functions.base import Scalar, TypeMistake, Value, ValueMistake
from terascope.kernels.codegen.expressions import unsupported
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Call, Col, Expr, Lit
from terascope.types import BIAS, Type, parse_ip

ROWS: Final = 1 << 14
REPEATS: Final = 16
"""How often a text or an address occurs: the low level computes with each different one once."""
PAYLOAD_BYTES: Final = 400
MOST_ARGUMENTS: Final = 3
MOST_TRIED: Final = 100
FEW: Final = 3
COLUMNS: Final = tuple(
    Col(name, type)
    for name, type in (
        ("number", Type.INT),
        ("real", Type.FLOAT),
        ("truth", Type.BOOL),
        ("text", Type.STRING),
        ("address", Type.IP),
        ("payload", Type.BINARY),
        ("counter", Type.WIDE),
    )
)
PREFIXES: Final = "10.0.0.0/8|1\n10.1.0.0/16|2\n"
NAMES: Final = "1,one\n2,two\n"


@dataclass(frozen=True)
class Sample:
    function: Scalar
    call: Call
    on_payload: bool

    @property
    def column(self) -> Col:
        return next(arg for arg in self.call.args if isinstance(arg, Col))


def traffic(seed: int = 1) -> pa.RecordBatch:
    """A batch with a column of every kind."""
    rng = random.Random(seed)
    words = [f"/path/{rng.randrange(10**6)}?id={i}" for i in range(ROWS // REPEATS)]
    addresses = [parse_ip(f"10.{i >> 8 & 255}.{i & 255}.7") for i in range(ROWS // REPEATS)]
    contents = [rng.randbytes(PAYLOAD_BYTES) for _ in range(64)]
    columns: dict[str, list[Value]] = {
        "number": [rng.randrange(1, 65536) for _ in range(ROWS)],
        "real": [rng.random() for _ in range(ROWS)],
        "truth": [rng.random() < 0.5 for _ in range(ROWS)],
        "text": [rng.choice(words) for _ in range(ROWS)],
        "address": [rng.choice(addresses) for _ in range(ROWS)],
        "payload": [rng.choice(contents) for _ in range(ROWS)],
        "counter": [rng.randrange(1, 65536) - BIAS for _ in range(ROWS)],
    }
    types = {column.name: arrow_type(column.type) for column in COLUMNS}
    return pa.record_batch({n: pa.array(v, types[n]) for n, v in columns.items()})


def constants(folder: Path) -> tuple[Lit, ...]:
    """Constants a call may take, the most usual first; `folder` gets the files some look into."""
    prefixes, names = folder / "prefixes.txt", folder / "names.csv"
    prefixes.write_text(PREFIXES, encoding="utf-8")
    names.write_text(NAMES, encoding="utf-8")
    texts = ("GET", "10.0.0.0/8", str(prefixes), str(names), "12 3")
    return (
        Lit(7, Type.INT),
        *(Lit(text, Type.STRING) for text in texts),
        Lit(0.5, Type.FLOAT),
        Lit(True, Type.BOOL),
        Lit(parse_ip("10.0.0.1"), Type.IP),
    )


def samples(function: Scalar, given: Sequence[Lit], some: pa.RecordBatch) -> Iterator[Sample]:
    """At most one call over an ordinary column, and one over payloads."""
    for on_payload in (False, True):
        columns = [c for c in COLUMNS if (c.type is Type.BINARY) is on_payload]
        found = list(islice(calls(function, given, columns, some), MOST_TRIED))
        if found:
            yield Sample(function, min(found, key=naturalness(some)), on_payload)


def calls(
    function: Scalar, given: Sequence[Lit], columns: Sequence[Col], some: pa.RecordBatch
) -> Iterator[Call]:
    """Calls with one column that nobody complains about, the shortest first."""
    for count in range(1, MOST_ARGUMENTS + 1):
        for column, place in product(columns, range(count)):
            for others in product(given, repeat=count - 1):
                args: tuple[Expr, ...] = (*others[:place], column, *others[place:])
                call = typed(function, args)
                if call is not None and values(call, some) is not None:
                    yield call


def typed(function: Scalar, args: tuple[Expr, ...]) -> Call | None:
    try:
        return Call(function, args, function.type_rule(tuple(a.type for a in args)))
    except TypeMistake:
        return None


def values(call: Call, some: pa.RecordBatch) -> list[Value] | None:
    """The values for a few tuples; None when the constants make no sense."""
    (column,) = (a for a in call.args if isinstance(a, Col))
    evaluate = compile_expr(call, (column.name,), {})
    try:
        return [evaluate((v,)) for v in some.column(column.name).slice(0, FEW).to_pylist()]
    except (ValueMistake, TypeError, ValueError):
        return None


def naturalness(some: pa.RecordBatch) -> Callable[[Call], tuple[bool, bool, int]]:
    """The best call is one the kernels know, and one that has a value."""

    def rank(call: Call) -> tuple[bool, bool, int]:
        found = values(call, some) or []
        return unsupported(call) is not None, all(v is None for v in found), len(call.args)

    return rank
