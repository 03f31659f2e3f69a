"""Parameters: `$name`, declared with PARAM or given at start.

In: PARAM blocks and `--param name=value`. Out: a typed value for each.
"""

from __future__ import annotations

from collections.abc import Mapping

from terascope.bind.context import BindContext
from terascope.bind.declared_fields import declared_type
from terascope.functions.base import Value
from terascope.functions.casts import cast_value
from terascope.plan.expr import Param
from terascope.plan.plan import Parameter
from terascope.syntax import ast
from terascope.types import Type


def bind_parameters(
    context: BindContext, script: ast.Script, given: Mapping[str, str]
) -> tuple[Parameter, ...]:
    """All parameters of the set; fills `context.parameters`."""
    found: dict[str, Parameter] = {}
    for statement in script.statements:
        if not isinstance(statement, ast.QueryStatement):
            continue
        for declared in statement.params:
            type = declared_type(declared.type_name)
            if type is None:
                context.error("unknown-type", f"unknown type '{declared.type_name}'", declared.span)
                continue
            known = found.get(declared.name)
            if known is not None and known.type.label != type.label:
                context.error(
                    "type-mismatch",
                    f"parameter '${declared.name}' is declared {known.type.label} elsewhere",
                    declared.span,
                )
                continue
            found[declared.name] = parameter(context, declared, type, given)
    for name, text in given.items():
        if name not in found:
            value, type = guess(text)
            found[name] = Parameter(name, type, value)
    context.parameters.update({p.name: Param(p.name, p.type) for p in found.values()})
    return tuple(found.values())


def parameter(
    context: BindContext, declared: ast.ParamDeclaration, type: Type, given: Mapping[str, str]
) -> Parameter:
    name = declared.name
    if name not in given:
        if not context.catalog.open_world:
            context.error(
                "missing-parameter",
                f"parameter '${name}' has no value",
                declared.span,
                help=f"give it with --param {name}=...",
            )
        return Parameter(name, type, None)
    value = cast_value(given[name], Type.STRING, type)
    if value is None and type is Type.ULLONG:
        type, value = Type.WIDE, cast_value(given[name], Type.STRING, Type.WIDE)
    if value is None:
        context.error(
            "bad-parameter", f"'{given[name]}' is not a value of type {type.label}", declared.span
        )
    return Parameter(name, type, value)


def guess(text: str) -> tuple[Value, Type]:
    """The value of a parameter that no PARAM declares: a number if it looks like one."""
    for type in (Type.INT, Type.WIDE, Type.FLOAT):
        value = cast_value(text, Type.STRING, type)
        if value is not None:
            return value, type
    return text, Type.STRING
