"""One aggregation at work, batch by batch, against the same sums in plain Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from terascope.execute.grouping.aggregator import Aggregator
from terascope.execute.grouping.pending_tuples import PendingTuples
from terascope.execute.grouping.selections import Admission
from terascope.execute.rows.collect import plain
from terascope.functions.aggregates.folding import AND_INT, MAX_INT, MIN_INT, OR_INT, XOR_INT
from terascope.functions.slots import SUM_INT, SlotKind
from terascope.kernels.codegen.program import functions, program
from terascope.kernels.columns.batch import VectorBatch
from terascope.kernels.columns.task_dictionaries import TaskDictionaries
from terascope.kernels.merge.finish import columns as finished_columns
from terascope.physical.low_plan import LowAggregate, Slot
from terascope.plan.expr import Col, Expr
from terascope.types import Type

NUMBER, OTHER, KEY = (Col(name, Type.LLONG) for name in ("number", "other", "key"))
KINDS: dict[str, SlotKind] = {
    "sum": SUM_INT,
    "min": MIN_INT,
    "max": MAX_INT,
    "and": AND_INT,
    "or": OR_INT,
    "xor": XOR_INT,
}


def query(*kinds: str, epoch: Expr | None = None) -> LowAggregate:
    keys = (("key", KEY),) if epoch is None else (("tb", epoch), ("key", KEY))
    slots = [Slot(f"{kind}_number", KINDS[kind], NUMBER, Type.LLONG) for kind in kinds]
    slots.append(Slot("other", SUM_INT, OTHER, Type.LLONG))
    return LowAggregate("q", (), (), (), keys, None if epoch is None else 0, tuple(slots))


def run(
    asked: LowAggregate, batches: Sequence[dict[str, list[int | None]]]
) -> dict[int, list[int]]:
    """The groups of some batches, each taken by itself."""
    made = program((), asked.outputs)
    _, derive = functions(made, compiled=False)
    dictionaries = TaskDictionaries()
    chosen = Admission(0, (0,) * len(asked.slots))
    gathering, aggregator = PendingTuples([(chosen, asked)]), Aggregator(asked, dictionaries, True)
    for given in batches:
        columns = pa.RecordBatch.from_pydict({n: pa.array(v, pa.int64()) for n, v in given.items()})
        batch = VectorBatch(columns, dictionaries, made, derive)
        gathering.add(batch, {0: np.arange(len(batch), dtype=np.int32)})
        aggregator.take(gathering.take(), chosen)
        aggregator.settle()
    (released,) = aggregator.release(None)
    fields = asked.groups
    rows = plain(finished_columns([released.block], fields, aggregator.key_dictionaries))
    return {row["key"]: list(row.values())[-len(asked.slots) :] for row in rows.to_pylist()}


@pytest.mark.parametrize("earlier", [0, 3], ids=["dense", "open"])
def test_a_slot_without_a_value_so_far_meets_a_batch_without_nulls(earlier: int) -> None:
    """The first batch is taken with an eye on NULLs, the last is not: it has none."""

    def batch(keys: range, number: int | None, other: int) -> dict[str, list[int | None]]:
        many = len(keys)
        time: list[int | None] = [5] * many
        return {"time": time, "key": [*keys], "number": [number] * many, "other": [other] * many}

    batches = [batch(range(30_000 * i, 30_000 * (i + 1)), 1, 1) for i in range(earlier)]
    batches += [batch(range(-1, 0), None, 7), batch(range(-1, 0), -3, 1)]
    asked = query(*KINDS, epoch=Col("time", Type.LLONG))
    assert run(asked, batches)[-1] == [-3, -3, -3, -3, -3, -3, 8]


@pytest.mark.parametrize("keys", [3, 50_000], ids=["few", "many"])
def test_every_kind_of_slot(keys: int) -> None:
    rng = np.random.default_rng(keys)
    number, key = rng.integers(-(2**40), 2**40, 200_000), rng.integers(0, keys, 200_000)
    batch = {"time": [5] * len(key), "key": key.tolist(), "number": number.tolist()}
    found = run(query(*KINDS, epoch=Col("time", Type.LLONG)), [batch | {"other": [1] * len(key)}])
    assert len(found) == len(np.unique(key))
    for one in np.unique(key)[:50].tolist():
        mine = number[key == one]
        folds = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
        expected = [mine.sum(), mine.min(), mine.max(), *(f.reduce(mine) for f in folds), len(mine)]
        assert found[one] == [int(value) for value in expected]
