"""Reconciled sets (P2 4.1): the readers of both sets are compatible with the answer, and no set
that is finer serves both.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from terascope.connectors.base import Column
from terascope.diagnostic import QueryError
from terascope.functions.base import Value
from terascope.partitioning.forms import all_determine
from terascope.partitioning.reconcile import reconcile
from terascope.partitioning.sets import PartitionSet, parse_set
from terascope.plan.evaluate import compile_expr
from terascope.types import Type, parse_ip

COLUMNS = [
    Column("time", Type.UINT), Column("x", Type.UINT), Column("y", Type.UINT),
    Column("n", Type.LLONG), Column("srcIP", Type.IP), Column("destIP", Type.IP),
    Column("srcPort", Type.UINT), Column("destPort", Type.UINT), Column("host", Type.STRING),
]  # fmt: skip

ANSWERS = [
    # plain attributes: the intersection
    ("srcIP, destIP", "srcIP, destIP, srcPort, destPort", "srcIP, destIP"),
    ("srcIP", "destIP", ""),
    ("host, srcPort", "srcPort", "srcPort"),
    # integer division
    ("time/60", "time/90", "time DIV 180"),
    ("time/60, srcIP, destIP", "time/90, srcIP & 0xFFF0", "srcIP & 0xFFF0, time DIV 180"),
    ("time/60", "(time/60)/2", "time DIV 120"),
    ("time/60", "time - time % 120", "time DIV 120 * 120"),
    ("time/7", "time/11", "time DIV 77"),
    # masks, prefixes and shifts
    ("srcIP", "srcIP & 0xFFF0", "srcIP & 0xFFF0"),
    ("srcIP & 0xFF00", "srcIP & 0x0FF0", "srcIP & 0xF00"),
    ("srcIP & 0xFF00", "srcIP & 0x00FF", ""),
    ("x & 0xFF0", "x & 0x0FF", "x & 0xF0"),
    ("x >> 4", "x / 64", "x DIV 64"),
    ("x >> 4", "x & 0xFF", "x & 0xF0"),
    ("prefix(srcIP, 24, 64)", "prefix(srcIP, 16, 128)", "prefix(srcIP, 16, 64)"),
    ("srcIP & 0xFFFFFF00", "prefix(srcIP, 16, 0)", "srcIP & 0xFFFF0000"),
    # modulus
    ("x % 6", "x % 4", "x % 2"),
    ("x % 6", "x % 35", ""),
    ("x % 12", "x / 4", "x / 4 % 3"),
    # the same, written in other ways
    ("x + y", "y + x, host", "y + x"),
    ("x * 2 + 5", "x", "x * 2 + 5"),
    ("(x + 3) / 5", "(x + 8) / 5", "(x + 8) DIV 5"),
    # functions of several attributes
    ("x + y", "x, y", "x + y"),
    ("x, y", "y, host", "y"),
    ("x / 10, y", "x + y, x", "x DIV 10"),
]  # fmt: skip


def set_of(text: str) -> PartitionSet:
    return parse_set(text, COLUMNS)


def texts(placement: Mapping[str, PartitionSet]) -> set[str]:
    return set(placement["s"].texts) if placement else set()


@pytest.mark.parametrize(("one", "other", "expected"), ANSWERS)
def test_answers(one: str, other: str, expected: str) -> None:
    wanted = set(set_of(expected).expressions) if expected else set()
    for a, b in ((one, other), (other, one)):
        found = reconcile({"s": set_of(a)}, {"s": set_of(b)})
        got = found["s"].expressions if found else ()
        assert all(all_determine(got, w) for w in wanted), texts(found)
        assert all(all_determine(wanted, g) for g in got), texts(found)


def test_sources_of_a_join() -> None:
    """What one side of a join is grouped by is asked of the other side in its own terms."""
    join = {"a": set_of("srcIP, srcPort"), "b": set_of("destIP, destPort")}
    found = reconcile(join, {"a": set_of("srcIP & 0xFFFFFF00, destIP")})
    assert {n: str(one) for n, one in found.items()} == {
        "a": "srcIP & 0xFFFFFF00", "b": "destIP & 0xFFFFFF00",
    }  # fmt: skip
    assert reconcile(join, {"a": set_of("destIP")}) == {}


def test_sources_that_nothing_ties_keep_their_sets() -> None:
    one, other = {"a": set_of("srcIP")}, {"b": set_of("destIP")}
    assert reconcile(one, other) == {**one, **other}


# ---- over generated expressions ------------------------------------------------------------------

NUMBERS = st.sampled_from([1, 2, 3, 4, 6, 7, 8, 10, 12, 16, 60, 90])


@st.composite
def expressions(draw: st.DrawFn, column: str = "x") -> str:
    """A digit, some bits, or another function of one attribute."""
    shape = draw(st.sampled_from(["{c}", "{c}/{n}", "{c} % {n}", "{c} & {m}", "{c} >> {k}",
                                  "({c} + {m})/{n}", "({c}/{n}) % {k1}", "({c} & {m}) / {n}",
                                  "{c} * {n} + {m}", "({c} / {n}) * {n}", "{c} - {c} % {n}",
                                  "({c} % {n}) / {k1}"]))  # fmt: skip
    return shape.format(
        c=column, n=draw(NUMBERS), m=draw(st.integers(1, 255)), k=draw(st.integers(0, 5)),
        k1=draw(st.integers(1, 5)) + 1,
    )  # fmt: skip


@st.composite
def sets(draw: st.DrawFn) -> PartitionSet:
    some = [
        draw(expressions(c)) for c in draw(st.lists(st.sampled_from("xy"), min_size=1, max_size=3))
    ]
    return set_of(", ".join(some)) if some else set_of("x")


def values_of(partitions: PartitionSet, row: Mapping[str, Value]) -> tuple[object, ...]:
    names = tuple(row)
    return tuple(compile_expr(e, names, {})(tuple(row.values())) for e in partitions.expressions)


@settings(max_examples=300, deadline=None)
@given(expressions(), expressions(), st.randoms(use_true_random=False))
def test_a_common_value_is_determined_by_both(one: str, other: str, rng: random.Random) -> None:
    """Tuples with equal values of either set have equal values of the reconciled one."""
    try:
        first, second = set_of(one), set_of(other)
    except QueryError:  # the same for all tuples, such as x % 1
        reject()
    found = reconcile({"s": first}, {"s": second})
    rows = [{"x": rng.randrange(2000), "y": rng.randrange(50)} for _ in range(120)]
    for given_set in (first, second):
        if not found:
            break
        seen: dict[object, object] = {}
        for row in rows:
            own = values_of(given_set, row)
            assert seen.setdefault(own, values_of(found["s"], row)) == values_of(found["s"], row)


@settings(max_examples=150, deadline=None)
@given(st.integers(2, 30), st.integers(2, 30), st.integers(0, 40), st.integers(0, 40))
def test_nothing_finer_serves_both_divisions(a: int, b: int, c: int, d: int) -> None:
    """Numbers that share a class of either set must share one: the closure is the finest."""
    found = reconcile({"s": set_of(f"(x + {c})/{a}")}, {"s": set_of(f"(x + {d})/{b}")})
    many = 2000
    closure = list(range(many))

    def top(i: int) -> int:
        while closure[i] != i:
            closure[i] = closure[closure[i]]
            i = closure[i]
        return i

    for x in range(1, many):
        if (x + c) // a == (x - 1 + c) // a or (x + d) // b == (x - 1 + d) // b:
            closure[top(x)] = top(x - 1)
    forced = len({top(x) for x in range(many)})
    if not found:
        assert forced == 1
        return
    classes = len({values_of(found["s"], {"x": x}) for x in range(many)})
    assert classes == forced


def test_masks_have_exactly_their_common_bits() -> None:
    rng = random.Random(5)
    for _ in range(60):
        m, n = rng.randrange(1, 1 << 16), rng.randrange(1, 1 << 16)
        found = reconcile({"s": set_of(f"x & {m}")}, {"s": set_of(f"x & {n}")})
        got = {values_of(found["s"], {"x": x}) for x in range(0, 1 << 16, 7)} if found else {()}
        want = {x & m & n for x in range(0, 1 << 16, 7)}
        assert len(got) == len(want)


def test_addresses_of_both_versions() -> None:
    found = reconcile(
        {"s": set_of("prefix(srcIP, 24, 64)")}, {"s": set_of("prefix(srcIP, 16, 96)")}
    )
    near = [parse_ip(t) for t in ("2001:db8::1", "2001:db8::2", "10.1.2.3", "10.1.9.9")]
    values = [values_of(found["s"], {"srcIP": ip}) for ip in near]
    assert values[0] == values[1]
    assert values[2] == values[3]
    assert values[0] != values[2]
