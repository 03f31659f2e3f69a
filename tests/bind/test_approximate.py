"""Extractors, optional arguments, strategies and UDAF declarations, with functions of the tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from terascope.config import Config
from terascope.diagnostic import QueryError, Source
from terascope.explain.gsql import gsql
from terascope.functions.aggregates.folding import Collecting, Runs, items
from terascope.functions.base import Extractor, Value, ValueMistake
from terascope.functions.registry import Functions
from terascope.functions.signatures import ANYTHING, NUMBER, Want, builtin
from terascope.functions.udaf import udaf
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.plan.plan import Plan
from terascope.plan.rel import Aggregate, Project, walk
from terascope.plan.show import show_agg, show_expr
from terascope.syntax.format import format_source
from terascope.types import Type


class Sorted(Collecting):
    """A stand-in for a state of quantiles: the values as text."""

    name = "sorted_values"
    takes: ClassVar[tuple[Want, ...]] = (NUMBER,)
    returns = Type.BINARY
    state_parameters = 2
    default_parameters = (0.01, "")
    strategies: ClassVar[Mapping[str, str]] = {"lite": "a buffer", "heavy": "compressed"}
    doc = "all values"

    def zero(self, *parameters: Value) -> Runs:
        if parameters and not 0 < parameters[0] < 1:
            raise ValueMistake(f"sorted_values takes an eps between 0 and 1, not {parameters[0]}")
        return ()

    def finish(self, state: Runs, *parameters: Value) -> Value:
        return ",".join(map(str, sorted(items(state)))).encode() or None


class Heavy(Collecting):
    """A stand-in for heavy hitters."""

    name = "heaviest"
    arity = 2
    takes: ClassVar[tuple[Want, ...]] = (ANYTHING, NUMBER)
    returns = Type.STRING
    optional_arguments = (1,)
    state_parameters = 1
    finish_parameters = 1
    default_parameters = ("",)
    strategies: ClassVar[Mapping[str, str]] = {"hash+adaptive": "a table"}
    doc = "the largest"

    def finish(self, state: Runs, *parameters: Value) -> Value:
        return str(len(list(items(state)))) if state else None


def percent_check(constants: object) -> None:
    share = list(constants)[1]  # type: ignore[call-overload]
    if share is not None and not 0 <= share <= 100:
        raise ValueMistake(f"place_of takes a number between 0 and 100, not {share}")


@builtin(ANYTHING, NUMBER, returns=Type.LLONG, check_constants=percent_check)
def whole_place_of(state: bytes, share: float) -> int:
    """The same of integers."""
    return int(place_of(state, share))


@builtin(
    ANYTHING,
    NUMBER,
    returns=Type.FLOAT,
    check_constants=percent_check,
    of_integers="whole_place_of",
)
def place_of(state: bytes, share: float) -> float:
    """The value at a percentage."""
    values = state.split(b",")
    return float(values[min(len(values) - 1, int(share / 100 * len(values)))])


@udaf(takes=("INT",), returns="BINARY")
class low_largest:
    """The largest value, as text."""

    def initialize(self) -> None:
        return None

    def iterate(self, state, values):  # type: ignore[no-untyped-def]
        return max([*values.to_pylist(), *([] if state is None else [state])])

    def output(self, state):  # type: ignore[no-untyped-def]
        return None if state is None else str(state).encode()


@udaf(takes=("BINARY",), returns="INT")
class high_largest:
    """The largest of such values."""

    def initialize(self) -> None:
        return None

    def iterate(self, state, values):  # type: ignore[no-untyped-def]
        return max([*map(int, values.to_pylist()), *([] if state is None else [state])])

    def merge(self, state, other):  # type: ignore[no-untyped-def]
        return other if state is None else state if other is None else max(state, other)

    def output(self, state):  # type: ignore[no-untyped-def]
        return state


HALVED: list[Any] = [low_largest, high_largest]
EXTRACTORS = {
    "approx_place": Extractor("place_of", "sorted_values", extras=1),
    "approx_middle": Extractor("place_of", "sorted_values", constants=(50,)),
}
FUNCTIONS = replace(
    Functions.builtin().extended([Sorted(), Heavy(), place_of, whole_place_of, *HALVED]),
    extractors=EXTRACTORS,
)


def compiled(text: str, **settings: object) -> Compiled:
    bindings = Bindings(functions=FUNCTIONS, config=Config(**settings))  # type: ignore[arg-type]
    return compile_set(Source(text, "test.gsql"), bindings)


def aggregates(plan: Plan) -> list[str]:
    return [
        show_agg(call)
        for stream in plan
        for rel in walk(stream.rel)
        if isinstance(rel, Aggregate)
        for _, call in rel.aggs
    ]


def mistakes(text: str, **settings: object) -> list[tuple[str, str]]:
    with pytest.raises(QueryError) as caught:
        compiled(text, **settings)
    return [(d.code, d.message) for d in caught.value.diagnostics]


GROUPED = "FROM TCP GROUP BY time/60 AS tb"


def test_extractors_share_one_state_and_keep_the_type() -> None:
    text = f"SELECT tb, approx_place(len, 95), approx_place(len, 99), approx_middle(len) {GROUPED}"
    plan = compiled(text).plan
    assert aggregates(plan) == ["sorted_values(len, 0.01)"]
    (stream,) = plan
    assert [f.type for f in stream.rel.fields][1:] == [Type.UINT] * 3
    (project,) = [rel for rel in walk(stream.rel) if isinstance(rel, Project)][:1]
    shown = "CAST(whole_place_of(sorted_values(len, 0.01), 50) AS UINT)"
    assert show_expr(project.items[-1][1]) == shown


def test_an_extractor_hands_parameters_to_its_aggregate() -> None:
    text = f"SELECT tb, approx_place(len, 95, 0.05), approx_place(ttl*1.5, 5) AS f {GROUPED}"
    plan = compiled(text).plan
    assert aggregates(plan) == ["sorted_values(len, 0.05)", "sorted_values(ttl * 1.5, 0.01)"]
    assert [f.type for f in next(iter(plan)).rel.fields][1:] == [Type.UINT, Type.FLOAT]
    ((code, message),) = mistakes(f"SELECT tb, approx_place(len) {GROUPED}")
    assert (code, message) == ("wrong-arguments", "'approx_place' takes 2 arguments or more, not 1")


def test_arguments_that_are_left_out() -> None:
    calls = "heaviest(srcIP, 3), heaviest(srcIP, len, 3), heaviest(srcIP, 1, 3)"
    text = f"SELECT tb, {calls} {GROUPED}"
    assert aggregates(compiled(text).plan) == ["heaviest(srcIP, 1, 3)", "heaviest(srcIP, len, 3)"]
    ((code, message),) = mistakes(f"SELECT tb, heaviest(srcIP) {GROUPED}")
    assert (code, message) == ("wrong-arguments", "'heaviest' takes 2 to 3 arguments, not 1")


def test_strategies_of_a_call_a_query_and_a_setting() -> None:
    call = f"SELECT tb, approx_middle(len) WITH strategy 'heavy' AS m {GROUPED}"
    plain = f"SELECT tb, sorted_values(len) {GROUPED}"
    hint = f"DEFINE {{ query_name 'q'; strategy 'approx_middle=lite'; }} {plain}"
    heavy = ["sorted_values(len, 0.01) WITH strategy 'heavy'"]
    assert aggregates(compiled(call, strategies={"sorted_values": "lite"}).plan) == heavy
    lite = ["sorted_values(len, 0.01) WITH strategy 'lite'"]
    assert aggregates(compiled(hint, strategies={"sorted_values": "heavy"}).plan) == lite
    assert aggregates(compiled(plain, strategies={"sorted_values": "lite"}).plan) == lite
    assert aggregates(compiled(plain).plan) == ["sorted_values(len, 0.01)"]
    assert "WITH strategy 'heavy' AS m" in format_source(Source(call))


def test_two_strategies_are_two_states_and_print_as_gsql() -> None:
    one, other = "sorted_values(len) WITH strategy 'lite'", "sorted_values(len)"
    found = compiled(f"SELECT tb, {one} AS a, {other} AS b {GROUPED}")
    assert len(aggregates(found.plan)) == 2
    (stream,) = found.plan
    assert "sorted_values(len, 0.01) WITH strategy 'lite'" in gsql(stream.name, stream.rel)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("sorted_values(len) WITH strategy 'x'", "unknown-strategy", "'x' is no strategy of"),
        ("sum(len) WITH strategy 'x'", "unknown-strategy", "'sum' has no strategies"),
        ("abs(1) WITH strategy 'x'", "unknown-strategy", "is no aggregate"),
        ("sum(len) WITH tactics 'x'", "syntax", "WITH behind a call gives a strategy"),
        ("sorted_values(len, 2)", "bad-constant", "an eps between 0 and 1, not 2"),
        ("sorted_values(len, 0)", "bad-constant", "an eps between 0 and 1, not 0"),
        ("approx_place(len, 50, 2)", "bad-constant", "an eps between 0 and 1, not 2"),
        ("approx_place(len, 120)", "bad-constant", "between 0 and 100, not 120"),
        ("percentile(len, 120)", "bad-constant", "between 0 and 100, not 120"),
    ],
)
def test_mistakes_of_calls(text: str, code: str, words: str) -> None:
    ((found, message),) = mistakes(f"SELECT tb, {text} AS v {GROUPED}")
    assert found == code
    assert words in message


def test_mistakes_of_hints_and_settings() -> None:
    query = f"SELECT tb, sorted_values(len) {GROUPED}"
    hint = f"DEFINE {{ strategy 'nobody=lite, sorted_values=x'; }} {query}"
    assert [code for code, _ in mistakes(hint)] == ["bad-hint", "unknown-strategy"]
    ((code, message),) = mistakes(f"DEFINE {{ strategy 'lite'; }} {query}")
    assert (code, message) == ("bad-hint", "'lite' does not give an aggregate a strategy")
    ((code, _),) = mistakes(query, strategies={"sum": "x"})
    assert code == "unknown-strategy"


# ---- declarations --------------------------------------------------------------------------------

HALVES = """
int UDAF char(8) [low_largest, high_largest] largest(int);
vstring UDAF char(20) low_largest(int);
"""


def test_two_halves_are_one_aggregate() -> None:
    found = compiled(f"{HALVES} SELECT tb, largest(len) AS m {GROUPED}")
    assert aggregates(found.plan) == ["largest(len)"]
    (rel,) = [r for r in walk(next(iter(found.plan)).rel) if isinstance(r, Aggregate)]
    ((_, call),) = rel.aggs
    function = call.function
    assert call.type is Type.INT
    left, right = function.zero(), function.zero()
    for value in (5, 40):
        left = function.reduce(left, value)
    right = function.reduce(right, 17)
    assert function.finish(function.merge(left, right)) == 40
    assert function.scratchpad == 20


@pytest.mark.parametrize(
    ("declaration", "words"),
    [
        ("int UDAF char(8) [low_largest, high_largest] largest(vstring);", "takes an integer"),
        (
            "float UDAF char(8) [low_largest, high_largest] largest(int);",
            "are INT, not FLOAT",
        ),
        ("int UDAF char(8) median(vstring);", "takes a number"),
        ("int UDAF char(8) median(int, int, int);", "takes 1 argument"),
        ("int UDAF char(8) [high_largest, low_largest] x(vstring);", "takes a BINARY"),
    ],
)
def test_a_declaration_that_does_not_fit(declaration: str, words: str) -> None:
    ((code, message),) = mistakes(f"{declaration} SELECT tb, COUNT(*) {GROUPED}")
    assert code == "bad-declaration"
    assert words in message


def test_an_extractor_of_the_script_has_the_declared_type() -> None:
    declared = "int EXTR place_of sorted_values percentile(int; int);"
    plan = compiled(f"{declared} SELECT tb, percentile(len, 95) {GROUPED}").plan
    assert aggregates(plan) == ["sorted_values(len, 0.01)"]
    assert next(iter(plan)).rel.fields[1].type is Type.INT


def test_windows_and_streams_need_a_merge() -> None:
    window = "SELECT low_largest(len) AS m FROM TCP [RANGE 10 SLIDE 5]"
    ((code, message),) = mistakes(window)
    assert (code, message) == (
        "needs-merge", "windows are merged of parts, and 'low_largest' has no merge",
    )  # fmt: skip
    batch = compiled(f"QUERY q: SELECT tb, low_largest(len) AS m {GROUPED}")
    with pytest.raises(QueryError) as caught:
        batch.check_stream()
    (found,) = caught.value.diagnostics
    assert "query 'q' runs as a stream" in found.message
    assert "'low_largest' has no merge" in found.message
