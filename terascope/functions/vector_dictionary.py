"""Values of a vector as coded values, for columns of states that take codes.

In: an Arrow column of text, addresses or bytes, without NULLs. Out: `CodedValues`, in which every
value has a code of its own.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.functions.values import as_bytes
from terascope.sketches.base import CodedValues


class VectorDictionary:
    """The values of one vector, as a dictionary in which value i has the code i + 1."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values

    def values(self, codes: Any = None) -> pa.Array:
        return self._values if codes is None else self._values.take(pa.array(codes - 1))

    def hashes(self, codes: Any) -> NDArray[np.uint64]:
        digests = (
            blake2b(as_bytes(value), digest_size=8).digest()
            for value in self.values(codes).to_pylist()
        )
        return np.frombuffer(b"".join(digests), np.uint64)


def coded(values: pa.Array) -> CodedValues:
    codes = np.arange(1, len(values) + 1, dtype=np.int32)
    return CodedValues(codes, VectorDictionary(values))
