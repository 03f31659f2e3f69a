"""A batch of a source as vectors: the columns encoded for kernels.

In: Arrow batches of a source. Out: numbers as arrays with a validity, text and addresses as codes.
A dictionary lives as long as its task. A vector is made once for each batch, at its first use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.connectors.base import arrow_type
from terascope.functions.base import Scalar
from terascope.functions.overflow import Overflow
from terascope.functions.roles import AddressMask, SubnetTest
from terascope.functions.subnets import parse_subnet
from terascope.kernels.codegen.arithmetic_recipes import can_overflow
from terascope.kernels.codegen.members import member_vector
from terascope.kernels.codegen.program import Program, numpy_function
from terascope.kernels.codegen.slices import slice_values
from terascope.kernels.codegen.terms import Input, InputKind, is_coded, is_number
from terascope.kernels.columns.addresses import masked, within
from terascope.kernels.columns.dictionary import (
    NULL_CODE,
    BytesDictionary,
    Codes,
    Derived,
    DerivedCodes,
    Dictionary,
    Hashes,
    Ints,
    Masks,
    NumberDictionary,
    all_valid,
    dictionary_for,
    words_of,
)
from terascope.kernels.columns.payload_patterns import extracted, payload_extraction
from terascope.kernels.columns.payload_tests import payload_column, payload_values
from terascope.machine_code import INTEGER, compiled_for, output
from terascope.machine_code import column as column_of
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Call, Col, Expr, Lit, columns_of, walk
from terascope.plan.show import written
from terascope.types import Type

Values: TypeAlias = NDArray[Any]
Vector: TypeAlias = tuple[Values, Masks]
"""Values and validity."""

Fact = TypeVar("Fact")

ADDRESSES = "addresses"


class TaskDictionaries:
    """The dictionaries of a task. All addresses share one, so that they can be compared by code;
    every other column and key has its own.
    """

    def __init__(self) -> None:
        self._by_name: dict[object, Dictionary] = {}
        self._derived: dict[Expr, Derived] = {}
        self._keys: dict[Expr, DerivedCodes] = {}

    def of_column(self, column: Col) -> Dictionary:
        name: object = ADDRESSES if column.type.is_address else column
        return self._by_name.setdefault(name, BytesDictionary(column.type))

    def of_key(self, expr: Expr) -> Dictionary:
        """The dictionary that the codes of a group key belong to."""
        if isinstance(expr, Col) and not is_number(expr.type):
            return self.of_column(expr)
        known = self._by_name.get(expr)
        return known or self._by_name.setdefault(expr, dictionary_for(expr.type))

    def of_epoch(self, expr: Expr) -> NumberDictionary:
        """Epochs as codes, where a table holds many of them."""
        known = self._by_name.setdefault(("epoch", expr), NumberDictionary(expr.type))
        assert isinstance(known, NumberDictionary)
        return known

    def lookup(self, expr: Expr) -> pa.Array:
        """An expression of one coded column, for every code of its dictionary."""
        if expr not in self._derived:
            (name,) = columns_of(expr)
            column = coded_column(expr, name)
            self._derived[expr] = Derived(self.of_column(column), function_of(expr, name))
        return self._derived[expr].column()

    def key_codes(self, expr: Expr) -> Codes:
        """A key computed from one coded column: its code, for every code of that column."""
        if expr not in self._keys:
            (name,) = columns_of(expr)
            column = self.of_column(coded_column(expr, name))
            self._keys[expr] = DerivedCodes(column, function_of(expr, name), self.of_key(expr))
        return self._keys[expr].codes()

    @property
    def memory_bytes(self) -> int:
        return sum(d.memory_bytes for d in self._by_name.values())

    @property
    def largest(self) -> int:
        return max((len(d) for d in self._by_name.values()), default=0)


def coded_column(expr: Expr, name: str) -> Col:
    return next(e for e in walk(expr) if isinstance(e, Col) and e.name == name)


def function_of(expr: Expr, name: str) -> Callable[[pa.Array], pa.Array]:
    """The expression on a column of different values: in plain Python, once for each, but for a few
    functions of addresses, which are common and simple.
    """
    simple = function_of_addresses(expr)
    if simple is not None:
        return simple
    evaluate = compile_expr(expr, (name,), {})

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


class Facts:
    """A cache of values that several queries use."""

    _facts: dict[object, tuple[Any, ...]]

    def once(self, name: object, compute: Callable[..., Fact], *args: Any) -> Fact:
        """A value that several queries use, computed for the first of them.

        A name may hold the identity of an argument: arguments are kept as long as the value is, so
        that no other array can get the same identity.
        """
        if name not in self._facts:
            self._facts[name] = (compute(*args), compute, args)
        fact: Fact = self._facts[name][0]
        return fact


@dataclass
class VectorBatch(Facts):
    """One batch of a source, seen as vectors."""

    columns: pa.RecordBatch
    dictionaries: TaskDictionaries
    program: Program
    derive: Callable[..., Any]
    _vectors: dict[Input, Vector] = field(default_factory=dict)
    _codes: dict[Expr, Codes] = field(default_factory=dict)
    _derived: dict[Expr, tuple[Values, Masks, Masks | None]] | None = None
    _facts: dict[object, tuple[Any, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    # ---- what the kernels read

    def inputs(self, wanted: tuple[Input, ...]) -> list[Values]:
        return [array for one in wanted for array in self.input(one)]

    def input(self, wanted: Input) -> Vector:
        vector = self._vectors.get(wanted)
        if vector is None:
            vector = self._vectors[wanted] = self._input(wanted)
        return vector

    def _input(self, wanted: Input) -> Vector:
        expr = wanted.expr
        if wanted.source is InputKind.NUMBER:
            assert isinstance(expr, Col)
            return numbers(self.columns.column(expr.name), expr.type)
        if wanted.source is InputKind.BYTES:
            everybody = np.arange(len(self), dtype=np.int32)
            return self.payload_vector(expr, everybody)
        if wanted.source is InputKind.SLICES:
            assert isinstance(expr, Call)
            times, valid = self.input(Input(InputKind.NUMBER, expr.args[0]))
            return slice_values(expr, times), valid
        if wanted.source is InputKind.MEMBERS:
            return self.members_vector(expr)
        if isinstance(expr, Col):  # the codes themselves
            codes = self.column_codes(expr)
            return codes.astype(np.int64), (codes != NULL_CODE).view(np.uint8)
        (name,) = columns_of(expr)
        simple = function_of_addresses(expr)
        if simple is not None:  # takes less time than to look every address up
            return numbers(simple(self.columns.column(name)), expr.type)
        by_code = numbers(self.dictionaries_lookup(expr, name), expr.type)
        codes = self.column_codes(coded_column(expr, name))
        return by_code[0][codes], by_code[1][codes]

    def members_vector(self, expr: Expr) -> Vector:
        """Whether an operand is in a long list. It may overflow for other tuples."""
        assert isinstance(expr, Call)
        operand, listed = expr.args
        assert isinstance(listed, Lit)
        if isinstance(operand, Col):
            values, valid = self.input(Input(InputKind.NUMBER, operand))
        else:
            wanted, function = numpy_function(operand)
            with np.errstate(all="ignore"):
                value, known, _ = function(*self.inputs(wanted))
            values = np.broadcast_to(np.asarray(value), len(self))
            valid = np.broadcast_to(np.asarray(known, np.bool_), len(self)).view(np.uint8)
        return member_vector(listed.value, values, valid)

    def dictionaries_lookup(self, expr: Expr, name: str) -> pa.Array:
        self.column_codes(coded_column(expr, name))  # first: it may bring new values
        return self.dictionaries.lookup(expr)

    def payload_vector(self, expr: Expr, rows: Codes) -> Vector:
        column = self.columns.column(payload_column(expr))
        values = payload_values(expr, column, rows)
        if expr.type is Type.BOOL:
            values = values != 0
        if not column.null_count:
            return values, all_valid(len(rows))
        return values, self.once(("present", payload_column(expr)), validity_of, column)[rows]

    def prefilter_bits(self, prefilter: Callable[..., Any], evaluated: Ints) -> list[Hashes]:
        """The bit vector of each tuple: a bit for each shared predicate, set where it is TRUE
        (dissertation 3.4.2). `evaluated`: the evaluations of each predicate are added to it.
        """
        bits = [np.empty(len(self), np.uint64) for _ in range(self.program.words)]
        if bits:
            vectors = self.inputs(self.program.prefilter.inputs)
            with np.errstate(all="ignore"):
                prefilter(len(self), evaluated, *vectors, *bits)
        return bits

    # ---- derived vectors

    def number(self, expr: Expr, rows: Codes) -> Vector:
        """A number for all tuples of the batch; an overflow among `rows` is an error."""
        if isinstance(expr, Col):
            return self.input(Input(InputKind.NUMBER, expr))
        if self._derived is None:
            self._derived = self._derive()
        if expr not in self._derived:  # a test of payload bytes
            vector = self.payload_vector(expr, rows)
            return spread(vector[0], rows, len(self)), spread(vector[1], rows, len(self))
        values, masks, flags = self._derived[expr]
        if flags is not None and flags[rows].any():
            raise Overflow(written(expr))
        return values, masks

    def validity(self, expr: Expr, rows: Codes) -> Masks:
        """The mask of values that are not NULL, for any type."""
        if isinstance(expr, Col) and not is_number(expr.type):
            present = self.columns.column(expr.name)
            if not present.null_count:
                return all_valid(len(self))
            valid: NDArray[np.bool_] = present.is_valid().to_numpy(zero_copy_only=False)
            return valid.view(np.uint8)
        if is_coded(expr.type):
            return np.asarray(self.key_codes(expr) != NULL_CODE).view(np.uint8)
        return self.number(expr, rows)[1]

    def _derive(self) -> dict[Expr, tuple[Values, Masks, Masks | None]]:
        made: dict[Expr, tuple[Values, Masks, Masks | None]] = {}
        outputs: list[Values] = []
        for expr in self.program.derived:
            values = np.empty(len(self), np.float64 if expr.type is Type.FLOAT else np.int64)
            masks = np.empty(len(self), np.uint8)
            flags = np.empty(len(self), np.uint8) if can_overflow(expr) else None
            made[expr] = values, masks, flags
            outputs += [values, masks, *([] if flags is None else [flags])]
        if outputs:
            vectors = self.inputs(self.program.derive.inputs)
            with np.errstate(all="ignore"):
                self.derive(len(self), np.zeros(0, np.int64), *vectors, *outputs)
        return made

    # ---- codes

    def column_codes(self, column: Col) -> Codes:
        codes = self._codes.get(column)
        if codes is None:
            dictionary = self.dictionaries.of_column(column)
            codes = self._codes[column] = dictionary.encode(self.columns.column(column.name))
        return codes

    def key_codes(self, expr: Expr) -> Codes:
        """Codes of a group key."""
        if expr not in self._codes:
            self._codes[expr] = self._key_codes(expr)
        return self._codes[expr]

    def _key_codes(self, expr: Expr) -> Codes:
        if isinstance(expr, Col) and not is_number(expr.type):
            return self.column_codes(expr)
        if is_coded(expr.type) or expr.type is Type.BINARY:
            (name,) = columns_of(expr)
            codes = self.column_codes(coded_column(expr, name))  # first: may bring new values
            return self.dictionaries.key_codes(expr)[codes]
        return self.some_codes(expr, np.arange(len(self), dtype=np.int32))

    def some_codes(self, expr: Expr, rows: Codes) -> Codes:
        """Codes of a key that is a number, of some tuples only; of the others, anything."""
        values, masks = self.number(expr, rows)
        dictionary = self.dictionaries.of_key(expr)
        assert isinstance(dictionary, NumberDictionary)
        if len(rows) == len(self):
            return dictionary.encode_numbers(words_of(values, expr.type), masks)
        codes = dictionary.encode_numbers(words_of(values[rows], expr.type), masks[rows])
        return spread(codes, rows, len(self))

    # ---- values of some tuples

    def column(self, expr: Expr, rows: Codes) -> pa.Array:
        """Any expression as an Arrow column, for some tuples."""
        if isinstance(expr, Col):
            column = self.columns.column(expr.name)
            return column if len(rows) == len(self) else column.take(pa.array(rows))
        if isinstance(expr, Lit):
            return pa.repeat(pa.scalar(expr.value, arrow_type(expr.type)), len(rows))
        extraction = payload_extraction(expr)
        if extraction is not None:
            payload, pattern = extraction
            return extracted(self.column(payload, rows), pattern)
        if is_coded(expr.type):
            (name,) = columns_of(expr)
            codes = self.column_codes(coded_column(expr, name))[rows]
            return self.dictionaries_lookup(expr, name).take(pa.array(codes))
        if expr in self.program.derived:
            vector, mask = self.number(expr, rows)
            values, valid = vector[rows], mask[rows] != 0
        else:
            values, valid = self.evaluate(expr, rows)
        if expr.type is Type.BOOL:
            values = values != 0
        return pa.array(values, arrow_type(expr.type), mask=None if valid.all() else ~valid)

    # ---- what is evaluated for few tuples only

    def passing(self, predicate: Expr, rows: Codes) -> NDArray[np.bool_]:
        """The tuples among some for which a predicate is TRUE; only these are evaluated."""
        values, valid = self.evaluate(predicate, rows)
        return np.asarray((values != 0) & valid)

    def evaluate(self, expr: Expr, rows: Codes) -> tuple[Values, NDArray[np.bool_]]:
        """An expression by numpy, for some tuples: values, and where there are any."""
        wanted, _ = numpy_function(expr)
        vectors: list[Values] = []
        for one in wanted:
            if one.source is InputKind.BYTES:
                vectors += self.payload_vector(one.expr, rows)
            elif len(rows) == len(self):  # all of them
                vectors += self.input(one)
            else:
                vectors += [array[rows] for array in self.input(one)]
        return evaluated(expr, vectors, len(rows))


def evaluated(
    expr: Expr, vectors: Sequence[Values], count: int
) -> tuple[Values, NDArray[np.bool_]]:
    """An expression by numpy, over the vectors it reads: values, and where there are any."""
    _, function = numpy_function(expr)
    with np.errstate(all="ignore"):
        value, valid, overflow = function(*vectors)
    if np.any(overflow):
        raise Overflow(written(expr))
    return (
        np.broadcast_to(np.asarray(value), count),
        np.broadcast_to(np.asarray(valid, np.bool_), count),
    )


def spread(part: Values, rows: Codes, count: int) -> Values:
    """Values of some tuples as a vector of all; of the others, anything."""
    vector = np.zeros(count, part.dtype)
    vector[rows] = part
    return vector


def numbers(column: pa.Array, type: Type) -> Vector:
    """A column of numbers as a vector; NULLs have the value 0."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count and column.type in (pa.bool_(), pa.int64()):
        return present_numbers(column)
    masks = all_valid(len(column))
    if column.null_count:
        masks = validity_of(column)
        column = column.fill_null(False if type is Type.BOOL else 0)
    return column.to_numpy(zero_copy_only=False), masks


def present_numbers(column: pa.Array) -> Vector:
    """The numbers of a column with NULLs, as most sources have: in one pass, or two."""
    bits, data = (np.frombuffer(buffer, np.uint8) for buffer in column.buffers())
    masks = np.empty(len(column), np.uint8)
    unpack_bits(bits, column.offset, masks)
    if column.type == pa.bool_():
        values = np.empty(len(column), np.uint8)
        unpack_bits(data, column.offset, values)
        return (values & masks).view(np.bool_), masks
    words = data.view(np.int64)[column.offset : column.offset + len(column)]
    return words * masks, masks


@compiled_for(column_of(np.uint8), INTEGER, output(np.uint8))
def unpack_bits(bits: NDArray[np.uint8], start: int, out: NDArray[np.uint8]) -> None:
    for i in range(len(out)):
        at = start + i
        out[i] = bits[at >> 3] >> np.uint8(at & 7) & np.uint8(1)


def validity_of(column: pa.Array) -> Masks:
    valid: NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return valid.view(np.uint8)
