"""Numbers and entries read out of text: delimited lists, digits, addresses."""

from __future__ import annotations

import re
from typing import Final

from terascope.functions.casts import parse_integer
from terascope.functions.signatures import INTEGER, TEXT, builtin
from terascope.functions.values import Text, as_text, whole
from terascope.types import Type, parse_ip

DIGITS: Final = re.compile(r"[0-9]+")


def _entries(value: Text, separator: Text) -> list[str]:
    """An empty separator cuts nothing."""
    cut = as_text(separator)
    return as_text(value).split(cut) if cut else [as_text(value)]


@builtin(TEXT, TEXT, INTEGER, returns=Type.STRING, cost_ns=100)
def get_list_entry(value: Text, separator: Text, position: int) -> str | None:
    """get_list_entry(list, separator, i): the i-th entry, counted from 0, or NULL."""
    entries = _entries(value, separator)
    return entries[position] if 0 <= position < len(entries) else None


@builtin(TEXT, TEXT, returns=Type.LLONG, cost_ns=200)
def sum_uint_in_list(value: Text, separator: Text) -> int:
    """sum_uint_in_list('34|45|56', '|') is 135; what is no unsigned integer counts as 0."""
    numbers = (parse_integer(e) for e in _entries(value, separator))
    return whole(sum(n for n in numbers if n is not None and n > 0), "sum_uint_in_list")


@builtin(TEXT, returns=Type.ULLONG, cost_ns=100)
def strtoi(value: Text) -> int | None:
    """The first run of digits in the text, as number, or NULL."""
    found = DIGITS.search(as_text(value))
    return parse_integer(found.group()) if found else None


@builtin(TEXT, returns=Type.IP, cost_ns=300)
def strtoip(value: Text) -> bytes | None:
    """The address the text writes, or NULL."""
    return parse_ip(as_text(value))


SYNONYMS: Final = {"strtoi_c": "strtoi", "strtoip_c": "strtoip"}
