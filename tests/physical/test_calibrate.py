"""Calibration: every function has a call that can be measured, and gets a cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from terascope.functions.operators import operators
from terascope.functions.registry import Functions
from terascope.kernels.codegen.generated_modules import load_module
from terascope.machine_code import column, compile_for, output
from terascope.physical.statistics.calibrate import (
    ROWS,
    builtin_scalars,
    calibrate,
    column_of,
    constants,
    measure,
    samples,
    traffic,
)
from terascope.types import Type


def test_every_function_has_a_sample(tmp_path: Path) -> None:
    batch, given = traffic(), constants(tmp_path)
    for function in builtin_scalars():
        found = list(samples(function, given, batch))
        assert found, f"no call of {function.name} makes sense"
        payloads = [column_of(call).type is Type.BINARY for call in found]
        assert payloads in ([False], [True], [False, True])


def test_functions_are_measured_where_they_run() -> None:
    names = ["=", "str_match_start", "ip_version", "sqrt"]
    chosen = [Functions.builtin().scalars[name] for name in names]
    counted: list[tuple[int, int]] = []
    found = {m.name: m for m in calibrate(chosen, lambda done, of: counted.append((done, of)))}
    assert found["="].native
    assert found["str_match_start on payload"].native
    assert found["ip_version"].native
    assert not found["sqrt"].native
    assert all(m.ns > 0 for m in found.values())
    assert found["="].ns < found["sqrt"].ns
    assert counted == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("name", ["+", "not"])
def test_the_sample_batch_looks_like_traffic(name: str, tmp_path: Path) -> None:
    batch = traffic()
    assert batch.num_rows == ROWS
    (sample, *_) = samples(operators[name], constants(tmp_path), batch)
    assert measure(sample, batch).native


def test_one_text_serves_columns_of_two_types() -> None:
    """Kernels with the same statements are one module, whatever the columns are."""
    source = (
        "\n\n@kernel\ndef doubled(a, out):\n    for i in range(len(a)):\n        out[i] = a[i]\n"
    )
    module = load_module(source)
    for dtype in (np.bool_, np.int64):
        function = compile_for(module.doubled, column(dtype), output(np.int64))
        out = np.zeros(3, np.int64)
        function(np.ones(3, dtype), out)
        assert out.sum() == 3
