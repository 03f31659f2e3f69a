"""The measured costs of scalar functions on this machine (the cost model of dissertation 3.4.1).

In: functions. Out: nanoseconds for a call, by function: in the low level's kernels where these have
the function, in plain Python otherwise. Text and addresses are computed once for each different
value, as the low level does, and each value occurs 16 times.
"""

from __future__ import annotations

import os
import platform
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from terascope.analysis.costs import payload_name
from terascope.connectors.base import arrow_type
from terascope.functions.base import Scalar, TypeMistake, Value, ValueMistake
from terascope.functions.registry import Functions
from terascope.kernels.codegen.expressions import unsupported
from terascope.kernels.codegen.program import functions as compiled_functions
from terascope.kernels.codegen.program import program
from terascope.kernels.codegen.statements import is_coded
from terascope.kernels.columns.batch import VectorBatch
from terascope.kernels.columns.payload_tests import is_payload_test
from terascope.kernels.columns.task_dictionaries import TaskDictionaries
from terascope.plan.build import applied
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Call, Col, Lit
from terascope.types import BIAS, Type, parse_ip
from terascope.version import VERSION

RUNS: Final = 5
ROWS: Final = 1 << 14
PYTHON_ROWS: Final = 500
NEVER_LESS_NS: Final = 0.1
REPEATS: Final = 16
"""The occurrences of each text or address; the low level computes once for each value."""
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

Counted = Callable[[int, int], None]
"""The number of functions done, and the number of all."""


@dataclass(frozen=True)
class FunctionCost:
    """The cost of one function on one kind of argument."""

    function: Scalar
    on_payload: bool
    ns: float
    native: bool
    """Whether it was measured in the kernels, and not in plain Python."""

    @property
    def name(self) -> str:
        return payload_name(self.function.name) if self.on_payload else self.function.name


def calibrate(
    functions: Iterable[Scalar] | None = None, counted: Counted | None = None
) -> list[FunctionCost]:
    """Measure the given functions, or all built-in functions."""
    chosen = builtin_scalars() if functions is None else list(functions)
    batch = traffic()
    found: list[FunctionCost] = []
    with tempfile.TemporaryDirectory(prefix="terascope-calibrate-") as folder:
        given = constants(Path(folder))
        for number, function in enumerate(chosen, 1):
            found += [measure(call, batch) for call in samples(function, given, batch)]
            if counted is not None:
                counted(number, len(chosen))
    return found


def builtin_scalars() -> list[Scalar]:
    """Every function and operator once, whatever its names; those of states, which no low level
    computes, are left out.
    """
    found = dict.fromkeys(Functions.builtin().scalars.values())
    return [function for function in found if not function.of_states]


def measure(call: Call, batch: pa.RecordBatch) -> FunctionCost:
    native = unsupported(call) is None
    ns = native_ns(call, batch) if native else python_ns(call, batch)
    on_payload = column_of(call).type is Type.BINARY
    return FunctionCost(call.function, on_payload, max(ns, NEVER_LESS_NS), native)


def about_machine() -> Mapping[str, str]:
    """The origin of the costs, for readers of the file."""
    return {
        "terascope": VERSION,
        "machine": platform.machine(),
        "processor": processor(),
        "cores": str(os.cpu_count()),
    }


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


# ---- one call ------------------------------------------------------------------------------------


def native_ns(call: Call, batch: pa.RecordBatch) -> float:
    """The time in the kernels of the low level: the best of a few runs over a batch."""
    made, column = program((), [call]), column_of(call)
    _, derive = compiled_functions(made, compiled=True)
    rows = np.arange(batch.num_rows, dtype=np.int32)

    def run() -> float:
        vectors = VectorBatch(batch, TaskDictionaries(), made, derive)
        if is_coded(column.type):
            vectors.column_codes(column)  # the price of the column, not of the function
        start = time.perf_counter()
        evaluate(vectors, call, rows)
        return time.perf_counter() - start

    return min(run() for _ in range(RUNS)) / len(rows) * 1e9


def evaluate(
    vectors: VectorBatch, call: Call, rows: np.ndarray[tuple[int], np.dtype[np.int32]]
) -> None:
    if is_payload_test(call):
        vectors.payload_vector(call, rows)
    elif is_coded(call.type):
        vectors.key_codes(call)
    else:
        vectors.number(call, rows)


def python_ns(call: Call, batch: pa.RecordBatch) -> float:
    """The time in plain Python, tuple by tuple."""
    name = column_of(call).name
    function = compile_expr(call, (name,), {})
    values = [(v,) for v in batch.column(name).slice(0, PYTHON_ROWS).to_pylist()]

    def run() -> float:
        start = time.perf_counter()
        for value in values:
            function(value)
        return time.perf_counter() - start

    return min(run() for _ in range(RUNS)) / len(values) * 1e9


def column_of(call: Call) -> Col:
    return next(arg for arg in call.args if isinstance(arg, Col))


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
    """Constants for a call, the most usual first; `folder` gets the files that they name."""
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


def samples(function: Scalar, given: Sequence[Lit], some: pa.RecordBatch) -> Iterator[Call]:
    """At most one call over an ordinary column, and one over payloads."""
    for on_payload in (False, True):
        columns = [c for c in COLUMNS if (c.type is Type.BINARY) is on_payload]
        found = list(islice(calls(function, given, columns, some), MOST_TRIED))
        if found:
            yield min(found, key=lambda call: naturalness(call, some))


def calls(
    function: Scalar, given: Sequence[Lit], columns: Sequence[Col], some: pa.RecordBatch
) -> Iterator[Call]:
    """The calls with one column that the function accepts, the shortest first."""
    for count in range(1, MOST_ARGUMENTS + 1):
        for column, place in product(columns, range(count)):
            for others in product(given, repeat=count - 1):
                with suppress(TypeMistake):
                    call = applied(function, *others[:place], column, *others[place:])
                    if values(call, some) is not None:
                        yield call


def values(call: Call, some: pa.RecordBatch) -> list[Value] | None:
    """The values for a few tuples; None when the constants make no sense."""
    name = column_of(call).name
    evaluate = compile_expr(call, (name,), {})
    try:
        return [evaluate((v,)) for v in some.column(name).slice(0, FEW).to_pylist()]
    except (ValueMistake, TypeError, ValueError):
        return None


def naturalness(call: Call, some: pa.RecordBatch) -> tuple[bool, bool, int]:
    """The rank of a call: calls that the kernels have, and that give a value, come first."""
    found = values(call, some) or []
    return unsupported(call) is not None, all(v is None for v in found), len(call.args)
