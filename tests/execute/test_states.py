"""States that need more than a word, through every table, merge and file: the rows are those of the
reference, whatever table keeps the groups, however little memory there is.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.functions.base import ValueMistake
from terascope.functions.registry import Functions
from terascope.functions.user import aggregate
from terascope.kernels.merge import window_states
from terascope.kernels.merge.states import StateStore, merge_members
from terascope.kernels.merge.window_states import NOTHING, runs_of_windows
from terascope.physical.split.split_plan import split_plan
from terascope.pipeline import Bindings, compile_set
from terascope.reference.interpreter import evaluate
from terascope.sketches.base import StateKind, packed_states
from terascope.sketches.values import list_kind, numbers_of
from terascope.types import Type
from tests.agreement import assert_same_answers, delivered, local_answers
from tests.reference.connector_sources import ConnectorSources
from tests.settings import SOAK, config_with

SET = """
PROTOCOL S (t UINT increasing clock(s), k UINT, v UINT, w FLOAT, s STRING, ip IP);

QUERY numbers:
SELECT tb, k, COUNT(*) AS n, median(v) AS m, percentile(v, 90) AS p, stddev(v) AS d,
    variance(w) AS d2
FROM x.S GROUP BY t/10 AS tb, k;

QUERY texts:
SELECT tb, FIRST(s) AS f, LAST(ip) AS l, MIN(s) AS a, MAX(ip) AS b, SUM(w) AS total
FROM x.S GROUP BY t/10 AS tb;

QUERY moved: SELECT tb, k, moving_sum(v, 3) AS s, moving_avg(v, 2) AS a, time_avg(v, t, 10) AS m,
    moving_sum_exp(v, 2, 0.5) AS e, running_sum(v) AS r, and_aggr(v > 5) AS all_5,
    xor_aggr(v > 50) AS odd, MAX(v > 90) AS some_90
FROM x.S GROUP BY t/10 AS tb, k;
QUERY users: SELECT tb, k, spelled(s) AS s, spelled(ip) AS i, longest_gap(v, 3) AS g,
    nulls(v, s) AS n
FROM x.S GROUP BY t/10 AS tb, k;
QUERY users_windows: SELECT wend, spelled(v) AS s, longest_gap(v, 3) AS g, nulls(w, ip) AS n
FROM x.S [RANGE 20 SLIDE 10] GROUP BY wend;

QUERY living: SELECT tb, k, COUNT(*) AS n, SUM(w) AS w, FIRST(s) AS f, LAST(v) AS l,
    running_count(*) AS rc, running_sum(v) AS rs, running_sum_max(v) AS rm, moving_sum(v, 3) AS ms,
    moving_avg(v, 2) AS ma, moving_sum_exp(v, 2, 0.5) AS me, time_avg(v, t, 10) AS ta,
    running_array_aggr(v) AS ra, running_approx_count_distinct(s) AS rd, count_dups(s) AS d,
    median(v) AS m, COUNT(DISTINCT v) AS dv, MIN(ip) AS i, longest_gap(v, 3) AS g, nulls(v, s) AS z
FROM x.S GROUP BY t/10 AS tb, k CLOSING_WHEN COUNT(*) = 0 OR MAX(v > 97) = TRUE;
QUERY forever: SELECT tb, LAST(k) AS l, moving_sum(v, 2) AS s, steps(v) AS u, COUNT(*) AS n
FROM x.S GROUP BY t/10 AS tb CLOSING_WHEN SUM(v) > 1000;

