"""Functions that look a value up in a file. A file is read once, before the run, and kept.

Lines are `key|value` or `key,value`; empty lines and those that begin with # are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from terascope.functions.base import ValueMistake
from terascope.functions.casts import parse_integer
from terascope.functions.scalars.addresses import cut, parse_subnet
from terascope.functions.signatures import ADDRESS, INTEGER, TEXT, builtin, parses
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
def load_prefixes(file: str) -> Mapping[tuple[int, int], Mapping[bytes, int]]:
    """The ids of a file of `prefix|id` lines, by version and length of prefixes, longest first."""
    ids: dict[tuple[int, int], dict[bytes, int]] = {}
    for place, key, value in _entries(file):
        try:
            subnet = parse_subnet(key)
        except ValueMistake as mistake:
            raise ValueMistake(f"{place}: {mistake}") from None
        group = ids.setdefault((subnet.first[0], subnet.length), {})
        group[subnet.first] = _integer(place, value)
    return dict(sorted(ids.items(), reverse=True))


@lru_cache(maxsize=64)
def load_names(file: str) -> Mapping[int, str]:
    """The names of a file of `integer,name` lines."""
    return {_integer(place, key): value for place, key, value in _entries(file)}


@builtin(
    ADDRESS, TEXT, returns=Type.LLONG, cost_ns=300, check_constants=parses(load_prefixes),
    file_argument=1,
)  # fmt: skip
def getlpmid(address: bytes, file: Text) -> int | None:
    """getlpmid(ip, 'file'): the id of the longest prefix in the file over it, or NULL."""
    for (version, length), ids in load_prefixes(as_text(file)).items():
        if version == address[0] and (found := ids.get(cut(address, length))) is not None:
            return found
    return None


@builtin(
    INTEGER, TEXT, returns=Type.STRING, cost_ns=100, check_constants=parses(load_names),
    file_argument=1,
)  # fmt: skip
def int_to_string_map(value: int, file: Text) -> str | None:
    """int_to_string_map(i, 'file'): the text the file gives for the integer, else NULL."""
    return load_names(as_text(file)).get(value)
