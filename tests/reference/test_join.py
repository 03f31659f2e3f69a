from __future__ import annotations

from terascope.plan.expr import Expr
from terascope.plan.rel import Join, JoinKind, Named, Project
from terascope.reference.rows import Row
from terascope.types import Type
from tests.oracle.agreement import rows_of
from tests.oracle.build import call, col, ints, named, records, scan

A = ints("a", names="a_t a_x")
B = ints("b", names="b_t b_x")
C = ints("c", names="c_t c_x")
SAME_T = ((col("a_t"), col("b_t")),)
FILLS = named(a_t=col("b_t"), b_t=col("a_t"))

Table = list[tuple[int | None, int | None]]


def joined(
    kind: JoinKind,
    left: Table,
    right: Table,
    residual: Expr | None = None,
    fills: tuple[Named, ...] = (),
) -> list[Row]:
    rel = Join(A, B, kind, SAME_T, residual, fills)
    return rows_of(rel, {"a": records("a_t a_x", *left), "b": records("b_t b_x", *right)})


LEFT: Table = [(1, 10), (2, 20), (None, 30)]
RIGHT: Table = [(2, 200), (3, 300), (None, 400)]


def test_inner_join() -> None:
    assert joined("inner", LEFT, RIGHT) == [(2, 20, 2, 200)]


def test_left_join() -> None:
    assert joined("left", LEFT, RIGHT) == [
        (1, 10, None, None),
        (2, 20, 2, 200),
        (None, 30, None, None),
    ]


def test_right_join() -> None:
    assert joined("right", LEFT, RIGHT) == [
        (2, 20, 2, 200),
        (None, None, 3, 300),
        (None, None, None, 400),
    ]


def test_full_join() -> None:
    assert joined("full", LEFT, RIGHT) == [
        (1, 10, None, None),
        (2, 20, 2, 200),
        (None, 30, None, None),
        (None, None, 3, 300),
        (None, None, None, 400),
    ]


def test_semi_join_keeps_a_left_row_once() -> None:
    assert joined("semi", [(1, 1), (1, 1), (2, 2), (None, 3)], [(1, 0), (1, 9), (None, 0)]) == [
        (1, 1),
        (1, 1),
    ]


def test_duplicates_on_both_sides_multiply() -> None:
    assert joined("inner", [(1, 1), (1, 1), (1, 2)], [(1, 7), (1, 7)]) == [
        (1, 1, 1, 7),
        (1, 1, 1, 7),
        (1, 1, 1, 7),
        (1, 1, 1, 7),
        (1, 2, 1, 7),
        (1, 2, 1, 7),
    ]


def test_the_residual_is_part_of_the_match() -> None:
    # The only partner of (1, 10) fails it, so both are unmatched.
    larger = call("<", col("a_x"), col("b_x"))
    assert joined("full", [(1, 10), (2, 20)], [(1, 5), (2, 30), (2, 15)], larger) == [
        (1, 10, None, None),
        (2, 20, 2, 30),
        (None, None, 1, 5),
        (None, None, 2, 15),
    ]
    assert joined("semi", [(1, 10), (2, 20)], [(1, 5), (2, 30)], larger) == [(2, 20)]


def test_fills_give_the_key_of_the_present_side() -> None:
    assert joined("full", LEFT, RIGHT, fills=FILLS) == [
        (1, 10, 1, None),
        (2, 20, 2, 200),
        (3, None, 3, 300),
        (None, 30, None, None),
        (None, None, None, 400),
    ]


def test_a_null_of_a_present_side_is_not_filled() -> None:
    fills = named(b_x=col("a_x"))
    assert joined("left", [(1, 10), (2, 20)], [(1, None)], fills=fills) == [
        (1, 10, 1, None),
        (2, 20, None, 20),
    ]


def test_equalities_may_be_expressions() -> None:
    rel = Join(A, B, "inner", ((call("div", col("a_t"), 2), call("+", col("b_t"), 1)),))
    tables = {
        "a": records("a_t a_x", (-1, 1), (4, 2), (5, 3)),
        "b": records("b_t b_x", (1, 7), (-2, 8)),
    }
    assert rows_of(rel, tables) == [(-1, 1, -2, 8), (4, 2, 1, 7), (5, 3, 1, 7)]


def test_a_join_without_equalities_is_decided_by_the_residual() -> None:
    near = call("<=", call("-", col("b_t"), col("a_t")), 1)
    rel = Join(A, B, "full", (), near)
    tables = {"a": records("a_t a_x", (1, 0), (9, 0)), "b": records("b_t b_x", (2, 0), (11, 0))}
    assert rows_of(rel, tables) == [(1, 0, 2, 0), (9, 0, 2, 0), (None, None, 11, 0)]


def test_three_way_full_outer_join_with_fills() -> None:
    first = Join(A, B, "full", SAME_T, fills=FILLS)
    both = Join(
        first,
        C,
        "full",
        ((col("a_t"), col("c_t")),),
        fills=named(a_t=col("c_t"), b_t=col("c_t"), c_t=col("a_t")),
    )
    rel = Project(
        both,
        named(t=col("a_t"), u=col("b_t"), v=col("c_t"), x=col("a_x"), y=col("b_x"), z=col("c_x")),
    )
    tables = {
        "a": records("a_t a_x", (1, 10), (2, 20), (4, 40)),
        "b": records("b_t b_x", (2, 200), (3, 300), (4, 400)),
        "c": records("c_t c_x", (1, 1000), (3, 3000), (4, 4000), (5, 5000)),
    }
    assert rows_of(rel, tables) == [
        (1, 1, 1, 10, None, 1000),
        (2, 2, 2, 20, 200, None),
        (3, 3, 3, None, 300, 3000),
        (4, 4, 4, 40, 400, 4000),
        (5, 5, 5, None, None, 5000),
    ]


def test_keys_of_unlike_types_compare_as_equality_does() -> None:
    left = scan("a", i=Type.INT, s=Type.STRING)
    right = scan("b", f=Type.FLOAT, r=Type.BINARY)
    renamed = Project(right, named(f=col("f", Type.FLOAT), r=col("r", Type.BINARY)))
    rel = Join(
        left,
        renamed,
        "inner",
        ((col("i"), col("f", Type.FLOAT)), (col("s", Type.STRING), col("r", Type.BINARY))),
    )
    tables = {
        "a": records("ts i s", (0, 1, "é"), (0, 2, "x")),
        "b": records("ts f r", (0, 1.0, "é".encode()), (0, 2.0, b"y")),
    }
    assert [row[:2] for row in rows_of(rel, tables)] == [(1, "é")]
