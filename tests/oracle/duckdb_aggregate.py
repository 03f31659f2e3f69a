"""Aggregation as DuckDB SQL: aggregate functions, grouping sets, empty windows, running groups.

In: the SQL of the input. Out: the SQL of the aggregation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from terascope.functions.base import Value
from terascope.plan.evaluate import constant_value
from terascope.plan.expr import AggCall, Expr
from terascope.plan.rel import NamedAgg
from terascope.types import Type
from tests.oracle.duckdb_expr import Columns, Translator
from tests.oracle.duckdb_session import Unsupported, literal, sql_type


@dataclass(frozen=True)
class AggSql:
    """What the SQL of one aggregate is made from."""

    args: tuple[str, ...]
    arg_types: tuple[Type, ...]
    parameters: tuple[Value, ...]
    distinct: bool
    order: str
    """ORDER BY clause in stream order, or nothing."""

    @property
    def x(self) -> str:
        return self.args[0]

    @property
    def unique(self) -> str:
        return "DISTINCT " if self.distinct else ""


AggNative: TypeAlias = Callable[[AggSql], str]


def plain(name: str) -> AggNative:
    return lambda a: f"{name}({a.unique}{a.x})"


def count(a: AggSql) -> str:
    if not a.args:
        return "count(*)"
    return f"count({a.unique}{a.x})"


def total(a: AggSql) -> str:
    # The sum of BIGINTs is a HUGEINT: the cast tells an overflow of 64 bits.
    return f"CAST(sum({a.unique}{a.x}) AS {sql_type(a.arg_types[0])})"


def ordered(name: str) -> AggNative:
    return lambda a: f"{name}({a.x} {a.order}) FILTER (WHERE {a.x} IS NOT NULL)"


def odd_bits(a: AggSql) -> str:
    if a.arg_types[0] is Type.BOOL:
        return f"(bit_xor(CAST({a.x} AS BIGINT)) = 1)"
    return f"bit_xor({a.x})"


def over_bits_or_bools(bits: str, bools: str) -> AggNative:
    return lambda a: f"{bools if a.arg_types[0] is Type.BOOL else bits}({a.x})"


def deviation(name: str) -> AggNative:
    return lambda a: f"{name}(CAST({a.x} AS DOUBLE))"


def of_rank(share: Callable[[AggSql], str]) -> AggNative:
    """The value at a place of the sorted list of all."""

    def native(a: AggSql) -> str:
        place = f"CAST(greatest(1, ceil({share(a)} * count({a.x}))) AS BIGINT)"
        return f"list_sort(list({a.x}) FILTER (WHERE {a.x} IS NOT NULL))[{place}]"

    return native


def stretches(a: AggSql) -> str:
    """How many values differ from the one before, the first included."""
    values = f"list({a.x} {a.order}) FILTER (WHERE {a.x} IS NOT NULL)"
    return (
        f"coalesce(len(list_filter({values}, "
        f"lambda x, i: i = 1 OR x IS DISTINCT FROM ({values})[i - 1])), 0)"
    )


def concatenation(a: AggSql) -> str:
    separator, text = a.args
    both = f"FILTER (WHERE {separator} IS NOT NULL AND {text} IS NOT NULL)"
    joined = f"string_agg({separator} || {text}, '' {a.order}) {both}"
    return f"substr({joined}, 1 + length(first({separator} {a.order}) {both}))"


AGGREGATES: Mapping[str, AggNative] = {
    "count": count,
    "sum": total,
    "running_sum": lambda a: f"coalesce({total(a)}, 0)",
    "running_count": count,
    "min": plain("min"),
    "max": plain("max"),
    "avg": plain("avg"),
    "first": ordered("first"),
    "last": ordered("last"),
    "count_distinct": lambda a: f"count(DISTINCT {a.x})",
    "count_dups": lambda a: f"(count({a.x}) - count(DISTINCT {a.x}))",
    "count_diff": stretches,
    "cat_aggr": concatenation,
    "posavg": lambda a: f"avg({a.x}) FILTER (WHERE {a.x} >= 0)",
    "var_samp": deviation("var_samp"),
    "var_pop": deviation("var_pop"),
    "stddev_samp": deviation("stddev_samp"),
    "stddev_pop": deviation("stddev_pop"),
    "median": of_rank(lambda a: "0.5::DOUBLE"),
    "percentile": of_rank(lambda a: f"({literal(a.parameters[0], Type.FLOAT)} / 100.0::DOUBLE)"),
    "quantile_of": of_rank(lambda a: literal(a.parameters[0], Type.FLOAT)),
    "or_aggr": over_bits_or_bools("bit_or", "bool_or"),
    "and_aggr": over_bits_or_bools("bit_and", "bool_and"),
    "xor_aggr": odd_bits,
}


def call_sql(call: AggCall, translator: Translator, columns: Columns) -> str:
    native = AGGREGATES.get(call.function.name)
    if native is None:
        raise Unsupported(f"aggregate {call.function.name}")
    order = ", ".join(columns[name] for name in call.order)
    text = native(
        AggSql(
            tuple(translator.sql(arg, columns) for arg in call.args),
            tuple(arg.type for arg in call.args),
            tuple(constant_value(p, translator.parameters) for p in call.parameters),
            call.distinct,
            f"ORDER BY {order}" if order else "",
        )
    )
    return f"CAST({text} AS {sql_type(call.type)})"


@dataclass(frozen=True)
class Grouping:
    """GROUP BY over one input, columns c0, c1, ... out."""

    source: str
    keys: tuple[tuple[str, Expr], ...]
    aggs: tuple[NamedAgg, ...]
    translator: Translator
    columns: Columns
    states: frozenset[str] = frozenset()
    """Aggregates that give the list of their values instead of what becomes of it."""

    def key_sql(self, place: int) -> str:
        return self.translator.sql(self.keys[place][1], self.columns)

    def agg_items(self) -> list[str]:
        return [
            f"{self.agg_sql(call)} AS c{len(self.keys) + i}"
            for i, (_, call) in enumerate(self.aggs)
        ]

    def agg_sql(self, call: AggCall) -> str:
        if call.function.name not in self.states:
            return call_sql(call, self.translator, self.columns)
        value = self.translator.sql(call.args[0], self.columns)
        return f"coalesce(list({value}) FILTER (WHERE {value} IS NOT NULL), [])"

    def by(self, chosen: tuple[str, ...]) -> str:
        """One grouping set. No tuple, no row, also without keys."""
        places = [i for i, (name, _) in enumerate(self.keys) if name in chosen]
        items = [
            f"{self.key_sql(i) if i in places else 'NULL'}::{sql_type(expr.type)} AS c{i}"
            for i, (_, expr) in enumerate(self.keys)
        ]
        group = ", ".join(self.key_sql(i) for i in places)
        return (
            f"SELECT {', '.join(items + self.agg_items())} FROM ({self.source}) "
            + (f"GROUP BY {group} " if group else "")
            + "HAVING count(*) > 0"
        )

    def of_nothing(self) -> str:
        """The aggregates of a group without tuples."""
        return f"SELECT {', '.join(self.agg_items())} FROM ({self.source}) WHERE FALSE"
