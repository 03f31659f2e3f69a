"""Where the groups of a bounded table stand: for measurements and tests.

In: a table. Out: the places that the hashes of groups name, and the lengths of chains.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from terascope.kernels.codegen.generated_modules import indent, load_module
from terascope.kernels.columns.arrays import Codes, Ints
from terascope.kernels.tables.bounded_tables import BoundedTable, hashed, source
from terascope.kernels.tables.slots import Shape, load_words
from terascope.kernels.tables.table_policies import Policy


def places(table: BoundedTable, codes: Sequence[Codes]) -> tuple[Ints, Ints]:
    """The first and the second place of groups; a bucket is a first place."""
    count = len(codes[0]) if codes else 1
    first, second = np.zeros(count, np.int64), np.zeros(count, np.int64)
    place_kernel(table.shape, table.policy)(np.uint64(table.capacity), first, second, *codes)
    return first, second


@cache
def place_kernel(shape: Shape, policy: Policy) -> Any:
    body = [
        *load_words(shape),
        *hashed(shape),
        "first[i] = place(h, capacity)",
        "second[i] = place(h * SECOND_FACTOR, capacity)",
    ]
    parameters = ", ".join(["capacity", "first", "second", *(f"c{k}" for k in range(shape.keys))])
    lines = [
        "",
        "",
        "@kernel",
        f"def places({parameters}):",
        "    for i in range(first.shape[0]):",
        *indent(body, 2),
        "",
    ]
    return load_module(source(shape, policy) + "\n".join(lines)).places


def chain_lengths(table: BoundedTable) -> Ints:
    """Groups in each bucket of a chained table."""
    if table.policy != "lru":
        raise ValueError(f"a {table.policy} table has no chains")
    _, _, heads, links = table.storage
    following = links.reshape(-1, 4)[:, 0].astype(np.int64)
    lengths = np.zeros(table.capacity, np.int64)
    entries = heads.astype(np.int64)
    while len(present := np.flatnonzero(entries < table.capacity)):
        lengths[present] += 1
        entries[present] = following[entries[present]]
    return lengths
