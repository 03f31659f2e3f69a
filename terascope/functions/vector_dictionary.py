"""Values of a vector as coded values, for columns of states that take codes.

In: an Arrow column of text, addresses or bytes, without NULLs. Out: `CodedValues`, in which every
value has a code of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.functions.base import Value
from terascope.functions.values import as_bytes
from terascope.hashing import value_hash, word_of
from terascope.sketches.base import Argument, CodedValues
from terascope.types import Type


class VectorDictionary:
    """The values of one vector, as a dictionary in which value i has the code i + 1."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values

    def values(self, codes: Any = None) -> pa.Array:
        return self._values if codes is None else self._values.take(pa.array(codes - 1))

    def hashes(self, codes: Any) -> NDArray[np.uint64]:
        """The same as a dictionary of a task has for these values."""
        return np.array([hash_of(as_bytes(v)) for v in self.values(codes).to_pylist()], np.uint64)


def hash_of(data: bytes) -> int:
    word = word_of(np.frombuffer(data, np.uint8), 0, len(data))
    return int(value_hash(np.int64(word)))


def vector_of(values: Sequence[Value], type: Type) -> Argument:
    """Values of a type, none of them NULL, as an engine hands them to a column of states."""
    if type is Type.FLOAT:
        return np.array(values, np.float64)
    if type.is_whole or type is Type.BOOL:
        return np.array(values, np.int64)
    return coded(pa.array(values, pa.string() if type is Type.STRING else pa.binary()))


def coded(values: pa.Array) -> CodedValues:
    codes = np.arange(1, len(values) + 1, dtype=np.int32)
    return CodedValues(codes, VectorDictionary(values))
