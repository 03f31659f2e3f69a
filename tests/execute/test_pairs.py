"""Joins with conditions beside their equalities, against their meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.execute import relations as module
from terascope.execute.relations import ArrowRelations, join_operator
from terascope.execute.rows import pairs
from terascope.execute.rows.pairs import Band, band_of
from terascope.plan.build import call
from terascope.plan.expr import Col, Expr, Lit
from terascope.plan.horizon import Horizons
from terascope.plan.rel import Field, Join, JoinKind, Read
from terascope.types import INT_MAX, INT_MIN, Type

LEFT = tuple(Field(f"l.{n}", t) for n, t in (("k", Type.INT), ("s", Type.STRING), ("x", Type.INT)))
RIGHT = tuple(Field(f"r.{n}", t) for n, t in (("k", Type.INT), ("s", Type.STRING), ("y", Type.INT)))
KINDS: tuple[JoinKind, ...] = ("inner", "left", "right", "full", "semi")
X, Y = Col("l.x", Type.INT), Col("r.y", Type.INT)
TEXTS = [Col(f"{side}.s", Type.STRING) for side in "lr"]
IS_A = [call("=", text, Lit("a", Type.STRING)) for text in TEXTS]

Rows: TypeAlias = list[tuple[int | None, str | None, int | None]]


def number(value: int) -> Expr:
    return Lit(value, Type.INT)


def plus(one: Expr, by: int) -> Expr:
    return call("+", one, number(by))


CONDITIONS: dict[str, Callable[[], Expr]] = {
    "band": lambda: call("and", call(">=", Y, plus(X, -1)), call("<=", Y, plus(X, 2))),
    "above": lambda: call(">", call("-", Y, X), number(0)),
    "below": lambda: call("<", Y, plus(X, -1)),
    "empty": lambda: call("and", call(">", Y, plus(X, 3)), call("<", Y, plus(X, 1))),
    "texts": lambda: call("or", *IS_A),
    "either": lambda: call("or", call("<", Y, X), IS_A[0]),
    "band and text": lambda: call("and", call("<=", X, Y), call("not", IS_A[1])),
}
EQUALITIES: dict[str, tuple[tuple[Expr, Expr], ...]] = {
    "number": ((Col("l.k", Type.INT), Col("r.k", Type.INT)),),
    "number and text": ((Col("l.k", Type.INT), Col("r.k", Type.INT)), (TEXTS[0], TEXTS[1])),
    "nothing": (),
}
few = st.one_of(st.none(), st.integers(-2, 4))
rows_of_a_side = st.lists(st.tuples(few, st.sampled_from([None, "a", "b"]), few), max_size=12)


def batch(fields: tuple[Field, ...], rows: Rows) -> pa.RecordBatch:
    types = (pa.int64(), pa.string(), pa.int64())
    arrays = [pa.array([row[i] for row in rows], t) for i, t in enumerate(types)]
    return pa.RecordBatch.from_arrays(arrays, [f.name for f in fields])


def join_of(kind: JoinKind, equal: str, condition: str) -> Join:
    sides = Read("l", LEFT), Read("r", RIGHT)
    return Join(*sides, kind, EQUALITIES[equal], CONDITIONS[condition]())


def both_answers(join: Join, left: Rows, right: Rows) -> list[list[str]]:
    """The rows of a join by the kernels and by the reference interpreter, sorted."""
    given_ = [batch(LEFT, left), batch(RIGHT, right)]
    operator = join_operator(join, {})
    assert operator is not None
    kernels = module.tuples_of(operator(given_))
    relations = ArrowRelations({}, {}, Horizons(lambda _: {}, {}, {}))
    meant = module.tuples_of(relations._by_reference(join, given_))
    return [sorted(map(repr, one)) for one in (kernels, meant)]


@settings(max_examples=400)
@given(
    kind=st.sampled_from(KINDS),
    equal=st.sampled_from(sorted(EQUALITIES)),
    condition=st.sampled_from(sorted(CONDITIONS)),
    left=rows_of_a_side,
    right=rows_of_a_side,
)
def test_the_kernels_join_as_the_reference_does(
    kind: JoinKind, equal: str, condition: str, left: Rows, right: Rows
) -> None:
    kernels, meant = both_answers(join_of(kind, equal, condition), left, right)
    assert kernels == meant


@pytest.mark.parametrize("kind", KINDS)
def test_some_pairs_at_a_time(kind: JoinKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "PAIRS_AT_ONCE", 5)
    left: Rows = [(i % 2, "ab"[i % 2], i) for i in range(9)]
    right: Rows = [(i % 3, "b", 7 - i) for i in range(8)]
    for condition in CONDITIONS:
        kernels, meant = both_answers(join_of(kind, "number", condition), left, right)
        assert kernels == meant


def test_the_ends_of_64_bits() -> None:
    """Neither limits nor values overflow; no pair is lost, and none is made up."""
    low = call(">=", call("-", Y, number(3)), X)  # y - x >= 3
    join = Join(Read("l", LEFT), Read("r", RIGHT), "left", EQUALITIES["nothing"], low)
    assert band_of(join) == Band("l.x", "r.y", 3, None)
    left: Rows = [(1, "a", x) for x in (INT_MIN, INT_MIN + 1, -1, 0, INT_MAX - 3, INT_MAX)]
    right: Rows = [(1, "a", y) for y in (INT_MIN + 3, 2, 3, INT_MAX)]
    kernels, meant = both_answers(join, left, right)
    assert kernels == meant


def test_limits_of_a_band() -> None:
    assert band_of(join_of("left", "nothing", "band")) == Band("l.x", "r.y", -1, 2)
    assert band_of(join_of("left", "nothing", "above")) == Band("l.x", "r.y", 0, None)
    assert band_of(join_of("left", "nothing", "below")) == Band("l.x", "r.y", None, -1)
    assert band_of(join_of("left", "nothing", "texts")) is None


def test_a_band_spares_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One flow of n packets: a band looks at the pairs within it, not at n * n."""
    looked_at: list[int] = []
    original = pairs.candidates

    def counted(*words: object) -> object:
        for places in original(*words):  # type: ignore[arg-type]
            looked_at.append(len(places[0]))
            yield places

    monkeypatch.setattr(pairs, "candidates", counted)
    rows: Rows = [(1, "a", i) for i in range(3000)]
    join = join_of("inner", "number", "band")
    operator = join_operator(join, {})
    assert operator is not None
    made = operator([batch(LEFT, rows), batch(RIGHT, rows)])
    assert sum(looked_at) == made.num_rows == 4 * 3000 - 1 - 3
