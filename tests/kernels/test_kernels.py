from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import INTEGER, column, compiled_for

THREADS = 8


def test_threads_may_ask_for_a_kernel_at_the_same_moment() -> None:
    """As those that write the results of several queries do."""

    @compiled_for(column(np.int64), INTEGER)
    def total(values: NDArray[np.int64], start: int) -> int:
        for value in values:
            start += value
        return start

    together = Barrier(THREADS)

    def ask(start: int) -> int:
        together.wait()
        return total(np.arange(10), start)

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(ask, range(THREADS))) == [45 + start for start in range(THREADS)]
