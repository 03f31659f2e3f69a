"""Type rules, written as what each argument must be.

In: argument types. Out: the result type, or a TypeMistake that names the function, the argument and
what it takes, in the words of the language. `builtin` makes a scalar function of such a rule and a
plain Python function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from terascope.functions.base import Scalar, TypeMistake, TypeRule, Value
from terascope.functions.values import as_text
from terascope.types import Type, unify


@dataclass(frozen=True)
class Want:
    """A requirement on an argument. A bare NULL always meets it."""

    words: str
    accepts: Callable[[Type], bool]

    def takes(self, type_: Type) -> bool:
        return type_ is Type.NULL or self.accepts(type_)


NUMBER = Want("a number", lambda t: t.is_numeric)
INTEGER = Want("an integer", lambda t: t.is_integer)
TEXT = Want("a text", lambda t: t.is_text)
ADDRESS = Want("an IP address", lambda t: t.is_address)
BOOLEAN = Want("a BOOL", lambda t: t is Type.BOOL)
CONDITION = Want("a BOOL or an integer", lambda t: t is Type.BOOL or t.is_integer)
ANYTHING = Want("any value", lambda t: True)

ORDINALS = ("first", "second", "third", "fourth", "fifth")


def expect(name: str, args: Sequence[Type], *wants: Want) -> tuple[Type, ...]:
    """The arguments, when they are exactly what is wanted."""
    if len(args) != len(wants):
        raise TypeMistake(f"{name} takes {_count(len(wants))}, not {len(args)}")
    for position, (type_, want) in enumerate(zip(args, wants, strict=True)):
        if not want.takes(type_):
            raise TypeMistake(
                f"{name} takes {want.words}{_place(position, args)}, not {_hint(type_, want)}"
            )
    return tuple(args)


def signature(
    name: str,
    *wants: Want,
    returns: Type | Callable[[tuple[Type, ...]], Type],
    optional: int = 0,
    repeated: bool = False,
) -> TypeRule:
    """The rule of a function that wants these arguments; the last `optional` may be left out, the
    last one may come again and again when `repeated`.
    """

    def rule(args: tuple[Type, ...]) -> Type:
        expected = wants
        if repeated and len(args) > len(wants):
            expected = wants + (wants[-1],) * (len(args) - len(wants))
        elif len(wants) - optional <= len(args) < len(wants):
            expected = wants[: len(args)]
        elif repeated and len(args) < len(wants):
            raise TypeMistake(f"{name} takes {_count(len(wants))} or more, not {len(args)}")
        expect(name, args, *expected)
        return returns if isinstance(returns, Type) else returns(args)

    return rule


def builtin(
    *wants: Want,
    returns: Type | Callable[[tuple[Type, ...]], Type],
    optional: int = 0,
    repeated: bool = False,
    written: str = "",
    **properties: Any,
) -> Callable[[Callable[..., Value]], Scalar]:
    """Make a Python function a scalar of GSQL: of the function's name, without a final `_`. The
    properties are those of a `Scalar`; `written` is the name in messages, if it is another one.
    """

    def declared(function: Callable[..., Value]) -> Scalar:
        name = function.__name__.removesuffix("_")
        # Where pickle finds the function: its module has the scalar under its name.
        function.__qualname__ = f"{function.__name__}.evaluate"
        rule = signature(
            written or name, *wants, returns=returns, optional=optional, repeated=repeated
        )
        return Scalar(name, rule, function, doc=function.__doc__ or "", **properties)

    return declared


def parses(parse: Callable[[str], object]) -> Callable[[Sequence[Value]], None]:
    """The check of a function whose second argument, if it is a constant, must be parsed."""

    def check(constants: Sequence[Value]) -> None:
        if constants[1] is not None:
            parse(as_text(constants[1]))

    return check


def unified(name: str, args: Sequence[Type]) -> Type:
    """The one type that holds every argument."""

    def both(left: Type, right: Type) -> Type:
        result = unify(left, right)
        if result is None:
            raise TypeMistake(f"{name} cannot choose between {left.label} and {right.label}")
        return result

    return reduce(both, args)


def known(type_: Type, otherwise: Type) -> Type:
    """The type, or another when all there is is a bare NULL."""
    return otherwise if type_ is Type.NULL else type_


def signed(type_: Type) -> Type:
    """The type of a result that may be negative though its operands are not."""
    return {Type.UINT: Type.INT, Type.ULLONG: Type.LLONG}.get(type_, type_)


def _count(n: int) -> str:
    return "no argument" if n == 0 else "one argument" if n == 1 else f"{n} arguments"


def _place(position: int, args: Sequence[Type]) -> str:
    return f" as {ORDINALS[min(position, 4)]} argument" if len(args) > 1 else ""


def _hint(type_: Type, want: Want) -> str:
    if want is NUMBER and type_ is Type.BOOL:
        return "BOOL; write CAST(... AS INT)"
    if want is TEXT:
        return f"{type_.label}; write CAST(... AS STRING)"
    return type_.label
