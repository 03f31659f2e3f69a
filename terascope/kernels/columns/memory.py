"""Memory that stays with a task.

In: nothing. Out: a C library that keeps freed memory, instead of returning it to the system and
requesting it anew: a page that is fresh from the system costs more to touch than to fill.
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
    """Return unused memory to the system after much of it was freed: it lies in pieces between
    arrays in use, and the next large array might find no piece that is large enough.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
