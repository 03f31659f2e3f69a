"""The words of GSQL, and which of them stay usable as names.

A *reserved* word is always a keyword, except directly after a dot (`S.order`). Every other keyword
is one only where the grammar can take it there; elsewhere it is an ordinary name, so that columns
called `range`, `every`, `left`, `protocol` or `end` need no quoting. Any word at all can be a name
between backquotes.
"""

from __future__ import annotations

from typing import Final

RESERVED: Final = frozenset({
    "SELECT", "DISTINCT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "AS", "AND", "OR", "NOT",
    "IN", "LIKE", "BETWEEN", "IS", "NULL", "TRUE", "FALSE",
    "CASE", "WHEN", "THEN", "ELSE", "JOIN", "ON", "ORDER", "WITH", "MERGE",
    "INNER_JOIN", "OUTER_JOIN", "LEFT_OUTER_JOIN", "RIGHT_OUTER_JOIN",
    "FULL_OUTER_JOIN", "WATCHLIST_JOIN", "FILTER_JOIN",
    "CLOSING_WHEN", "CLEANING_WHEN", "CLEANING_BY", "SUPERGROUP",
})  # fmt: skip

CONTEXTUAL: Final = frozenset({
    "QUERY", "DEFINE", "PARAM", "PROTOCOL", "STREAM", "UNPACK_FCNS", "WATCHLIST", "FIELDS",
    "UDAF", "EXTR",
    "INNER", "LEFT", "RIGHT", "FULL", "OUTER", "RANGE", "SLIDE", "SLICES", "SLACK", "EVERY",
    "LIMIT", "ASC", "DESC", "END", "DIV",
    "CAST", "CUBE", "ROLLUP", "GROUPING_SETS",
})  # fmt: skip

BEFORE_PARENTHESIS: Final = frozenset({"CAST", "CUBE", "ROLLUP", "GROUPING_SETS"})
"""Contextual words that are keywords only when `(` follows."""

TWO_WORDS: Final = {
    ("CLOSING", "WHEN"): "CLOSING_WHEN",
    ("CLEANING", "WHEN"): "CLEANING_WHEN",
    ("CLEANING", "BY"): "CLEANING_BY",
    ("GROUPING", "SETS"): "GROUPING_SETS",
}
"""Spellings with a blank, as the sampling-operator literature and SQL write them."""

ALL: Final = RESERVED | CONTEXTUAL

LITERAL_PREFIXES: Final = frozenset(
    {"IP", "IPV6", "IP_VAL", "IPV6_VAL", "HEX", "LHEX", "TIMEVAL", "X"}
)
"""Words that, directly before a string, make a literal of another type of it."""

FIELD_PROPERTIES: Final = frozenset({
    "INCREASING", "DECREASING", "STRICTLY_INCREASING", "STRICTLY_DECREASING", "NONINCREASING",
    "NONDECREASING",
    "BANDED_INCREASING", "BANDED_DECREASING", "CLOCK", "KEY", "REQUIRED", "SNAP_LEN",
    "LOW_CARDINALITY",
})  # fmt: skip
"""The words that tell `time increasing` (a field without a type) from `time UINT`."""
