"""Rows in windows, on Arrow: the same as the reference interpreter gives."""

from __future__ import annotations

import pyarrow as pa
import pytest

from terascope.execute.relations import in_windows, tuples_of
from terascope.plan.rel import WEND, WSTART, Field, Read, Slices, Sliding, Window, WindowSpec
from terascope.reference.window import window
from terascope.types import Type

SPECS = [Sliding(10, 3), Sliding(4, 4), Sliding(2, 5), Slices((3, 4, 2))]
TIMES = [0, 1, 1, None, 7, -5, 12, 12, 40, 3, 2**62]


def batch(**columns: list[int | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({n: pa.array(v, pa.int64()) for n, v in columns.items()})


def fields(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, Type.LLONG) for name in names)


@pytest.mark.parametrize("spec", SPECS, ids=repr)
@pytest.mark.parametrize("times", [TIMES, [None], []], ids=len)
def test_tuples(spec: WindowSpec, times: list[int | None]) -> None:
    rel = Window(Read("s", fields("t", "v")), spec, "t")
    rows = batch(t=times, v=list(range(len(times))))
    found = in_windows(rel, rows)
    assert tuple(found.schema.names) == rel.names
    assert sorted(tuples_of(found)) == sorted(window(rel, tuples_of(rows)))


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_elements(spec: WindowSpec) -> None:
    rel = Window(Read("s", fields(WSTART, "v", WEND)), spec, WEND, elements=True)
    rows = batch(wstart=[0, 3, 3, None, 8], v=[1, 2, 3, 4, 5], wend=[3, 5, 5, 6, None])
    found = in_windows(rel, rows)
    assert tuple(found.schema.names) == rel.names
    assert sorted(tuples_of(found)) == sorted(window(rel, tuples_of(rows)))
