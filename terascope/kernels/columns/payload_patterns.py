"""Regular expressions on payload bytes, by RE2.

In: a pattern of GSQL (functions.regex) and a BINARY column as Arrow holds it. Out: whether each
payload matches, or what a group of the pattern found. RE2 reads a pattern as Python does but for a
few things: where one of them occurs, `re2_pattern` says no, and the function's own meaning is used.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from terascope.functions.base import Scalar, ValueMistake
from terascope.functions.regex import portable
from terascope.functions.roles import Extraction
from terascope.functions.values import as_text
from terascope.plan.expr import Call, Col, Expr, Lit
from terascope.types import Type

DIFFERENT: Final = re.compile(r"\\[sSpPAzZ1-9]|\(\?")
"""Classes that hold other characters, back references, and groups of special meaning."""
TOKEN: Final = re.compile(r"\\x..|\\.|\[(?:\\.|[^\]\\])*\]|\{[^}]*\}|.", re.DOTALL)
"""An escape, a class of characters, a number of repetitions, or a single character."""


@lru_cache(maxsize=256)
def re2_pattern(pattern: str) -> str | None:
    """The pattern for RE2; None where the two might differ."""
    if not pattern.isascii() or DIFFERENT.search(pattern):
        return None
    try:
        made = f"(?m){portable(pattern)}"
        pc.match_substring_regex(pa.array([b""], pa.binary()), made)
    except (ValueMistake, pa.ArrowInvalid):
        return None
    return made


def matches(payloads: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(payloads, pattern)


@lru_cache(maxsize=256)
def required_text(pattern: str) -> str:
    """The longest text in every match of a pattern that RE2 reads; empty if there may be matches
    without one. Only text outside of groups is considered.
    """
    texts, current, depth = [""], "", 0
    for token in TOKEN.findall(portable(pattern)):
        escaped = token[1] if token[0] == "\\" else None
        if depth or token == "(":
            depth += (token == "(") - (token == ")")
        elif token == "|":
            return ""
        elif escaped is not None and not escaped.isalnum():
            current += escaped
            continue
        elif escaped is None and token[0] not in "[*?{+.^$":
            current += token
            continue
        # What stands before one of these may be missing.
        texts.append(current[:-1] if token[0] in "*?{" else current)
        current = ""
    return max(*texts, current, key=len)


# ---- extraction ----------------------------------------------------------------------------------


def is_payload_text(expr: Expr) -> bool:
    """Whether the expression takes a text out of a payload by a pattern that RE2 reads alike."""
    return payload_extraction(expr) is not None


def payload_extraction(expr: Expr) -> tuple[Col, str] | None:
    """The pair (column, pattern with the requested group named) of str_extract_regex."""
    match expr:
        case Call(
            Scalar(role=Extraction()), (Col(type=Type.BINARY) as column, Lit() as pattern, *rest)
        ):
            if pattern.value is None:
                return None
            group = 0
            if rest:
                (number,) = rest
                if not isinstance(number, Lit) or not isinstance(number.value, int):
                    return None
                group = number.value
            named = named_group(as_text(pattern.value), group)
            return None if named is None else (column, named)
    return None


@lru_cache(maxsize=256)
def named_group(pattern: str, group: int) -> str | None:
    """The pattern with the group called `found`, and no other; None where a match may lack it."""
    made = re2_pattern(pattern)
    if made is None:
        return None
    opened = openings(made)
    if group == 0:
        return f"(?P<found>{without_groups(made, opened)})" if "(?m)" not in made[4:] else None
    if len(opened) != 1 or group != 1 or "|" in made or optional(made, opened[0]):
        return None
    at = opened[0]
    return f"{made[:at]}(?P<found>{made[at + 1 :]}"


def openings(pattern: str) -> list[int]:
    """The positions at which capturing groups begin."""
    tokens = TOKEN.finditer(pattern)
    return [t.start() for t in tokens if t.group() == "(" and pattern[t.end() : t.end() + 1] != "?"]


def without_groups(pattern: str, opened: list[int]) -> str:
    for at in reversed(opened):
        pattern = f"{pattern[:at]}(?:{pattern[at + 1 :]}"
    return pattern


def optional(pattern: str, opened: int) -> bool:
    """Whether the one group of a pattern may be passed over."""
    closed = pattern.rindex(")")
    return pattern[closed + 1 : closed + 2] in ("?", "*", "{")


def extracted(payloads: pa.Array, pattern: str) -> pa.Array:
    """The match of the group, as text; bytes become one character each."""
    found = pc.struct_field(pc.extract_regex(payloads, pattern), "found")
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if v is None else v.decode("latin-1") for v in found.to_pylist()]
        return pa.array(texts, pa.string())
