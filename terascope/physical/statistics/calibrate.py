"""What scalar functions cost on this machine (dissertation 3.4.1's cost model, measured).

In: functions. Out: nanoseconds for a call, by function: in the low level's own kernels where they
know the function, in plain Python where they do not. Text and addresses are computed once for each
different value, as the low level does it, and each value comes 16 times.
"""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from terascope.analysis.costs import payload_name
from terascope.functions.base import Scalar
from terascope.functions.registry import Functions
from terascope.kernels.codegen.expressions import unsupported
from terascope.kernels.codegen.program import functions as compiled_functions
from terascope.kernels.codegen.program import program
from terascope.kernels.codegen.terms import is_coded
from terascope.kernels.columns.batch import TaskDictionaries, VectorBatch
from terascope.kernels.columns.payload_tests import is_payload_test
from terascope.physical.statistics.calibrate_samples import Sample, constants, samples, traffic
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Call
from terascope.version import VERSION

RUNS: Final = 5
PYTHON_ROWS: Final = 500
NEVER_LESS_NS: Final = 0.1

Counted = Callable[[int, int], None]
"""How many functions are done, and how many there are."""


@dataclass(frozen=True)
class FunctionCost:
    """The cost of one function on one kind of argument."""

    function: Scalar
    on_payload: bool
    ns: float
    native: bool
    """In the kernels; else in plain Python, because they do not know it."""

    @property
    def name(self) -> str:
        return payload_name(self.function.name) if self.on_payload else self.function.name


def calibrate(
    functions: Iterable[Scalar] | None = None, counted: Counted | None = None
) -> list[FunctionCost]:
    """Measure functions: all that are built in, unless some are given."""
    chosen = builtin_scalars() if functions is None else list(functions)
    batch = traffic()
    found: list[FunctionCost] = []
    with tempfile.TemporaryDirectory(prefix="terascope-calibrate-") as folder:
        given = constants(Path(folder))
        for number, function in enumerate(chosen, 1):
            found += [measure(sample, batch) for sample in samples(function, given, batch)]
            if counted is not None:
                counted(number, len(chosen))
    return found


def builtin_scalars() -> list[Scalar]:
    """Every function and operator once, whatever names it goes by."""
    return list(dict.fromkeys(Functions.builtin().scalars.values()))


def measure(sample: Sample, batch: pa.RecordBatch) -> FunctionCost:
    native = unsupported(sample.call) is None
    ns = native_ns(sample, batch) if native else python_ns(sample, batch)
    return FunctionCost(sample.function, sample.on_payload, max(ns, NEVER_LESS_NS), native)


def about_machine() -> Mapping[str, str]:
    """Where costs come from, for whoever finds the file."""
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


def native_ns(sample: Sample, batch: pa.RecordBatch) -> float:
    """In the kernels of the low level: the best of a few runs over a batch."""
    made = program((), [sample.call])
    _, derive = compiled_functions(made, compiled=True)
    rows = np.arange(batch.num_rows, dtype=np.int32)

    def run() -> float:
        vectors = VectorBatch(batch, TaskDictionaries(), made, derive)
        if is_coded(sample.column.type):
            vectors.column_codes(sample.column)  # the price of the column, not of the function
        start = time.perf_counter()
        evaluate(vectors, sample.call, rows)
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


def python_ns(sample: Sample, batch: pa.RecordBatch) -> float:
    """In plain Python, tuple by tuple."""
    function = compile_expr(sample.call, (sample.column.name,), {})
    values = [(v,) for v in batch.column(sample.column.name).slice(0, PYTHON_ROWS).to_pylist()]

    def run() -> float:
        start = time.perf_counter()
        for value in values:
            function(value)
        return time.perf_counter() - start

    return min(run() for _ in range(RUNS)) / len(values) * 1e9
