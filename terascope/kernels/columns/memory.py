"""Memory of a task that stays with it.

In: nothing. Out: a C library that keeps what arrays give back, instead of handing it to the system
and asking for it anew: a page that the system has just given costs more to touch than to fill.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from functools import cache
from typing import Final

import pyarrow as pa

M_TRIM_THRESHOLD: Final = -1
M_MMAP_MAX: Final = -4
KEPT_BYTES: Final = 2**31 - 1


@cache
def keep_freed_memory() -> None:
    """Once in a process; where the C library is another one nothing happens."""
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
    mallopt(M_MMAP_MAX, 0)
    pa.set_memory_pool(pa.system_memory_pool())


def give_back() -> None:
    """Hand memory that nothing uses to the system, after much of it was freed: what is kept lies in
    pieces between what is still used, and the next large array might find none that is large
    enough.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
