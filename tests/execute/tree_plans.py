"""Tasks of the low level over tuples given as plain values, and the same groups by the book.

In: columns of tuples, and a LowPlan. Out: what a task makes of them, merged where it gave partials,
and what plain Python makes of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.base import Column
from terascope.connectors.registry import parse_interface
from terascope.execute.task import Groups, LowTask, TaskCounters, Tuples
from terascope.functions.slots import COUNT, COUNT_OF, SUM_INT, SlotKind
from terascope.kernels.merge.groups import MergedGroups
from terascope.physical.low_plan import LowAggregate, LowPlan, Slot, TableChoice, TableKind, Where
from terascope.physical.splits import EVERYTHING
from terascope.plan.expr import Col, Expr, Lit
from terascope.types import Type
from tests.kernels.some_groups import Key, Values, combined, partials_of
from tests.oracle.build import call

Columns: TypeAlias = Mapping[str, Sequence[Any]]
Found: TypeAlias = dict[str, dict[Key, Values]]

KEYS = ("a", "b", "c", "d")
COLUMNS = (
    Column("tb", Type.LLONG),
    *(Column(name, Type.LLONG) for name in KEYS),
    Column("n", Type.LLONG),
    Column("x", Type.FLOAT),
)
EPOCH = Col("tb", Type.LLONG)


def col(name: str) -> Col:
    return Col(name, Type.FLOAT if name == "x" else Type.LLONG)


def keys_of(names: str) -> tuple[tuple[str, Expr], ...]:
    return (("tb", EPOCH), *((name, col(name)) for name in names))


def slot(kind: SlotKind, name: str | None = None, where: Where | None = None) -> Slot:
    type = Type.FLOAT if kind.is_float else Type.LLONG
    return Slot(f"{kind}_{name}", kind, None if name is None else col(name), type, where)


PREDICATES: tuple[Expr, ...] = (
    call("<", col("n"), Lit(3, Type.LLONG)),
    call("=", col("a"), Lit(1, Type.LLONG)),
    call(">", col("b"), Lit(0, Type.LLONG)),
)
REST = call("!=", col("c"), Lit(2, Type.LLONG))
"""One that is no bit."""


WHERES = (Where((0,)), Where((1,), (REST,)))
CONDITIONAL = tuple(
    made for where in WHERES for made in (slot(COUNT, None, where), slot(SUM_INT, "n", where))
)


def node(
    name: str, keys: str, slots: Sequence[Slot], parent: str | None = None, **more: Any
) -> LowAggregate:
    made = LowAggregate(name, ("flows",), (), (), keys_of(keys), 0, tuple(slots), parent=parent)
    return replace(made, **more)


def plan_of(nodes: Sequence[LowAggregate], inner: Sequence[LowAggregate], **more: Any) -> LowPlan:
    return LowPlan(COLUMNS, PREDICATES, tuple(nodes), inner=tuple(inner), **more)


def random_tuples(count: int, keys: int, epochs: int) -> dict[str, list[Any]]:
    rng = np.random.default_rng(count + keys)
    return {
        "tb": np.sort(rng.integers(0, epochs, count)).tolist(),
        **{key: rng.integers(0, keys, count).tolist() for key in KEYS},
        "n": rng.integers(0, 9, count).tolist(),
        "x": rng.integers(0, 9, count).astype(float).tolist(),
    }


def conditional_plan(kind: TableKind) -> LowPlan:
    """A query takes the groups that saw one of its tuples: by one predicate, or by either."""
    table = TableChoice(kind, groups=7)
    inner = node("inner", "ab", CONDITIONAL, table=table, anyof=WHERES)
    one = node("one", "b", (slot(SUM_INT, "n"), slot(COUNT)), "inner", signature=(0,))
    either = node("either", "a", CONDITIONAL[:3], "inner", anyof=WHERES)
    last = node("last", "", (slot(COUNT),), "one", signature=(0,))
    return plan_of([one, either, last], [inner])


def written(columns: Columns, folder: Path, row_group: int = 1 << 20) -> Path:
    types = {column.name: pa.float64() if column.name == "x" else pa.int64() for column in COLUMNS}
    arrays = {name: pa.array(columns[name], type) for name, type in types.items()}
    path = folder / "tuples.parquet"
    pq.write_table(pa.table(arrays), path, row_group_size=row_group)
    return path


def run(plan: LowPlan, path: Path, split_bytes: int = 1 << 30) -> tuple[Found, TaskCounters]:
    """The groups of every aggregation, each once."""
    splits = parse_interface(f"flows=parquet:{path}").splits(split_bytes)
    task = LowTask(plan, dict.fromkeys(range(len(plan.queries)), EVERYTHING))
    found: Found = {query.name: {} for query in plan.queries}
    whole: set[tuple[str, Key]] = set()
    for ready in task.run(splits):
        assert not isinstance(ready, Tuples)
        if isinstance(ready, Groups):
            query = plan.queries[ready.query]
            assert isinstance(query, LowAggregate)
            blocks = MergedGroups(ready.dictionaries, iter([ready.block]))
            for key, values in partials_of([blocks], query.groups.shape):
                assert (query.name, key) not in whole, "said to be complete, and came again"
                if ready.complete:
                    assert key not in found[query.name]
                    whole.add((query.name, key))
                add(found[query.name], key, values, query.slots)
    return found, task.counters


def add(groups: dict[Key, Values], key: Key, values: Values, slots: Sequence[Slot]) -> None:
    """One more partial; an integer sum is as large as it is."""
    held = groups.get(key)
    if held is None:
        groups[key] = values
        return
    pairs = zip(slots, held, values, strict=True)
    groups[key] = tuple(
        b if a is None else a if b is None else combined(s.kind, a, b) for s, a, b in pairs
    )


# ---- by the book ---------------------------------------------------------------------------------


def expected(plan: LowPlan, columns: Columns) -> Found:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {
        query.name: grouped(query, plan.predicates, rows)
        for query in plan.queries
        if isinstance(query, LowAggregate)
    }


def grouped(
    query: LowAggregate, predicates: Sequence[Expr], rows: Sequence[Mapping[str, Any]]
) -> dict[Key, Values]:
    groups: dict[Key, Values] = {}
    own = Where(query.signature, query.rest)
    for row in rows:
        entered = meets(own, predicates, row)
        if query.anyof:
            entered = entered and any(meets(where, predicates, row) for where in query.anyof)
        if entered:
            key = tuple(row[name] for name, _ in query.keys)
            add(groups, key, tuple(taken(s, predicates, row) for s in query.slots), query.slots)
    return groups


def taken(slot: Slot, predicates: Sequence[Expr], row: Mapping[str, Any]) -> Any:
    """What one tuple is for a slot."""
    mine = slot.where is None or meets(slot.where, predicates, row)
    if slot.kind == COUNT:
        return int(mine)
    assert isinstance(slot.argument, Col)
    value = row[slot.argument.name] if mine else None
    return int(value is not None) if slot.kind == COUNT_OF else value


def meets(where: Where, predicates: Sequence[Expr], row: Mapping[str, Any]) -> bool:
    asked = (*(predicates[bit] for bit in where.signature), *where.rest)
    return all(is_true(predicate, row) for predicate in asked)


def is_true(predicate: Expr, row: Mapping[str, Any]) -> bool:
    meanings: dict[Expr, tuple[str, Any]] = {
        PREDICATES[0]: ("n", lambda n: n < 3),
        PREDICATES[1]: ("a", lambda a: a == 1),
        PREDICATES[2]: ("b", lambda b: b > 0),
        REST: ("c", lambda c: c != 2),
    }
    name, test = meanings[predicate]
    return row[name] is not None and bool(test(row[name]))
