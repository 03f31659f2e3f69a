"""Numbers and entries read out of text: delimited lists, digits, addresses."""

from __future__ import annotations

import re
from typing import Final

from terascope.functions.base import Scalar
from terascope.functions.casts import parse_integer
from terascope.functions.signatures import INTEGER, TEXT, signature
from terascope.functions.values import Text, as_text, whole
from terascope.types import Type, parse_ip

DIGITS: Final = re.compile(r"[0-9]+")


def _entries(value: Text, separator: Text) -> list[str]:
    """An empty separator cuts nothing."""
    cut = as_text(separator)
    return as_text(value).split(cut) if cut else [as_text(value)]


def _entry(value: Text, separator: Text, position: int) -> str | None:
    entries = _entries(value, separator)
    return entries[position] if 0 <= position < len(entries) else None


def _sum(value: Text, separator: Text) -> int:
    numbers = (parse_integer(e) for e in _entries(value, separator))
    return whole(sum(n for n in numbers if n is not None and n > 0), "sum_uint_in_list")


def _first_number(value: Text) -> int | None:
    found = DIGITS.search(as_text(value))
    return parse_integer(found.group()) if found else None


def _address(value: Text) -> bytes | None:
    return parse_ip(as_text(value))


SCALARS: Final = (
    Scalar(
        "get_list_entry",
        signature("get_list_entry", TEXT, TEXT, INTEGER, returns=Type.STRING),
        _entry,
        cost_ns=100,
        doc="get_list_entry(list, separator, i): the i-th entry, counted from 0, or NULL",
    ),
    Scalar(
        "sum_uint_in_list",
        signature("sum_uint_in_list", TEXT, TEXT, returns=Type.LLONG),
        _sum,
        cost_ns=200,
        doc="sum_uint_in_list('34|45|56', '|') is 135; what is no unsigned integer counts as 0",
    ),
    Scalar(
        "strtoi",
        signature("strtoi", TEXT, returns=Type.ULLONG),
        _first_number,
        cost_ns=100,
        doc="the first run of digits in the text, as number, or NULL",
    ),
    Scalar(
        "strtoip",
        signature("strtoip", TEXT, returns=Type.IP),
        _address,
        cost_ns=300,
        doc="the address the text writes, or NULL",
    ),
)

SYNONYMS: Final = {"strtoi_c": "strtoi", "strtoip_c": "strtoip"}
