"""Functions that look a value up in a file. A file is read once and kept.

Lines are `key|value` or `key,value`; empty lines and those that begin with # are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from terascope.functions.base import Scalar, Value, ValueMistake
from terascope.functions.casts import parse_integer
from terascope.functions.signatures import ADDRESS, INTEGER, TEXT, signature
from terascope.functions.subnets import PrefixTable, Subnet, parse_subnet
from terascope.functions.values import Text, as_text
from terascope.types import Type


def _entries(file: str) -> Iterator[tuple[str, str, str]]:
    """Place, key and value of every line."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as mistake:
        reason = mistake.strerror if isinstance(mistake, OSError) else "not a text file"
        raise ValueMistake(f"cannot read '{file}': {(reason or str(mistake)).lower()}") from None
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        key, separator, value = line.partition("|" if "|" in line else ",")
        if not separator:
            raise ValueMistake(f"'{file}' line {number} is not of the form key|value")
        yield f"'{file}' line {number}", key.strip(), value.strip()


def _integer(place: str, text: str) -> int:
    value = parse_integer(text)
    if value is None:
        raise ValueMistake(f"{place}: '{text}' is not an integer")
    return value


@lru_cache(maxsize=64)
def load_prefixes(file: str) -> PrefixTable:
    """The table of a file of `prefix|id` lines."""
    ids: dict[Subnet, int] = {}
    for place, key, value in _entries(file):
        try:
            subnet = parse_subnet(key)
        except ValueMistake as mistake:
            raise ValueMistake(f"{place}: {mistake}") from None
        ids[subnet] = _integer(place, value)
    return PrefixTable.of(ids)


@lru_cache(maxsize=64)
def load_names(file: str) -> Mapping[int, str]:
    """The names of a file of `integer,name` lines."""
    return {_integer(place, key): value for place, key, value in _entries(file)}


def _longest_prefix_id(address: bytes, file: Text) -> int | None:
    return load_prefixes(as_text(file)).find(address)


def _name(value: int, file: Text) -> str | None:
    return load_names(as_text(file)).get(value)


def _check_prefixes(constants: Sequence[Value]) -> None:
    if constants[1] is not None:
        load_prefixes(as_text(constants[1]))


def _check_names(constants: Sequence[Value]) -> None:
    if constants[1] is not None:
        load_names(as_text(constants[1]))


SCALARS: Final = (
    Scalar(
        "getlpmid",
        signature("getlpmid", ADDRESS, TEXT, returns=Type.LLONG),
        _longest_prefix_id,
        cost_ns=300,
        check_constants=_check_prefixes,
        file_argument=1,
        doc="getlpmid(ip, 'file'): the id of the longest prefix in the file over it, or NULL",
    ),
    Scalar(
        "int_to_string_map",
        signature("int_to_string_map", INTEGER, TEXT, returns=Type.STRING),
        _name,
        cost_ns=100,
        check_constants=_check_names,
        file_argument=1,
        doc="int_to_string_map(i, 'file'): the text the file gives for the integer, else NULL",
    ),
)
