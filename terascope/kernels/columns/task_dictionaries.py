"""The dictionaries of a task, and what is computed once for each of their values.

In: columns and expressions of one coded column. Out: codes and columns of results, one per code.
IPv4 addresses with constants are the common case, and computed for all values of a dictionary at
once (an address is its version and then its bytes, terascope.types); everything else is left to the
functions' own meaning, value by value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.connectors.base import arrow_type
from terascope.functions.base import Scalar
from terascope.functions.roles import AddressMask, SubnetTest
from terascope.functions.scalars.addresses import Subnet, parse_subnet
from terascope.kernels.codegen.statements import is_number
from terascope.kernels.columns.arrays import Codes, Flags, GrowingArray, byte_runs
from terascope.kernels.columns.dictionary import BytesDictionary, Dictionary, dictionary_for
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Call, Col, Expr, Lit, walk

Words: TypeAlias = NDArray[np.uint32]

V4_BYTES = 5


def ipv4_words(addresses: pa.Array) -> tuple[Flags, Words]:
    """The mask of IPv4 addresses, and their 32 bits."""
    offsets, data = byte_runs(addresses)
    is_v4 = np.diff(offsets) == V4_BYTES
    if addresses.null_count:
        is_v4 &= addresses.is_valid().to_numpy(zero_copy_only=False)
    starts = offsets[:-1][is_v4]
    words = np.zeros(len(starts), np.uint32)
    for place in range(1, V4_BYTES):
        words = words << np.uint32(8) | data[starts + place]
    return is_v4, words


def masked(addresses: pa.Array, mask: int) -> pa.Array:
    """IPv4 addresses with some bits only; NULL for others."""
    is_v4, words = ipv4_words(addresses)
    found = np.empty((len(words), V4_BYTES), np.uint8)
    found[:, 0] = 4
    found[:, 1:] = (
        (words & np.uint32(mask & 0xFFFFFFFF)).astype(">u4").view(np.uint8).reshape(-1, 4)
    )
    lengths = np.where(is_v4, V4_BYTES, 0)
    own = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    valid = pa.py_buffer(np.packbits(is_v4, bitorder="little"))
    buffers = [valid, pa.py_buffer(own), pa.py_buffer(found)]
    return pa.Array.from_buffers(pa.binary(), len(addresses), buffers)


def within(addresses: pa.Array, subnet: Subnet) -> pa.Array:
    """Whether each address lies in an IPv4 subnet."""
    is_v4, words = ipv4_words(addresses)
    first = int.from_bytes(subnet.first[1:], "big")
    mask = np.uint32(0xFFFFFFFF << (32 - subnet.length) & 0xFFFFFFFF)
    found = np.zeros(len(addresses), np.bool_)
    found[is_v4] = (words & mask) == np.uint32(first)
    missing = addresses.is_null().to_numpy(zero_copy_only=False) if addresses.null_count else None
    return pa.array(found, mask=missing)


ADDRESSES = "addresses"


class TaskDictionaries:
    """The dictionaries of a task. All addresses share one, so that they can be compared by code;
    every other column and key has its own.
    """

    def __init__(self) -> None:
        self._by_name: dict[object, Dictionary] = {}
        self._derived: dict[Expr, Derived] = {}

    def of_column(self, column: Col) -> Dictionary:
        name: object = ADDRESSES if column.type.is_address else column
        return self._by_name.setdefault(name, BytesDictionary(column.type))

    def of_key(self, expr: Expr) -> Dictionary:
        """The dictionary that the codes of a group key belong to."""
        if isinstance(expr, Col) and not is_number(expr.type):
            return self.of_column(expr)
        known = self._by_name.get(expr)
        return known or self._by_name.setdefault(expr, dictionary_for(expr.type))

    def lookup(self, expr: Expr) -> pa.Array:
        """An expression of one coded column, for every code of its dictionary."""
        return self._derived_by(expr).column()

    def key_codes(self, expr: Expr) -> Codes:
        """A key computed from one coded column: its code, for every code of that column."""
        return self._derived_by(expr).codes(self.of_key(expr))

    def _derived_by(self, expr: Expr) -> Derived:
        if expr not in self._derived:
            source = self.of_column(coded_column(expr))
            self._derived[expr] = Derived(source, function_of(expr))
        return self._derived[expr]

    @property
    def memory_bytes(self) -> int:
        return sum(d.memory_bytes for d in self._by_name.values())


def coded_column(expr: Expr) -> Col:
    """The one column of an expression."""
    return next(e for e in walk(expr) if isinstance(e, Col))


def function_of(expr: Expr) -> Callable[[pa.Array], pa.Array]:
    """The expression on a column of different values: in plain Python, once for each, but for a few
    functions of addresses, which are common and simple.
    """
    simple = function_of_addresses(expr)
    if simple is not None:
        return simple
    evaluate = compile_expr(expr, (coded_column(expr).name,), {})

    def compute(values: pa.Array) -> pa.Array:
        results = [evaluate((value,)) for value in values.to_pylist()]
        return pa.array(results, arrow_type(expr.type))

    return compute


@lru_cache(maxsize=256)
def function_of_addresses(expr: Expr) -> Callable[[pa.Array], pa.Array] | None:
    match expr:
        case Call(Scalar(role=AddressMask()), (Col(), Lit(value=int(mask)))):
            return lambda values: masked(values, mask)
        case Call(Scalar(role=SubnetTest()), (Col(), Lit(value=str(text)))):
            subnet = parse_subnet(text)
            if subnet.first[0] == 4:
                return lambda values: within(values, subnet)
    return None


class Derived:
    """A function of a dictionary's values, computed once for each of them as they come."""

    def __init__(self, source: Dictionary, function: Callable[[pa.Array], pa.Array]) -> None:
        self._source = source
        self._function = function
        self._column: pa.Array | None = None
        self._codes = GrowingArray(np.int32)

    def column(self) -> pa.Array:
        """One value per code of the source."""
        done = 0 if self._column is None else len(self._column)
        if self._column is None or done < len(self._source):
            fresh = self._since(done)
            self._column = fresh if done == 0 else pa.concat_arrays([self._column, fresh])
        return self._column

    def codes(self, target: Dictionary) -> Codes:
        """The codes of these values in another dictionary."""
        if len(self._codes) < len(self._source):
            self._codes.add(target.encode(self._since(len(self._codes))))
        return self._codes.values

    def _since(self, done: int) -> pa.Array:
        """The values of the codes from one on."""
        codes = np.arange(done, len(self._source), dtype=np.int32)
        return self._function(self._source.values(codes))
