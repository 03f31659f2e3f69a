"""The loads and stores of unaligned words that all packet kernels share.

Numba's cache notices changes of the file a kernel stands in, not of the files it calls into.
Kernels therefore call only their own file and what stands below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from terascope.machine_code import compiled

Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int64]

SLACK: Final = 64
"""Bytes that can be read after the last one of a window, and written after the last one of a buffer
of addresses. What is read there is never used: loads need no test of where the packet ends, only
their use does."""


def word_at(context: Any, builder: Any, array_type: Any, array: Any, at: Any, bits: int) -> Any:
    """A pointer to the word that starts at any byte of an array."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), ir.IntType(bits).as_pointer())


def loading(bits: int, swapped: bool) -> Callable[[Bytes, int], int]:
    """A load of one unaligned word, widened to 64 bits, as the single instruction it is.

    Indexing byte by byte costs a test for a negative index and a shift for each of them. Widened
    to signed: numba's unsigned and signed integers together make floats.
    """

    def typed(_: Any, buffer: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, place = arguments
            pointer = word_at(context, builder, signature.args[0], array, place, bits)
            word = builder.load(pointer, align=1)
            word = builder.bswap(word) if swapped else word
            return builder.zext(word, ir.IntType(64)) if bits < 64 else word

        return types.int64(buffer, types.int64), generate

    return cast(Callable[[Bytes, int], int], intrinsic(typed))


def storing() -> Callable[[Bytes, int, int], None]:
    """A store of an unaligned 64-bit word in the machine's order."""

    def typed(_: Any, buffer: Any, at: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, place, value = arguments
            pointer = word_at(context, builder, signature.args[0], array, place, 64)
            builder.store(value, pointer, align=1)
            return context.get_dummy_value()

        return types.void(buffer, types.int64, types.int64), generate

    return cast(Callable[[Bytes, int, int], None], intrinsic(typed))


load8: Final = loading(8, swapped=False)
load16: Final = loading(16, swapped=True)
"""Two bytes in network order."""
load32_network: Final = loading(32, swapped=True)
load32_machine: Final = loading(32, swapped=False)
load64: Final = loading(64, swapped=False)
"""Eight bytes in the machine's order, as they lie."""
store64: Final = storing()


@compiled
def load32(buffer: Bytes, at: int, big: bool) -> int:
    """Four bytes, unsigned, big-endian or not."""
    return load32_network(buffer, at) if big else load32_machine(buffer, at)
