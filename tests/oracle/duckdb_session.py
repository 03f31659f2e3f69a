"""A DuckDB connection with the few functions SQL does not have: floor division, shifts, and, by
way of Python, what only a function object knows.

In: nothing. Out: `Session`, on which the SQL of duckdb_sql runs.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
from duckdb.func import FunctionNullHandling

from terascope.functions.base import Value
from terascope.functions.members import Members
from terascope.types import BIAS, Type

MACROS = (
    # DuckDB's // and % round towards zero.
    """CREATE MACRO floor_div(a, b) AS CASE WHEN b = 0 THEN NULL
       ELSE (a // b) - CAST(((a % b) <> 0 AND ((a % b) < 0) <> (b < 0)) AS BIGINT) END""",
    """CREATE MACRO floor_mod(a, b) AS CASE WHEN b = 0 THEN NULL
       WHEN (a % b) <> 0 AND ((a % b) < 0) <> (b < 0) THEN (a % b) + b ELSE a % b END""",
    # DuckDB refuses to shift negative numbers to the left.
    """CREATE MACRO shift_left(a, n) AS CASE WHEN n < 0 OR n > 63 THEN NULL
       ELSE CAST(CAST(a AS HUGEINT) * (CAST(1 AS HUGEINT) << CAST(n AS INTEGER)) AS BIGINT) END""",
    "CREATE MACRO shift_right(a, n) AS CASE WHEN n < 0 OR n > 63 THEN NULL ELSE a >> n END",
)


class Unsupported(Exception):
    """DuckDB cannot express it; the message names what."""


def mask(address: bytes | None, bits: int | None) -> bytes | None:
    if address is None or bits is None or address[0] != 4:
        return None
    kept = int(ipaddress.IPv4Address(address[1:])) & bits & 0xFFFFFFFF
    return b"\x04" + ipaddress.IPv4Address(kept).packed


def prefix_bits(address: bytes | None, four: int | None, six: int | None) -> bytes | None:
    if address is None or four is None or six is None:
        return None
    network = ipaddress.ip_network((address[1:], four if address[0] == 4 else six), strict=False)
    return address[:1] + network.network_address.packed


def in_subnet(address: bytes | None, subnet: str | None) -> bool | None:
    if address is None or subnet is None:
        return None
    return ipaddress.ip_address(address[1:]) in ipaddress.ip_network(subnet, strict=False)


PYTHON: tuple[tuple[Any, list[Any], str], ...] = (
    (mask, ["BLOB", "BIGINT"], "BLOB"),
    (prefix_bits, ["BLOB", "BIGINT", "BIGINT"], "BLOB"),
    (in_subnet, ["BLOB", "VARCHAR"], "BOOLEAN"),
)
"""Addresses by way of the standard library, so that they check ours."""


class Session:
    """A connection and the Python functions registered on it so far."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("SET threads = 1")
        self.names: dict[tuple[object, ...], str] = {}
        for macro in MACROS:
            self.connection.execute(macro)
        for function, args, result in PYTHON:
            self.connection.create_function(
                function.__name__,
                function,
                args,
                result,
                null_handling=FunctionNullHandling.SPECIAL,
            )

    def function(
        self,
        key: str,
        evaluate: Callable[..., Value],
        args: Sequence[Type],
        result: Type,
    ) -> str:
        """The SQL name of a Python function; NULLs are handed to it."""
        signature = (key, tuple(args), result)
        if signature not in self.names:
            name = f"python_{len(self.names)}"
            fixed: Any = fixed_arity(on_numbers(evaluate, args, result), len(args))
            self.connection.create_function(
                name,
                fixed,
                [sql_type(a) for a in args],
                sql_type(result),
                null_handling=FunctionNullHandling.SPECIAL,
            )
            self.names[signature] = name
        return self.names[signature]

    def close(self) -> None:
        self.connection.close()


def on_numbers(
    evaluate: Callable[..., Value], args: Sequence[Type], result: Type
) -> Callable[..., Value]:
    """A function of held values as one of the numbers that DuckDB has in a UBIGINT."""
    if Type.WIDE not in (*args, result):
        return evaluate

    def made(*given: Value) -> Value:
        held = [
            v - BIAS if t is Type.WIDE and v is not None else v
            for v, t in zip(given, args, strict=True)
        ]
        value = evaluate(*held)
        return value + BIAS if result is Type.WIDE and value is not None else value

    return made


def fixed_arity(evaluate: Callable[..., Value], count: int) -> Callable[..., Value]:
    """DuckDB counts the parameters of a function: a variadic one will not do."""
    names = ", ".join(f"a{i}" for i in range(count))
    made: Callable[..., Value] = eval(f"lambda {names}: f({names})", {"f": evaluate})
    return made


def sql_type(type: Type) -> str:
    match type:
        case Type.BOOL:
            return "BOOLEAN"
        case Type.INT | Type.UINT | Type.LLONG | Type.ULLONG:
            return "BIGINT"
        case Type.WIDE:
            return "UBIGINT"
        case Type.FLOAT:
            return "DOUBLE"
        case Type.STRING | Type.NULL:
            return "VARCHAR"
        case Type.IP | Type.IPV6 | Type.BINARY:
            return "BLOB"


def literal(value: Value, type: Type) -> str:
    if value is None:
        return f"CAST(NULL AS {sql_type(type)})"
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if type is Type.WIDE:
            return f"CAST({value + BIAS} AS UBIGINT)"
        case int():
            return f"CAST({value} AS {sql_type(type)})"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case Members():
            nulls = [None] if value.has_null else []
            return ", ".join(literal(one, type) for one in (*value.values, *nulls))
        case bytes():
            return f"unhex('{value.hex()}')"
        case _:
            raise Unsupported(f"literal {value!r}")
