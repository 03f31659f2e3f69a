from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from terascope.functions.base import (
    AggregateFunction,
    FunctionMistake,
    Scalar,
    TypeMistake,
    ValueMistake,
)
from terascope.functions.registry import Functions
from terascope.functions.user import aggregate, load_functions, scalar
from terascope.types import Type, parse_ip
from tests.functions.travel import dumps

FILE = '''
from __future__ import annotations
from dataclasses import dataclass
from terascope.functions.user import aggregate, scalar

LIMIT = 1000

@dataclass
class Bounds:
    low: int
    high: int

@scalar(takes=("INT",), returns="INT")
def clipped(x):
    """x, at most LIMIT"""
    return min(x, LIMIT)

@scalar(name="in_net", takes=("IP", "FLOAT"), returns="BOOL", cost_ns=50)
def anything(ip, share):
    return isinstance(share, float) and ip[0] == 4

@aggregate(name="Span_Of", takes=("INT",), returns="INT", running=True)
class SpanOf:
    """largest minus smallest value"""
    def initialize(self):
        return None
    def iterate(self, state, x):
        return Bounds(x, x) if state is None else Bounds(min(state.low, x), max(state.high, x))
    def superaggregate(self, left, right):
        if left is None or right is None:
            return left or right
        return Bounds(min(left.low, right.low), max(left.high, right.high))
    def output(self, state):
        return None if state is None else state.high - state.low
'''


@pytest.fixture
def functions(tmp_path: Path) -> dict[str, Scalar | AggregateFunction]:
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    return {f.name: f for f in load_functions(file)}


def test_a_file_of_functions(functions: dict[str, Scalar | AggregateFunction]) -> None:
    assert set(functions) == {"clipped", "in_net", "span_of"}
    clipped, in_net, span = functions["clipped"], functions["in_net"], functions["span_of"]
    assert isinstance(clipped, Scalar)
    assert isinstance(in_net, Scalar)
    assert isinstance(span, AggregateFunction)
    assert clipped(5000) == 1000
    assert clipped(None) is None
    assert clipped.doc == "x, at most LIMIT"
    assert in_net(parse_ip("10.0.0.1"), 3) is True
    assert in_net.cost_ns == 50
    assert in_net.type_rule((Type.IPV6, Type.INT)) is Type.BOOL
    assert (span.running, span.ordered, span.sampling, span.user_defined) == (
        True,
        False,
        "none",
        True,
    )
    state = span.reduce(span.reduce(span.zero(), 3), 10)
    assert span.finish(span.merge(state, span.zero())) == 7
    assert "mine" not in sys.modules
    more = Functions.builtin().extended(functions.values())
    assert more.aggregate("SPAN_OF") is span


def test_functions_travel_by_value(
    functions: dict[str, Scalar | AggregateFunction], tmp_path: Path
) -> None:
    """A process that has never seen the user's file can run them."""
    cargo = tmp_path / "cargo"
    cargo.write_bytes(dumps(tuple(functions.values())))
    (tmp_path / "mine.py").unlink()
    program = (
        "import pickle, pathlib\n"
        f"clipped, _, span = pickle.loads(pathlib.Path({str(cargo)!r}).read_bytes())\n"
        "state = span.reduce(span.reduce(span.zero(), 3), 10)\n"
        "assert pickle.loads(pickle.dumps(clipped(5000))) == 1000\n"
        "assert span.finish(state) == 7 and span.running and span.name == 'span_of'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_decorators_here() -> None:
    @scalar(takes=("TEXT", "NUMBER"), returns="STRING", strict=False, partial=True)
    def label(text: str | bytes | None, number: float | None) -> str:
        return f"{text!r}:{number}"

    assert label(None, 2) == "None:2"
    assert label.partial
    assert label.user_defined
    assert label.type_rule((Type.BINARY, Type.FLOAT)) is Type.STRING
    with pytest.raises(TypeMistake, match="label takes a text as first argument, not IP"):
        label.type_rule((Type.IP, Type.FLOAT))

    @aggregate(
        takes=("FLOAT",),
        returns="FLOAT",
        finish_parameters=1,
        ordered=True,
        sampling="keep",
        example_parameters=(2,),
    )
    class scaled_last:
        def zero(self) -> float:
            return 0.0

        def reduce(self, state: float, x: float) -> float:
            return x

        def merge(self, left: float, right: float) -> float:
            return right or left

        def finish(self, state: float, factor: int) -> float:
            return state * factor

    assert isinstance(scaled_last, AggregateFunction)
    assert scaled_last.finish(scaled_last.reduce(0.0, 3), 2) == 6.0
    assert isinstance(scaled_last.reduce(0.0, 3), float)
    travelled = pickle.loads(dumps(scaled_last))
    assert travelled.ordered
    assert travelled.finish(3.0, 2) == 6.0


def test_wrong_results_stop_the_run() -> None:
    @scalar(takes=("INT",), returns="INT")
    def half(x: int) -> float:
        return x / 2

    @scalar(takes=("INT",), returns="FLOAT")
    def inverse(x: int) -> float:
        return 1 / x

    @scalar(takes=("INT",), returns="FLOAT")
    def same(x: int) -> int:
        return x

    with pytest.raises(ValueMistake) as caught:
        half(3)
    assert str(caught.value) == "function half gave 1.5, which is not INT"
    with pytest.raises(ValueMistake) as caught:
        inverse(0)
    assert str(caught.value) == "function inverse: ZeroDivisionError: division by zero"
    assert isinstance(same(2), float)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x = 1\n", "defines no function; put @scalar, @aggregate or @udaf before one"),
        ("def f(:\n", ":1: SyntaxError"),
        ("\n\nimport no_such_module_here\n", ":3: ModuleNotFoundError"),
        ("import sys\nsys.exit(3)\n", ":2: SystemExit"),
        (
            "from terascope.functions.user import scalar\n"
            "@scalar(takes=('INTEGER',), returns='INT')\ndef f(x): return x\n",
            "function f: INTEGER is not a type",
        ),
        (
            "from terascope.functions.user import aggregate\n"
            "@aggregate(takes=('INT',), returns='INT')\nclass f:\n    def zero(self): return 0\n",
            "aggregate f has no method reduce",
        ),
        (
            "from terascope.functions.user import scalar\n"
            "@scalar(name='a b', takes=(), returns='INT')\ndef f(): return 1\n",
            "'a b' cannot be the name of a function",
        ),
    ],
)
def test_bad_files_get_one_clear_line(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(content)
    with pytest.raises(FunctionMistake) as caught:
        load_functions(file)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)
    assert not [name for name in sys.modules if name.startswith("terascope_functions_")]


def test_the_line_of_a_mistake_in_a_file_named_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("from terascope import udaf\n\nudaf(words=3)\n")
    with pytest.raises(FunctionMistake, match=r"^mine\.py:3: TypeError: udaf\(\)"):
        load_functions(Path("mine.py"))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FunctionMistake, match="no such file"):
        load_functions(tmp_path / "absent.py")
    with pytest.raises(FunctionMistake, match="is not a Python file"):
        load_functions(tmp_path / "notes.txt")
