"""Functions of users, in Python.

In: a plain function, or a class with the four parts of an aggregate (dissertation 3.1.1, paper 1,
3.2). Out: a Scalar or an AggregateFunction, labelled, that engines ship to workers.

    @scalar(takes=("STRING",), returns="STRING")
    def domain(host):
        return host.rsplit(".", 2)[-2]

    @aggregate(takes=("FLOAT",), returns="FLOAT")
    class product:
        def zero(self): return 1.0
        def reduce(self, state, x): return state * x
        def merge(self, left, right): return left * right
        def finish(self, state): return state

Values are in held form (terascope.types): an IP is bytes, see format_ip and parse_ip there. The
dissertation's names initialize, iterate, superaggregate and output are taken for zero, reduce,
merge and finish. A result that is not of the declared type stops the run.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, Literal

from terascope.functions.base import (
    AggregateFunction,
    FunctionMistake,
    Sampling,
    Scalar,
    TypeMistake,
    TypeRule,
    Value,
    ValueMistake,
)
from terascope.functions.object_states import object_state, object_state_kind, object_value
from terascope.functions.signatures import (
    ADDRESS,
    ANYTHING,
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    Want,
    signature,
)
from terascope.functions.values import holds
from terascope.types import Type, type_names

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WANTS: Final = {"NUMBER": NUMBER, "TEXT": TEXT, "ANY": ANYTHING}
_PARTS: Final = {
    "zero": "initialize",
    "reduce": "iterate",
    "merge": "superaggregate",
    "finish": "output",
}


def scalar(
    *,
    name: str | None = None,
    takes: Sequence[str],
    returns: str,
    strict: bool = True,
    partial: bool = False,
    cost_ns: int = 1000,
    doc: str = "",
) -> Callable[[Callable[..., Value]], Scalar]:
    """Make a plain function a scalar of GSQL. `takes` names a type per argument: any GSQL type,
    NUMBER, TEXT or ANY. With strict=False the function is called with None for NULL, too.
    """

    def decorate(function: Callable[..., Value]) -> Scalar:
        known_as = checked_name(name or function.__name__)
        result = checked_type(known_as, returns)
        return Scalar(
            known_as.lower(),
            rule_of(known_as, takes, result),
            guarded(known_as, function, takes, result),
            strict=strict,
            cost_ns=cost_ns,
            partial=partial,
            user_defined=True,
            doc=doc or first_line(function.__doc__),
        )

    return decorate


def aggregate(
    *,
    name: str | None = None,
    takes: Sequence[str],
    returns: str,
    state_parameters: int = 0,
    finish_parameters: int = 0,
    kind: Literal["distributive", "algebraic", "holistic"] = "holistic",
    ordered: bool = False,
    running: bool = False,
    skips_null: bool = True,
    sampling: Sampling = "none",
    cheap: bool = False,
    example_parameters: Sequence[Value] = (),
    doc: str = "",
) -> Callable[[type], AggregateFunction]:
    """Make a class an aggregate of GSQL. Without labels it is taken to be expensive, and not to
    survive sampling.
    """

    def decorate(class_: type) -> AggregateFunction:
        known_as = checked_name(name or class_.__name__)
        result = checked_type(known_as, returns)
        rule = rule_of(known_as, takes, result)
        parts = class_()
        members: dict[str, Any] = {
            "name": known_as.lower(),
            "arity": len(takes),
            "state_parameters": state_parameters,
            "finish_parameters": finish_parameters,
            "kind": kind,
            "ordered": ordered,
            "running": running,
            "skips_null": skips_null,
            "sampling": sampling,
            "cheap": cheap,
            "user_defined": True,
            "finishes_with_all": True,
            "mergeable": any(hasattr(parts, each) for each in ("merge", _PARTS["merge"])),
            "state_classes": module_classes(class_),
            "example_parameters": tuple(example_parameters),
            "doc": doc or first_line(class_.__doc__),
            "__module__": class_.__module__,
            "type_rule": staticmethod(lambda args: rule(args[: len(takes)])),
            "zero": staticmethod(named(known_as, _part(known_as, parts, "zero"))),
            "reduce": staticmethod(
                named(known_as, _converted(_part(known_as, parts, "reduce"), takes))
            ),
            "merge": staticmethod(named(known_as, _merge(known_as, parts))),
            "state": object_state_kind,
            "finish_state": object_value,
            "opened": object_state,
            "finish": staticmethod(guarded(known_as, _part(known_as, parts, "finish"), (), result)),
        }
        if hasattr(parts, "next_epoch"):
            members["next_epoch"] = staticmethod(parts.next_epoch)
        made: type[AggregateFunction] = type(class_.__name__, (AggregateFunction,), members)
        return made()

    return decorate


def module_classes(class_: type) -> tuple[type, ...]:
    """The dataclasses of the file of an aggregate, of which its states may be made."""
    module = sys.modules.get(class_.__module__)
    found = [] if module is None else vars(module).values()
    return tuple(
        value
        for value in found
        if isinstance(value, type) and is_dataclass(value) and value.__module__ == class_.__module__
    )


def load_functions(path: Path) -> tuple[Scalar | AggregateFunction, ...]:
    """The functions that a user's Python file defines with the decorators above."""
    # The module leaves sys.modules again, so that its functions travel to workers by value: no
    # worker has the user's file.
    module_name = f"terascope_functions_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if path.suffix != ".py" or spec is None or spec.loader is None:
        raise FunctionMistake(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError:
        raise FunctionMistake(f"cannot read {path}: no such file") from None
    except (Exception, SystemExit) as mistake:
        place = f"{path}:{_line_of(mistake, path)}"
        raise FunctionMistake(f"{place}: {type(mistake).__name__}: {mistake}") from None
    finally:
        del sys.modules[module_name]
    found = {
        id(value): value
        for value in vars(module).values()
        if isinstance(value, Scalar | AggregateFunction) and value.user_defined
    }
    if not found:
        raise FunctionMistake(
            f"{path} defines no function; put @scalar, @aggregate or @udaf before one"
        )
    return tuple(found.values())


def rule_of(name: str, takes: Sequence[str], result: Type) -> TypeRule:
    return signature(name, *(_want(name, word) for word in takes), returns=result)


def _want(name: str, word: str) -> Want:
    if word.upper() in _WANTS:
        return _WANTS[word.upper()]
    type_ = checked_type(name, word)
    alike = (INTEGER, NUMBER, ADDRESS, BOOLEAN)
    own = Want(f"a {type_.label}", lambda t: t is type_)
    return next((want for want in alike if want.accepts(type_)), own)


def checked_type(name: str, word: str) -> Type:
    type_ = type_names.get(word.upper())
    if type_ is None:
        raise FunctionMistake(f"function {name}: {word} is not a type; types are INT, FLOAT, ...")
    return type_


def checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise FunctionMistake(f"'{name}' cannot be the name of a function; use letters and digits")
    return name


def _part(name: str, parts: object, part: str) -> Callable[..., Any]:
    found = getattr(parts, part, None) or getattr(parts, _PARTS[part], None)
    if not callable(found):
        raise FunctionMistake(f"aggregate {name} has no method {part}")
    function: Callable[..., Any] = found
    return function


def _merge(name: str, parts: object) -> Callable[..., Any]:
    """The method that merges; without one, a function that says so."""
    if hasattr(parts, "merge") or hasattr(parts, _PARTS["merge"]):
        return _part(name, parts, "merge")

    def refused(*_: Value) -> Any:
        raise ValueMistake(f"function {name} has no method merge")

    return refused


def _converted(function: Callable[..., Any], takes: Sequence[str]) -> Callable[..., Any]:
    """A function whose last arguments are FLOATs where it asked for FLOAT, even for integers."""
    floats = [i - len(takes) for i, word in enumerate(takes) if word.upper() == "FLOAT"]
    if not floats:
        return function

    def converted(*args: Value) -> Any:
        values = list(args)
        for i in floats:
            if values[i] is not None:
                values[i] = float(values[i])
        return function(*values)

    return converted


def named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose failures carry the name that queries call it by. `__wrapped__` is the
    function itself, for callers who name the failures of many calls at once.
    """

    @wraps(function)
    def told(*args: Value) -> Any:
        try:
            return function(*args)
        except (TypeMistake, ValueMistake):
            raise
        except Exception as mistake:
            raise ValueMistake(f"function {name}: {type(mistake).__name__}: {mistake}") from mistake

    return told


def guarded(
    name: str, function: Callable[..., Value], takes: Sequence[str], result: Type
) -> Callable[..., Value]:
    """A function whose results are looked at: a wrong one is reported, not passed on."""
    called = named(name, _converted(function, takes))

    def looked_at(*args: Value) -> Value:
        value = called(*args)
        if result is Type.FLOAT and type(value) is int:
            return float(value)
        if not holds(value, result):
            raise ValueMistake(f"function {name} gave {value!r}, which is not {result.value}")
        return value

    return looked_at


def first_line(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0]


def _line_of(mistake: BaseException, path: Path) -> int:
    """The line of the user's file where the mistake happened, or where it was called from."""
    if isinstance(mistake, SyntaxError) and mistake.lineno is not None:
        return mistake.lineno
    frames = traceback.extract_tb(mistake.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path.absolute()]
    return (lines and lines[-1]) or 1
