"""Tests of payload bytes: prefix, containment, bytes at an offset, length.

In: a BINARY column as Arrow holds it, and the selected tuples. Out: a vector. These are the
expensive predicates: they are evaluated only for tuples that passed the cheap ones, straight on the
bytes of the batch.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.functions.base import Scalar, Value
from terascope.functions.roles import TextTest
from terascope.functions.values import as_bytes, as_text
from terascope.kernels.columns.payload_patterns import matches, re2_pattern, required_text
from terascope.kernels.columns.payload_search import contains
from terascope.machine_code import INTEGER, column, compiled_for
from terascope.plan.expr import Call, Col, Expr, Lit
from terascope.types import Type

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


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
    """The arguments that are constant."""
    return [a.value for a in expr.args if isinstance(a, Lit)]


def payload_column(expr: Expr) -> str:
    assert isinstance(expr, Call)
    assert isinstance(expr.function.role, TextTest)
    payload = expr.args[expr.function.role.text]
    assert isinstance(payload, Col)
    return payload.name


def payload_values(expr: Expr, payloads: pa.Array, rows: NDArray[np.int32]) -> NDArray[np.int64]:
    """The values of a test for some tuples of a batch; of NULLs, anything."""
    assert isinstance(expr, Call)
    assert isinstance(expr.function.role, TextTest)
    test, given = expr.function.role.test, constants(expr)
    if test == "regex":
        return pattern_values(as_text(given[0]), payloads, rows)
    offsets, data = content_of(payloads)
    match test:
        case "start":
            return matches_at(offsets, data, rows, 0, needle(given[0]))
        case "contained":
            return contains(offsets, data, rows, needle(given[0]))
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


def pattern_values(text: str, payloads: pa.Array, rows: NDArray[np.int32]) -> NDArray[np.int64]:
    """Whether a regular expression matches. Where every match has some text in it, only payloads
    that have that text are matched.
    """
    pattern, inside = re2_pattern(text), required_text(text)
    assert pattern is not None
    if inside:
        found = contains(*content_of(payloads), rows, needle(inside))
        candidates = np.flatnonzero(found)
        found[candidates] = matching(payloads.take(pa.array(rows[candidates])), pattern)
        return found
    if 4 * len(rows) < len(payloads):  # else copying takes longer than matching the others
        return matching(payloads.take(pa.array(rows)), pattern)
    return matching(payloads, pattern)[rows]


def matching(payloads: pa.Array, pattern: str) -> Ints:
    found: Ints = matches(payloads, pattern).fill_null(False).cast(pa.int64()).to_numpy()
    return found


def content_of(payloads: pa.Array) -> tuple[NDArray[np.int32], Bytes]:
    _, ends, content = payloads.buffers()
    offsets = np.frombuffer(ends, np.int32)[payloads.offset : payloads.offset + len(payloads) + 1]
    return offsets, (
        np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    )


def needle(text: str | bytes) -> Bytes:
    return np.frombuffer(as_bytes(text), np.uint8)


def lengths(offsets: NDArray[np.int32], rows: NDArray[np.int32]) -> NDArray[np.int64]:
    return (offsets[rows + 1] - offsets[rows]).astype(np.int64)


@compiled_for(column(np.int32), column(np.uint8), column(np.int32), INTEGER, column(np.uint8))
def matches_at(
    offsets: NDArray[np.int32],
    data: Bytes,
    rows: NDArray[np.int32],
    at: int,
    wanted: Bytes,
) -> NDArray[np.int64]:
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
