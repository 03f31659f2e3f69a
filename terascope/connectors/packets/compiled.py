"""How the packet kernels are compiled, and the loads all of them share.

In: a function over numpy arrays. Out: machine code of it, kept on disk between runs, that frees the
interpreter lock.

Numba's cache notices changes of the file a kernel stands in, not of the files it calls into.
Kernels therefore call only their own file and the loads below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile at the first call, or load what an earlier process compiled."""
    try:
        return cast(Function, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no folder to keep machine code in, neither beside the source nor at home
        return cast(Function, numba.njit(nogil=True)(function))


@compiled
def load8(buffer: Bytes, at: int) -> int:
    """One byte. Widened by hand: numba's unsigned and signed integers together make floats."""
    return int(np.int64(buffer[at]))


@compiled
def load16(buffer: Bytes, at: int) -> int:
    """Two bytes in network order."""
    return (load8(buffer, at) << 8) | load8(buffer, at + 1)


@compiled
def load32(buffer: Bytes, at: int, big: bool) -> int:
    """Four bytes, unsigned, in the byte order told."""
    if big:
        return (load16(buffer, at) << 16) | load16(buffer, at + 2)
    return (
        (load8(buffer, at + 3) << 24)
        | (load8(buffer, at + 2) << 16)
        | (load8(buffer, at + 1) << 8)
        | load8(buffer, at)
    )
