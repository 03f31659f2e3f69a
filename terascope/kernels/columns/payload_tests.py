"""Tests of payload bytes, and texts in them: does it begin with, contain, match, have at an offset;
how long is it.

In: a BINARY column as Arrow holds it, all payloads one behind the other, and the tuples that are
asked for. Out: a vector. These are the expensive predicates: they are evaluated only for tuples
that passed the cheap ones, straight on the bytes of the batch. Bytes are searched in one sweep over
all payloads, 64 at a time, by two bytes of what is sought: many times as fast as payload by
payload. Few payloads are copied first.

Regular expressions (functions.scalars.patterns) are matched by RE2, which reads a pattern as Python
does but for a few things: where one of them occurs, `re2_pattern` says no, and the function's own
meaning is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.functions.base import Scalar, Value, ValueMistake
from terascope.functions.roles import Extraction, TextTest
from terascope.functions.scalars.patterns import portable
from terascope.functions.values import as_bytes, as_text
from terascope.kernels.columns.arrays import Bytes, Codes, Ints, byte_runs
from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.plan.expr import Call, Col, Expr, Lit
from terascope.types import Type

DIFFERENT: Final = re.compile(r"\\[sSpPAzZ1-9]|\(\?")
"""Classes that hold other characters, back references, and groups of special meaning."""
TOKEN: Final = re.compile(r"\\x..|\\.|\[(?:\\.|[^\]\\])*\]|\{[^}]*\}|.", re.DOTALL)
"""An escape, a class of characters, a number of repetitions, or a single character."""
COPIED: Final = 4
"""Fewer than one in this many payloads are copied before they are tested."""


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


def is_payload_test(expr: Expr) -> bool:
    """Whether a kernel of this module computes the expression."""
    match expr:
        case Call(Scalar(role=TextTest() as role), args):
            payload, given = args[role.text], constants(expr)
        case _:
            return False
    if not isinstance(payload, Col) or payload.type is not Type.BINARY:
        return False
    if len(given) < len(args) - 1 or None in given:
        return False
    return role.test != "regex" or re2_pattern(as_text(given[0])) is not None


def constants(expr: Call) -> list[Value]:
    return [a.value for a in expr.args if isinstance(a, Lit)]


def payload_column(expr: Expr) -> str:
    assert isinstance(expr, Call)
    assert isinstance(expr.function.role, TextTest)
    payload = expr.args[expr.function.role.text]
    assert isinstance(payload, Col)
    return payload.name


def payload_values(expr: Expr, payloads: pa.Array, rows: Codes) -> Ints:
    """The values of a test for some tuples of a batch; of NULLs, anything."""
    assert isinstance(expr, Call)
    assert isinstance(expr.function.role, TextTest)
    test, given = expr.function.role.test, constants(expr)
    if test == "regex":
        return pattern_values(as_text(given[0]), payloads, rows)
    offsets, data = byte_runs(payloads)
    match test:
        case "start":
            return matches_at(offsets, data, rows, 0, needle(given[0]))
        case "contained":
            return contains(payloads, rows, needle(given[0]))
        case "equal":
            found: Ints = matches_at(offsets, data, rows, 0, needle(given[0]))
            found[lengths(offsets, rows) != len(needle(given[0]))] = 0
            return found
        case "text at":
            return matches_at(offsets, data, rows, given[0], needle(given[1]))
        case "byte at":
            wanted = np.array([given[1] & 0xFF], np.uint8)
            return matches_at(offsets, data, rows, given[0], wanted)
        case _:
            return lengths(offsets, rows)


def pattern_values(text: str, payloads: pa.Array, rows: Codes) -> Ints:
    """Whether a regular expression matches. Where every match has some text in it, only payloads
    that have that text are matched.
    """
    pattern, inside = re2_pattern(text), required_text(text)
    assert pattern is not None
    if inside:
        found = contains(payloads, rows, needle(inside))
        candidates = np.flatnonzero(found)
        found[candidates] = matching(payloads.take(pa.array(rows[candidates])), pattern)
        return found
    return of_some(payloads, rows, lambda some: matching(some, pattern))


def matching(payloads: pa.Array, pattern: str) -> Ints:
    matches = pc.match_substring_regex(payloads, pattern)
    found: Ints = matches.fill_null(False).cast(pa.int64()).to_numpy()
    return found


def needle(text: str | bytes) -> Bytes:
    return np.frombuffer(as_bytes(text), np.uint8)


def lengths(offsets: Codes, rows: Codes) -> Ints:
    return (offsets[rows + 1] - offsets[rows]).astype(np.int64)


@compiled_for(column(np.int32), column(np.uint8), column(np.int32), INTEGER, column(np.uint8))
def matches_at(offsets: Codes, data: Bytes, rows: Codes, at: int, wanted: Bytes) -> Ints:
    out = np.zeros(len(rows), np.int64)
    size = len(wanted)
    for r in range(len(rows)):
        begin = offsets[rows[r]] + at
        if at < 0 or begin + size > offsets[rows[r] + 1]:
            continue
        same = True
        for k in range(size):
            if data[begin + k] != wanted[k]:
                same = False
                break
        out[r] = same
    return out


BLOCK: Final = 64


def contains(payloads: pa.Array, rows: Codes, wanted: Bytes) -> Ints:
    """1 for each selected tuple whose payload contains the bytes."""
    if not len(wanted):
        return np.ones(len(rows), np.int64)
    return of_some(payloads, rows, lambda some: swept(some, wanted))


def swept(payloads: pa.Array, wanted: Bytes) -> Ints:
    hits = np.zeros(len(payloads), np.int64)
    sweep(*byte_runs(payloads), wanted, hits)
    return hits


def of_some(payloads: pa.Array, rows: Codes, test: Callable[[pa.Array], Ints]) -> Ints:
    """A test of some payloads: of copies of them, if that takes less time than to test all."""
    if COPIED * len(rows) < len(payloads):
        return test(payloads.take(pa.array(rows)))
    return test(payloads)[rows]


@compiled_for(column(np.int32), column(np.uint8), column(np.uint8), output(np.int64))
def sweep(offsets: Codes, data: Bytes, wanted: Bytes, hits: Ints) -> None:
    """Mark the payloads that contain `wanted`, which is not empty. A block of positions is compared
    without a branch, so that the processor compares many at once.
    """
    size = len(wanted)
    at, end = np.int64(offsets[0]), np.int64(offsets[-1]) - size + 1
    first, last = wanted[0], wanted[size - 1]
    row = np.int64(0)
    while at < end:
        stop = min(at + BLOCK, end)
        seen = np.uint8(0)
        if stop - at == BLOCK:
            begins, ends = data[at : at + BLOCK], data[at + size - 1 : at + size - 1 + BLOCK]
            for i in range(BLOCK):
                seen |= np.uint8(begins[i] == first) & np.uint8(ends[i] == last)
        else:
            seen = np.uint8(1)
        if seen:
            while at < stop:
                if data[at] == first and data[at + size - 1] == last:
                    k = 1
                    while k < size and data[at + k] == wanted[k]:
                        k += 1
                    if k >= size:
                        while offsets[row + 1] <= at:
                            row += 1
                        if at + size <= offsets[row + 1]:
                            hits[row] = 1
                            at = np.int64(offsets[row + 1])
                            continue
                at += 1
        else:
            at = stop
