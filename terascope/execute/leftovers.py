"""Joins of leftover rows: rows that no task could join by itself.

In: the packed rows of both sides of all task joins. Out: parts of these queries. The leftover rows
at the ends of the tasks are few, and one task joins them faster than Spark converts them to
columns. Where they are many, the high level joins them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.execute.results.parts import Part, write_part
from terascope.execute.rows.task_joins import MEMORY_SHARE, joined
from terascope.execute.rows.top import plain
from terascope.kernels.merge.payload import unpack_tuples
from terascope.physical.delivery import Side, Sink, TaskJoin


def small_leftovers(sizes: Mapping[str, int], memory_bytes: int) -> list[str]:
    """The queries whose leftover rows fit into the memory of one task, by the bytes of each."""
    chosen: list[str] = []
    free = memory_bytes // MEMORY_SHARE
    for query, size in sorted(sizes.items(), key=lambda item: item[1]):
        free -= size
        if free < 0:
            break
        chosen.append(query)
    return chosen


@dataclass(frozen=True)
class LeftoverJoin:
    """Joins the leftover rows of all tasks, each task join at once."""

    joins: tuple[TaskJoin, ...]
    sink: Sink

    def parts(self, packed: Iterable[tuple[int, bytes]]) -> Iterator[Part]:
        """The parts of the joins. `packed`: streams and their packed rows."""
        rows: dict[int, list[pa.RecordBatch]] = {}
        for stream, payload in packed:
            rows.setdefault(stream, []).extend(unpack_tuples(payload))
        for pairing in self.joins:
            sides = [together(rows.pop(side.rest, []), side) for side in pairing.sides]
            made = joined(pairing, sides[0], sides[1])
            yield write_part(self.sink, pairing.query, pairing.fields, made)


def together(batches: Sequence[pa.RecordBatch], side: Side) -> pa.RecordBatch:
    if batches:
        return pa.concat_batches([plain(batch) for batch in batches])
    empty = [pa.array([], arrow_type(f.type)) for f in side.fields]
    return pa.RecordBatch.from_arrays(empty, [f.name for f in side.fields])


def leftover_bytes(reports: Sequence[str]) -> Counter[str]:
    """Bytes of the leftover rows of each query, summed over the reports of tasks."""
    sizes: Counter[str] = Counter()
    for text in reports:
        values = json.loads(text)
        sizes[values["query"]] += values["bytes"]
    return sizes
