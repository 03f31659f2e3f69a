"""UDAF declarations: names of aggregates, perhaps with a sub- and a super-aggregate (paper 1, 3.2).

In: `int UDAF char(36) [low_x, high_x] x(int)` of the script, in any order. Out: the aggregate x,
made of the registered aggregates low_x and high_x; or, where x is registered itself or built in,
that one, checked against the declaration: number and types of arguments, type of the value, size of
the scratchpad. The size declared for low_x is that of a built-in state next to the source, if the
aggregate has states of a fixed size there.
"""

from __future__ import annotations

import re
from typing import Final

from terascope.bind.context import BindContext
from terascope.diagnostic import Diagnostic
from terascope.functions.base import AggregateFunction, TypeMistake
from terascope.functions.halves import halved
from terascope.syntax import ast
from terascope.types import Type, type_names
from terascope.units import plural

SIZE: Final = re.compile(r"\((\d+)\)")
CODE: Final = "bad-declaration"


def bind_declarations(context: BindContext) -> None:
    """Make the declared aggregates, and check the declarations of others."""
    for declared in context.udafs.values():
        low, high = half(context, declared.sub_aggregate), half(context, declared.super_aggregate)
        known = context.functions.aggregate(declared.name) or context.functions.extractor(
            declared.name
        )
        if known is not None:
            context.diagnostics += problems(context, declared)
        elif low is not None and high is not None:
            make_halved(context, declared, low, high)


def half(context: BindContext, name: str | None) -> AggregateFunction | None:
    return None if name is None else context.functions.aggregate(name)


def make_halved(
    context: BindContext,
    declared: ast.UdafDeclaration,
    low: AggregateFunction,
    high: AggregateFunction,
) -> None:
    name = declared.name.lower()
    function = halved(name, low, high, low_scratchpad(context, declared) or 0)
    wrong = mismatch(declared, function)
    if wrong is None and not high.mergeable:
        wrong = f"its super-aggregate '{high.name}' has no merge"
    if wrong is not None:
        message = f"the declaration of '{declared.name}' does not fit: {wrong}"
        context.error(CODE, message, declared.span)
        return
    context.declared[name] = function


def problems(context: BindContext, declared: ast.UdafDeclaration) -> list[Diagnostic]:
    """What is wrong with the declaration of an aggregate that is registered or built in."""
    functions = context.functions
    extractor = functions.extractor(declared.name)
    function = functions.aggregate(extractor.aggregate if extractor else declared.name)
    if function is None:
        return []
    wrong: str | None
    if extractor is not None:
        given = types_of(declared)
        wrong = None if given is None else refused(function, given[: function.arity])
    else:
        wrong = mismatch(declared, function)
    size = low_scratchpad(context, declared)
    if function.scratchpad and size is not None and size < function.scratchpad:
        wrong = (
            f"states of up to {function.scratchpad} bytes do not fit the {size} bytes of its"
            " scratchpad"
        )
    least, usual = function.low_scratchpad
    if least and size is not None:
        if size < least:
            wrong = (
                f"a state next to the source has at least {least} bytes, not the {size} bytes of"
                f" '{declared.sub_aggregate}'"
            )
        elif size != usual:
            context.scratchpads[function] = max(size, context.scratchpads.get(function, 0))
    if wrong is None:
        return []
    message = f"the declaration of '{declared.name}' does not fit: {wrong}"
    return [Diagnostic(CODE, message, declared.span)]


def low_scratchpad(context: BindContext, declared: ast.UdafDeclaration) -> int | None:
    """The bytes declared for a state next to the source: those of the sub-aggregate, where it has a
    declaration; of a user's aggregate without halves, its own.
    """
    low = context.udafs.get((declared.sub_aggregate or "").lower())
    if low is not None:
        return size_of(low.scratchpad)
    function = context.functions.aggregate(declared.name)
    own = declared.sub_aggregate is None and function is not None and function.user_defined
    return size_of(declared.scratchpad) if own else None


def size_of(type_name: str) -> int | None:
    found = SIZE.search(type_name)
    return None if found is None else int(found[1])


def types_of(declared: ast.UdafDeclaration) -> tuple[Type, ...] | None:
    """The types of the declared arguments; None when one is unknown."""
    found = [named(each) for each in declared.parameters]
    return None if None in found else tuple(type for type in found if type is not None)


def named(type_name: str) -> Type | None:
    return type_names.get(type_name.split("(")[0].strip().upper())


def refused(function: AggregateFunction, types: tuple[Type, ...]) -> str | None:
    try:
        function.type_rule(types)
    except TypeMistake as reason:
        return str(reason)
    return None


def mismatch(declared: ast.UdafDeclaration, function: AggregateFunction) -> str | None:
    """How an aggregate differs from its declaration, if it does."""
    types, returns = types_of(declared), named(declared.returns)
    if types is None or returns is None:
        return "it has an unknown type"
    most = function.arity + function.state_parameters + function.finish_parameters
    least = most - len(function.default_parameters) - len(function.optional_arguments)
    if not min(least, function.arity) <= len(types) <= most:
        return f"the aggregate takes {plural(function.arity, 'argument')}, not {len(types)}"
    wrong = refused(function, types[: function.arity])
    if wrong is not None:
        return wrong
    given = function.type_rule(types[: function.arity])
    alike = given is returns or (given.is_whole and returns.is_whole)
    if alike or (given.is_text and returns.is_text):
        return None
    return f"its values are {given.label}, not {returns.label}"
