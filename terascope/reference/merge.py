"""MERGE: all tuples of all inputs, columns by position.

The order by the merge field concerns how results are delivered; as a set of rows a merge is a
union.
"""

from __future__ import annotations

from terascope.reference.rows import Row


def merge(inputs: list[list[Row]]) -> list[Row]:
    return [row for rows in inputs for row in rows]