QUERY some: SELECT k, tb, median(v) AS m, count_dups(s) AS c FROM x.S WHERE v > 40
GROUP BY k, t/10 AS tb;
QUERY hits: SELECT tb, heavy_hitters(s, v, 3) AS h, top_k(k, 2) AS top FROM x.S GROUP BY t/10 AS tb;
QUERY long: SELECT wend, k, median(v) AS m, LAST(s) AS l FROM x.S [RANGE 60 SLIDE 5]
GROUP BY wend, k;
QUERY wide: SELECT wend, stddev(v) AS d, MAX(s) AS a FROM x.S [RANGE 20 SLIDE 10] GROUP BY wend;
QUERY all_of_it: SELECT tb, k, median(v) AS m, entropy(s) AS e FROM x.S GROUP BY t/1000 AS tb, k;
QUERY above: SELECT tb, median(m) AS mm, FIRST(k) AS f FROM numbers GROUP BY tb;
QUERY shown: SELECT tb, k FROM x.S GROUP BY t/10 AS tb, k HAVING stddev(v) > 20 AND median(v) < 60;
"""


class Spelled:
    """The values in stream order, NULLs among them."""

    def zero(self) -> list[Any]:
        return []

    def reduce(self, state: list[Any], value: Any) -> list[Any]:
        return [*state, value]

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        return left + right

    def finish(self, state: list[Any]) -> str:
        return repr(state)


class LongestGap:
    """The largest step from a value to the next; the parameter where there is none."""

    def zero(self, least: int) -> tuple[int, int | None, int | None]:
        return least, None, None

    def reduce(self, state: Any, value: int) -> Any:
        return self.merge(state, (state[0], value, value))

    def merge(self, left: Any, right: Any) -> Any:
        if left[1] is None or right[1] is None:
            return right if left[1] is None else left
        return max(left[0], right[0], abs(right[1] - left[2])), left[1], right[2]

    def finish(self, state: Any) -> int:
        return int(state[0])


class Nulls:
    """How many arguments are NULL."""

    def zero(self) -> int:
        return 0

    def reduce(self, state: int, left: Any, right: Any) -> int:
        return state + (left is None) + (right is None)

    def merge(self, left: int, right: int) -> int:
        return left + right

    def finish(self, state: int) -> int:
        return state


class Steps:
    """The number of epochs that had a value, in an object of its own."""

    def zero(self) -> dict[str, int]:
        return {"epochs": 0, "now": 0}

    def reduce(self, state: dict[str, int], value: int) -> dict[str, int]:
        return state | {"now": 1}

    def merge(self, left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
        epochs = left["epochs"] + right["epochs"]
        return {"epochs": epochs, "now": max(left["now"], right["now"])}

    def finish(self, state: dict[str, int]) -> int:
        return state["epochs"] + state["now"]

    def next_epoch(self, state: dict[str, int]) -> dict[str, int]:
        return {"epochs": self.finish(state), "now": 0}


in_order = partial(aggregate, ordered=True)
FUNCTIONS = Functions.builtin().extended(
    [
        in_order(name="spelled", takes=("ANY",), returns="STRING", skips_null=False)(Spelled),
        in_order(name="longest_gap", takes=("INT",), returns="INT", state_parameters=1)(LongestGap),
        aggregate(name="steps", takes=("INT",), returns="INT", running=True)(Steps),
        aggregate(name="nulls", takes=("NUMBER", "ANY"), returns="INT", skips_null=False)(Nulls),
    ]
)
CONFIGS: dict[str, dict[str, Any]] = {
    "open": {},
    "numpy": {"compiled": False},
    "lru": {"table": "lru", "flush": "lazy"},
    "little": {"memory_bytes": 1 << 25},
}
if SOAK:  # each takes fifteen seconds to compile; the tables differ in which group they evict
    CONFIGS["direct"] = {"table": "direct_mapped", "flush": "eager"}
    CONFIGS["second"] = {"table": "second_chance", "flush": "lazy"}


def write_tuples(path: Path, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 300, rows))
    lines = ["t,k,v,w,s,ip"]
    for t in times.tolist():
        k, v = int(rng.zipf(1.5)) % 9, int(rng.integers(0, 100))
        text = "" if rng.random() < 0.1 else f"text-{rng.integers(0, 30)}"
        number = "" if rng.random() < 0.1 else str(v)
        lines.append(f"{t},{k},{number},{rng.normal() * 10.0 ** float(rng.integers(-9, 9))},{text},"
                     f"10.0.{k}.{rng.integers(0, 20)}")  # fmt: skip
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("name", CONFIGS)
def test_the_rows_are_those_of_the_reference(name: str, tmp_path: Path) -> None:
    write_tuples(tmp_path / "x.csv", 1500, 1)
    interfaces = {"x": Interface("x", "csv", str(tmp_path / "x.csv"))}
    bindings = Bindings(interfaces=interfaces, functions=FUNCTIONS)
    plan = compile_set(Source(SET, "states.gsql"), bindings).optimized
    assert not split_plan(plan).kept_high
    expected = delivered(plan, evaluate(plan, ConnectorSources(interfaces)))
    low = config_with(**CONFIGS[name])
    found = local_answers(plan, interfaces, 3, 2000, low, tmp_path / "parts")
    assert_same_answers(expected, found)


# ---- stores --------------------------------------------------------------------------------------


@pytest.fixture
def kind() -> StateKind:
    return list_kind(Type.INT)


def packed_lists(kind: StateKind, lists: list[list[int]]) -> list[bytes]:
    column = kind.low()
    for number, values in enumerate(lists):
        column.iterate(np.full(len(values), number), [np.array(values, np.int64)])
    return [bytes(one) for one in column.pack(np.arange(len(lists))).to_pylist()]


@pytest.mark.parametrize("seed", range(4))
def test_a_store_has_what_was_put_in(seed: int, kind: StateKind) -> None:
    rng = np.random.default_rng(seed)
    store, known = StateStore(kind), dict[int, bytes]()
    for _ in range(60):
        match rng.integers(0, 3):
            case 0 | 1:
                states = [rng.bytes(int(rng.integers(1, 50))) for _ in range(rng.integers(1, 30))]
                numbers = store.add(packed_states(states))
                known |= dict(zip(numbers.tolist(), states, strict=True))
            case 2 if known:
                gone = rng.choice(list(known), len(known) // 3, replace=False)
                store.drop(gone)
                for number in gone.tolist():
                    del known[number]
        wanted = rng.permutation(list(known))[:40].astype(np.int64)
        assert store.take(wanted).to_pylist() == [known[number] for number in wanted.tolist()]
    store.drop(np.array(list(known), np.int64))
    assert store.memory_bytes == 0


@pytest.mark.parametrize("few", [1, 8])
def test_windows_have_the_states_of_their_slices(
    few: int, kind: StateKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_states, "FEW_SLICES", few)
    rng = np.random.default_rng(few)
    for _ in range(40):
        slices = int(rng.integers(1, 80))
        has = rng.random(slices) < 0.8
        store, made = StateStore(kind), StateStore(kind)
        numbers = np.full(slices, NOTHING)
        states = packed_lists(kind, [[i] for i in np.flatnonzero(has).tolist()])
        numbers[has] = store.add(packed_states(states))
        firsts = rng.integers(0, slices, 30)
        ends = np.minimum(slices, firsts + rng.integers(1, 60, 30))
        kept = [i for i in range(30) if has[firsts[i] : ends[i]].any()]
        firsts, ends = firsts[kept], ends[kept]
        members, groups, _ = runs_of_windows(numbers, firsts, ends, store)
        for state, first, end in zip(
            made.take(merge_members(store, made, members, groups)).to_pylist(),
            firsts,
            ends,
            strict=True,
        ):
            assert sorted(numbers_of(state)) == [i for i in range(first, end) if has[i]]


def test_states_are_merged_in_lots(kind: StateKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terascope.kernels.merge.states.MERGED_BYTES", 40)
    store = StateStore(kind)
    members = store.add(packed_states(packed_lists(kind, [[i] for i in range(50)])))
    groups = np.repeat(np.arange(10), 5)
    merged = store.take(merge_members(store, store, members, groups)).to_pylist()
    assert [sorted(numbers_of(s)) for s in merged] == [
        [*range(5 * g, 5 * g + 5)] for g in range(10)
    ]


def test_the_maker_of_a_kind_travels(kind: StateKind) -> None:
    assert isinstance(kind.low, partial | type)


class NoValue(Nulls):
    """An aggregate whose value cannot be computed."""

    def finish(self, state: int) -> int:
        raise RuntimeError("no value")


@pytest.mark.parametrize("ordered", [False, True])
def test_a_value_that_fails_names_its_query(ordered: bool, tmp_path: Path) -> None:
    """The states of both queries are made; the value of one of them is not."""
    failing = aggregate(name="fails", takes=("NUMBER", "ANY"), returns="INT", ordered=ordered)
    write_tuples(tmp_path / "x.csv", 50, 1)
    interfaces = {"x": Interface("x", "csv", str(tmp_path / "x.csv"))}
    functions = Functions.builtin().extended([failing(NoValue)])
    text = f"""{SET[: SET.index("QUERY")]}
    QUERY fine: SELECT tb, COUNT(*) AS n FROM x.S GROUP BY t/10 AS tb;
    QUERY broken: SELECT tb, fails(v, s) AS x FROM x.S GROUP BY t/10 AS tb;"""
    bindings = Bindings(interfaces=interfaces, functions=functions)
    plan = compile_set(Source(text, "fails.gsql"), bindings).optimized
    with pytest.raises(ValueMistake, match="query broken: function fails: RuntimeError: no value"):
        local_answers(plan, interfaces, 2, 2000, config_with(), tmp_path / "parts")
