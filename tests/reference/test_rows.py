from __future__ import annotations

import pytest

from terascope.plan.rel import Field
from terascope.reference.rows import Rows
from terascope.types import Type
from tests.oracle.build import fields
from tests.oracle.compare import assert_same_rows, canonical_order

NAN = float("nan")
MIXED = fields(k=Type.INT, v=Type.FLOAT)


def test_hidden_columns_can_be_left_out() -> None:
    rows = Rows((Field("x", Type.INT), Field("#pos", Type.LLONG)), [(1, 7)])
    assert rows.visible() == Rows((Field("x", Type.INT),), [(1,)])


def test_canonical_order_takes_nulls_nan_and_mixed_types() -> None:
    values = [None, b"a", "b", "a", NAN, 2, 1.5, -1, 2**60 + 1, 2**60, True]
    ordered = [v for (v,) in canonical_order((v,) for v in values)]
    assert ordered[:4] == [-1, True, 1.5, 2]
    assert ordered[4:6] == [2**60, 2**60 + 1]
    assert ordered[6] != ordered[6]
    assert ordered[7:] == ["a", "b", b"a", None]
    backwards = [v for (v,) in canonical_order((v,) for v in reversed(values))]
    assert repr(backwards) == repr(ordered)


def test_equal_multisets_in_any_order_are_the_same() -> None:
    assert_same_rows([(1, 2.0), (1, 2.0), (None, NAN)], [(None, NAN), (1, 2.0), (1, 2.0)], MIXED)


def test_floats_of_another_engine_may_differ_by_rounding_only() -> None:
    assert_same_rows([(1, 0.1 + 0.2)], [(1, 0.3)], MIXED, rounding=True)
    with pytest.raises(AssertionError, match=r"missing: 1\n  \(1, 0.3\)"):
        assert_same_rows([(1, 0.3)], [(1, 0.3000001)], MIXED, rounding=True)


def test_floats_of_our_engines_may_not_differ_at_all() -> None:
    with pytest.raises(AssertionError, match=r"missing: 1\n  \(1, 0.30000000000000004\)"):
        assert_same_rows([(1, 0.1 + 0.2)], [(1, 0.3)], MIXED)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ([(1, 2.0)], []),
        ([], [(1, 2.0)]),
        ([(1, 2.0)], [(1, 2.0), (1, 2.0)]),
        ([(1, 2.0), (2, 3.0)], [(1, 3.0), (2, 2.0)]),
        ([(1, NAN)], [(1, 2.0)]),
        ([(1, None)], [(1, 0.0)]),
        ([(1, 2.0)], [(True, 2.0)]),
        ([(1, 2.0)], [(1, 2)]),
        ([(1, 2.0)], [(1,)]),
    ],
)
def test_any_other_difference_is_told(
    expected: list[tuple[object, ...]], actual: list[tuple[object, ...]]
) -> None:
    with pytest.raises(AssertionError):
        assert_same_rows(expected, actual, MIXED)


def test_integers_are_compared_exactly() -> None:
    with pytest.raises(AssertionError, match="not expected: 1"):
        assert_same_rows([(2**60,)], [(2**60 + 1,)], fields(k=Type.LLONG))
