"""Functions on their way to a worker, as Spark sends them."""

from __future__ import annotations

from collections.abc import Callable

from pyspark import cloudpickle

dumps: Callable[[object], bytes] = cloudpickle.dumps
