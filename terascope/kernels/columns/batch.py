"""A batch of a source as vectors: the columns encoded for kernels.

In: Arrow batches of a source. Out: numbers as arrays with a validity, text and addresses as codes.
A dictionary lives as long as its task. A vector is made once for each batch, at its first use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import arrow_type
from terascope.functions.overflow import Overflow, telling_states
from terascope.kernels.codegen.lookups import member_vector, slice_values
from terascope.kernels.codegen.program import Computation, Program, arrays_of, numpy_function
from terascope.kernels.codegen.statements import Input, InputKind, is_coded, is_number
from terascope.kernels.columns.arrays import (
    Codes,
    Flags,
    Hashes,
    Ints,
    Masks,
    Values,
    Vector,
    all_valid,
    decoded,
    numbers,
    spread,
    validity_of,
)
from terascope.kernels.columns.dictionary import NULL_CODE, NumberDictionary
from terascope.kernels.columns.payload_tests import (
    extracted,
    payload_column,
    payload_extraction,
    payload_values,
)
from terascope.kernels.columns.task_dictionaries import (
    TaskDictionaries,
    coded_column,
    function_of_addresses,
)
from terascope.plan.expr import Call, Col, Expr, Lit, marked_column
from terascope.plan.show import written
from terascope.types import Type

Fact = TypeVar("Fact")


@dataclass
class Facts:
    """A cache of values that several queries use."""

    _facts: dict[object, tuple[Any, ...]] = field(default_factory=dict, init=False)

    def once(self, name: object, compute: Callable[..., Fact], *args: Any) -> Fact:
        """A value that several queries use, computed for the first of them.

        A name may hold the identity of an argument: arguments are kept as long as the value is, so
        that no other array can get the same identity.
        """
        if name not in self._facts:
            self._facts[name] = compute(*args), args
        fact: Fact = self._facts[name][0]
        return fact


@dataclass
class VectorBatch(Facts):
    """One batch of a source, seen as vectors."""

    columns: pa.RecordBatch
    dictionaries: TaskDictionaries
    program: Program
    derive: Computation

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    # ---- what the kernels read

    def inputs(self, wanted: tuple[Input, ...]) -> list[Values]:
        return [array for one in wanted for array in self.input(one)]

    def input(self, wanted: Input) -> Vector:
        return self.once(wanted, self._input, wanted)

    def _input(self, wanted: Input) -> Vector:
        expr = wanted.expr
        if wanted.source is InputKind.NUMBER:
            assert isinstance(expr, Col)
            return numbers(self.columns.column(expr.name), expr.type)
        if wanted.source is InputKind.BYTES:
            return self.payload_vector(expr, np.arange(len(self), dtype=np.int32))
        if wanted.source is InputKind.SLICES:
            assert isinstance(expr, Call)
            times, valid = self.input(Input(InputKind.NUMBER, expr.args[0]))
            return slice_values(expr, times), valid
        if wanted.source is InputKind.MEMBERS:
            return self.members_vector(expr)
        if isinstance(expr, Col):  # the codes themselves
            codes = self.column_codes(expr)
            return codes.astype(np.int64), (codes != NULL_CODE).view(np.uint8)
        simple = function_of_addresses(expr)
        if simple is not None:  # takes less time than to look every address up
            return numbers(simple(self.columns.column(coded_column(expr).name)), expr.type)
        codes = self.column_codes(coded_column(expr))  # first: it may bring new values
        by_code = numbers(self.dictionaries.lookup(expr), expr.type)
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

    def payload_vector(self, expr: Expr, rows: Codes) -> Vector:
        column = self.columns.column(payload_column(expr))
        values = payload_values(expr, column, rows)
        if expr.type is Type.BOOL:
            values = values != 0
        if not column.null_count:
            return values, all_valid(len(rows))
        return values, self.once(("present", payload_column(expr)), validity_of, column)[rows]

    def prefilter_bits(self, prefilter: Computation, evaluated: Ints) -> list[Hashes]:
        """The bit vector of each tuple: a bit for each shared predicate, set where it is TRUE
        (dissertation 3.4.2). `evaluated`: the evaluations of each predicate are added to it.
        """
        bits = arrays_of(self.program.prefilter, len(self))
        with np.errstate(all="ignore"):
            prefilter(len(self), evaluated, self.input, bits)
        return list(bits.values())

    # ---- derived vectors

    def number(self, expr: Expr, rows: Codes) -> Vector:
        """A number for all tuples of the batch; an overflow among `rows` is an error."""
        if isinstance(expr, Col):
            return self.input(Input(InputKind.NUMBER, expr))
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
            valid: Flags = present.is_valid().to_numpy(zero_copy_only=False)
            return valid.view(np.uint8)
        if is_coded(expr.type):
            return np.asarray(self.key_codes(expr) != NULL_CODE).view(np.uint8)
        return self.number(expr, rows)[1]

    @cached_property
    def _derived(self) -> dict[Expr, tuple[Values, Masks, Masks | None]]:
        arrays = arrays_of(self.program.derive, len(self))
        with np.errstate(all="ignore"):
            self.derive(len(self), np.zeros(0, np.int64), self.input, arrays)
        return {
            expr: (arrays[f"v{k}"], arrays[f"m{k}_"], arrays.get(f"q{k}"))
            for k, expr in enumerate(self.program.derived)
        }

    # ---- codes

    def column_codes(self, column: Col) -> Codes:
        encode = self.dictionaries.of_column(column).encode
        return self.once(("column", column), encode, self.columns.column(column.name))

    def key_codes(self, expr: Expr) -> Codes:
        return self.once(("key", expr), self._key_codes, expr)

    def _key_codes(self, expr: Expr) -> Codes:
        if isinstance(expr, Col) and not is_number(expr.type):
            return self.column_codes(expr)
        if isinstance(expr, Lit):
            value = pa.array([expr.value], arrow_type(expr.type))
            return np.repeat(self.dictionaries.of_key(expr).encode(value), len(self))
        if is_coded(expr.type) or expr.type is Type.BINARY:
            codes = self.column_codes(coded_column(expr))  # first: it may bring new values
            return self.dictionaries.key_codes(expr)[codes]
        return self.some_codes(expr, np.arange(len(self), dtype=np.int32))

    def some_codes(self, expr: Expr, rows: Codes) -> Codes:
        """Codes of a key that is a number, of some tuples only; of the others, anything."""
        values, masks = self.number(expr, rows)
        dictionary = self.dictionaries.of_key(expr)
        assert isinstance(dictionary, NumberDictionary)
        if len(rows) == len(self):
            return dictionary.encode_numbers(values, masks)
        codes = dictionary.encode_numbers(values[rows], masks[rows])
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
            codes = self.column_codes(coded_column(expr))[rows]  # first: it may bring new values
            return self.dictionaries.lookup(expr).take(pa.array(codes))
        if expr in self.program.derived:
            vector, mask = self.number(expr, rows)
            values, valid = vector[rows], mask[rows] != 0
        else:
            values, valid = self.evaluate(expr, rows)
        if expr.type is Type.BOOL:
            values = values != 0
        return pa.array(values, arrow_type(expr.type), mask=None if valid.all() else ~valid)

    # ---- what is evaluated for few tuples only

    def passing(self, predicate: Expr, rows: Codes) -> Flags:
        """The tuples among some for which a predicate is TRUE; only these are evaluated."""
        values, valid = self.evaluate(predicate, rows)
        return np.asarray((values != 0) & valid)

    def evaluate(self, expr: Expr, rows: Codes) -> tuple[Values, Flags]:
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


def evaluated(expr: Expr, vectors: Sequence[Values], count: int) -> tuple[Values, Flags]:
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


NOTHING: Final = Program((), (), ())


class FinishedRows:
    """All rows of a batch."""

    def __init__(self, columns: pa.RecordBatch) -> None:
        self._batch = VectorBatch(columns, TaskDictionaries(), NOTHING, lambda *_: None)
        self._everybody = np.arange(columns.num_rows, dtype=np.int32)

    def column(self, expr: Expr) -> pa.Array:
        marked = marked_column(expr)
        if marked is not None:
            return where_true(*map(self.column, marked))
        if isinstance(expr, Call) and expr.function.of_states:
            return self.of_states(expr)
        return self._batch.column(expr, self._everybody)

    def of_states(self, expr: Call) -> pa.Array:
        """A function of packed states."""
        function, type = expr.function, arrow_type(expr.type)
        arguments = [decoded(self.column(arg)) for arg in expr.args]
        with telling_states():
            made = None if function.columns is None else function.columns(*arguments)
            if made is None:
                made = pa.array(list(map(function, *(one.to_pylist() for one in arguments))), type)
        return made.cast(type)

    def passing(self, predicate: Expr) -> Flags:
        """The mask of rows for which a predicate is TRUE."""
        return self._batch.passing(predicate, self._everybody)


def where_true(marker: pa.Array, column: pa.Array) -> pa.Array:
    """The values of a column where a marker is TRUE, NULL elsewhere."""
    if pa.types.is_dictionary(column.type):
        codes = pc.if_else(marker.fill_null(False), column.indices, None)
        return pa.DictionaryArray.from_arrays(codes, column.dictionary)
    return pc.if_else(marker.fill_null(False), column, None)
