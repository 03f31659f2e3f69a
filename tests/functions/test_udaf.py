"""Users' aggregates as classes of initialize, iterate, merge and output, and their states."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from terascope.functions.base import AggregateFunction, FunctionMistake, ValueMistake
from terascope.functions.halves import halved
from terascope.functions.laws import law_outcomes
from terascope.functions.object_states import grouped, object_state_kind
from terascope.functions.packed_states import packed_object, unpacked_object
from terascope.functions.registry import Functions
from terascope.functions.scratchpads import loops
from terascope.functions.udaf import udaf
from terascope.functions.user import load_functions
from terascope.functions.vector_dictionary import coded
from terascope.sketches.base import StateColumn, packed_states
from terascope.types import Type
from tests.functions.travel import dumps

FILE = '''
from dataclasses import dataclass
import pyarrow.compute as pc
from terascope import Kernels, aggregate, udaf

@udaf(takes=("FLOAT",), returns="FLOAT", scratchpad=24)
class by_columns:
    """The harmonic mean of values and 1."""
    def initialize(self):
        return (0, 0.0)
    def iterate(self, state, values):
        inverse = pc.divide(1.0, pc.add(pc.abs(values), 1.0))
        return (state[0] + len(values), state[1] + pc.sum(inverse).as_py())
    def superaggregate(self, state, other):
        return (state[0] + other[0], state[1] + other[1])
    def output(self, state):
        return state[0] / state[1] if state[1] else None

@udaf(takes=("FLOAT",), returns="FLOAT", scratchpad=16)
class by_kernels:
    """The harmonic mean."""
    def kernels(self):
        def initialize(pad):
            pad[0] = 0.0
        def iterate(pad, x):
            pad[0] += 1.0
            pad[1] += 1.0 / (abs(x) + 1.0)
        def merge(pad, other):
            pad[0] += other[0]
            pad[1] += other[1]
        def output(pad):
            return pad[0] / pad[1] if pad[1] else None
        def flushme(pad):
            return pad[0] >= 3
        return Kernels(initialize, iterate, output, merge, flushme)

@dataclass
class Seen:
    texts: list

@udaf(takes=("TEXT",), returns="STRING", scratchpad=60)
class shortest:
    """The first of the shortest texts, in alphabetical order."""
    def initialize(self):
        return Seen([])
    def iterate(self, state, texts):
        return self.merge(state, Seen(list(map(str, texts.to_pylist()))))
    def merge(self, state, other):
        state.texts = sorted({*state.texts, *other.texts}, key=lambda t: (len(t), t))[:2]
        return state
    def output(self, state):
        return state.texts[0] if state.texts else None
    def flushme(self, state):
        return len(state.texts) > 1

@udaf(takes=("INT",), returns="INT")
class summed_bytes:
    """A sum with a packed form of its own."""
    def initialize(self): return [0]
    def iterate(self, state, values):
        state[0] += sum(values.to_pylist())
        return state
    def merge(self, state, other): return [state[0] + other[0]]
    def output(self, state): return state[0]
    def pack(self, state): return state[0].to_bytes(8, "little", signed=True)
    def unpack(self, packed): return [int.from_bytes(packed, "little", signed=True)]

@aggregate(takes=("INT",), returns="INT")
class total:
    """A sum in the old form."""
    def zero(self): return 0
    def reduce(self, state, x): return state + x
    def merge(self, left, right): return left + right
    def finish(self, state): return state
'''


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("functions") / "mine.py"
    file.write_text(FILE)
    return {f.name: f for f in load_functions(file)}


NAMES = ("by_columns", "by_kernels", "shortest", "summed_bytes", "total")


@pytest.mark.parametrize("name", NAMES)
def test_every_law_holds(mine: dict[str, Any], name: str) -> None:
    found = law_outcomes(mine[name])
    assert [(o.law, o.verdict, o.detail) for o in found if o.verdict != "ok"] == []


@pytest.mark.parametrize("name", NAMES)
def test_it_travels_to_workers_with_its_columns(mine: dict[str, Any], name: str) -> None:
    function = mine[name]
    type = Type.STRING if name == "shortest" else Type.INT
    kind = pickle.loads(dumps(function.state((type,), ())))
    assert kind == function.state((type,), ())
    assert isinstance(kind.low(), StateColumn)


def harmonic(values: np.ndarray[Any, Any]) -> float:
    return len(values) / float((1.0 / (values + 1)).sum())


@pytest.mark.parametrize("name", ["by_columns", "by_kernels"])
def test_many_groups_over_several_vectors(mine: dict[str, Any], name: str) -> None:
    function, random = mine[name], np.random.default_rng(5)
    numbers, values = random.integers(0, 40, 3000), random.integers(40, 1500, 3000)
    kind = function.state((Type.UINT,), ())
    low, high = kind.low(), kind.high()
    for at in range(0, 3000, 700):
        low.iterate(numbers[at : at + 700], [values[at : at + 700]])
        full = low.flushed()
        assert (full is not None) == (name == "by_kernels")
        if full is not None:
            high.merge(*full)
    assert low.flushed() is None
    every = np.arange(40)
    high.merge(every, low.pack(every))
    found = [function.finish_state(state) for state in high.pack(every).to_pylist()]
    assert found == pytest.approx([harmonic(values[numbers == n]) for n in every])
    high.drop(np.array([3]))
    assert function.finish_state(high.pack(np.array([3]))[0].as_py()) is None
    high.clear()
    assert function.finish_state(high.pack(np.array([0]))[0].as_py()) is None
    assert function.finish_state(None) is None


def test_kernels_are_compiled_once_for_the_same_code(mine: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "same.py"
    file.write_text(FILE)
    function = mine["by_kernels"]
    again: Any = next(f for f in load_functions(file) if f.name == "by_kernels")
    assert again.kernels.iterate is not function.kernels.iterate
    assert loops(again.kernels, 1, True)[0] is loops(function.kernels, 1, True)[0]
    assert loops(again.kernels, 1, False)[0] is not loops(function.kernels, 1, True)[0]


def test_a_state_larger_than_its_scratchpad_stops_the_run(mine: dict[str, Any]) -> None:
    function = mine["shortest"]
    column = function.state((Type.STRING,), ()).high()
    column.iterate(np.array([0]), [coded(pa.array(["x" * 80]))])
    with pytest.raises(ValueMistake, match=r"shortest: a state of .* than its scratchpad of 60"):
        column.pack(np.array([0]))


def test_code_that_raises_is_named() -> None:
    @udaf(takes=("INT",), returns="INT")
    class breaks:
        """Fails at 13."""

        def initialize(self) -> int:
            return 0

        def iterate(self, state: int, values: Any) -> int:
            if 13 in values.to_pylist():
                raise RuntimeError("unlucky")
            return state

        def merge(self, state: int, other: int) -> int:
            return state

        def output(self, state: int) -> int:
            return state

    function: Any = breaks
    column = function.state((Type.INT,), ()).low()
    column.iterate(np.array([0]), [np.array([12])])
    with pytest.raises(ValueMistake, match="function breaks: RuntimeError: unlucky"):
        column.iterate(np.array([0]), [np.array([13])])


def test_states_of_other_aggregates_and_damaged_ones_are_refused(mine: dict[str, Any]) -> None:
    total, other = mine["total"], mine["summed_bytes"]
    packed = packed_object(total, 7)
    assert unpacked_object(total, packed) == 7
    for name, wrong in (("total", packed[:-3]), ("summed_bytes", packed), ("by_kernels", packed)):
        column = mine[name].state((Type.INT,), ()).high()
        with pytest.raises(ValueError, match="state"):
            column.merge(np.array([0]), packed_states([wrong]))
    assert isinstance(other, AggregateFunction)


@pytest.mark.parametrize(
    "state",
    [0, -5, 2.5, (1, 2.0), (), None, [1, (2, "x")], {"a": {1, 2}}, 1 << 80, (True, 1), b"\0"],
)
def test_plain_states_are_packed_without_a_pickle(mine: dict[str, Any], state: Any) -> None:
    packed = packed_object(mine["total"], state)
    found = unpacked_object(mine["total"], packed)
    assert found == state
    assert type(found) is type(state)
    assert packed[3] != 1


def test_tuples_are_grouped_in_the_order_of_the_vector() -> None:
    random = np.random.default_rng(3)
    for states, count in ((7, 100), (5000, 40), (1, 3)):
        numbers = random.integers(0, states, count)
        order, present, edges = grouped(numbers, states)
        assert order.tolist() == np.argsort(numbers, kind="stable").tolist()
        assert present.tolist() == np.unique(numbers).tolist()
        for i, number in enumerate(present):
            assert set(numbers[order[edges[i] : edges[i + 1]]]) == {number}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("def initialize(self): return 0", "aggregate f has no method iterate"),
        ("def kernels(self): return 5", r"kernels\(\) gives a terascope.Kernels"),
    ],
)
def test_classes_that_are_no_aggregate(tmp_path: Path, lines: str, message: str) -> None:
    file = tmp_path / "wrong.py"
    head = "from terascope import udaf\n@udaf(takes=('INT',), returns='INT')\nclass f:\n    "
    file.write_text(head + lines)
    with pytest.raises(FunctionMistake, match=message):
        load_functions(file)


# ---- every registered aggregate ------------------------------------------------------------------

REGISTERED = sorted(set(Functions.builtin().aggregates.values()), key=lambda a: a.name)


@pytest.mark.parametrize("aggregate", REGISTERED, ids=lambda a: a.name)
def test_built_in_aggregates_keep_the_laws_in_columns(aggregate: AggregateFunction) -> None:
    assert [o for o in law_outcomes(aggregate) if o.verdict == "failed"] == []


def test_ordered_aggregates_keep_their_values_with_places() -> None:
    kinds = {a.name: object_state_kind(a, (Type.INT,), ()) for a in REGISTERED if a.arity == 1}
    assert str(kinds["first"]) == "ordered values(integer)"
    assert str(kinds["min"]) == "objects of min(INT)"


# ---- two halves ----------------------------------------------------------------------------------

HALVES = '''
from terascope import udaf

@udaf(takes=("INT",), returns="STRING")
class low_sum:
    """A sum as text; it leaves after five values."""
    def initialize(self): return (0, 0)
    def iterate(self, state, values): return (state[0] + len(values), state[1] + sum(values.to_pylist()))
    def output(self, state): return str(state[1]) if state[0] else None
    def flushme(self, state): return state[0] >= 5

@udaf(takes=("STRING",), returns="INT")
class high_sum:
    """The sum of such texts."""
    def initialize(self): return (0, 0)
    def iterate(self, state, texts): return (1, state[1] + sum(map(int, texts.to_pylist())))
    def merge(self, state, other): return (state[0] | other[0], state[1] + other[1])
    def output(self, state): return state[1] if state[0] else None
'''  # noqa: E501


def test_a_sub_and_a_super_aggregate_keep_the_laws(tmp_path: Path) -> None:
    file = tmp_path / "halves.py"
    file.write_text(HALVES)
    found: dict[str, Any] = {f.name: f for f in load_functions(file)}
    low, high = found["low_sum"], found["high_sum"]
    whole: Any = halved("whole", low, high, 0)
    assert low.state((Type.INT,), ()) is None  # it has no merge
    assert [o for o in law_outcomes(whole) if o.verdict != "ok"] == []
    functions = Functions.builtin()
    count, sum_ = functions.aggregate("count"), functions.aggregate("sum")
    assert count is not None
    assert sum_ is not None
    counted = halved("counted", count, sum_, 0)
    assert [o for o in law_outcomes(counted) if o.verdict == "failed"] == []
    limited: Any = halved("whole", low, high, 3)
    column = limited.state((Type.INT,), ()).low()
    column.iterate(np.zeros(1, np.int64), [np.array([12345])])
    with pytest.raises(ValueMistake, match="low_sum: a state of 5 bytes is larger than"):
        column.pack(np.zeros(1, np.int64))
