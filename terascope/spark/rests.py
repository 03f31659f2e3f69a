"""What tasks could not join by themselves: joined in one task when it is little.

In: the packed rows of both sides that went up, of all joins. Out: parts of these queries. The rows
at the ends of the tasks are few, and to make columns of Spark of them takes longer than to join
them; where they are many, Spark joins them (terascope.spark.run).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from terascope.connectors.base import arrow_type
from terascope.execute.results.parts import Part, write_part
from terascope.execute.rows.pairs import MEMORY_SHARE, joined
from terascope.execute.rows.top import plain
from terascope.kernels.merge.payload import unpack_tuples
from terascope.physical.delivery import Sink
from terascope.physical.task_join import Pairing, Side
from terascope.spark.parts import TOLD
from terascope.spark.told import packed_pairs
from terascope.spark.worker import working


def small_rests(sizes: Mapping[str, int], memory_bytes: int) -> list[str]:
    """The queries whose rests fit into the memory of one task, by the bytes of each."""
    chosen: list[str] = []
    free = memory_bytes // MEMORY_SHARE
    for query, size in sorted(sizes.items(), key=lambda item: item[1]):
        free -= size
        if free < 0:
            break
        chosen.append(query)
    return chosen


def join_rests(df: DataFrame, pairings: Sequence[Pairing], sink: Sink) -> list[Part]:
    """Join the packed rows of both sides, which stand among all rows of tasks, in one task."""
    numbers = [side.rest for pairing in pairings for side in pairing.sides]
    packed = df.filter((F.col("kind") == "rows") & F.col("stream").isin(numbers))
    joining = RestJoining(tuple(pairings), sink)
    together = packed.select("stream", "payload").coalesce(1)
    return [Part.of(row[0]) for row in together.mapInArrow(joining, TOLD).collect()]


@dataclass(frozen=True)
class RestJoining:
    """Joins the rows of all tasks, each pairing's in one go."""

    pairings: tuple[Pairing, ...]
    sink: Sink

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with working():
            for part in self.parts(packed_pairs(batches)):
                yield pa.RecordBatch.from_arrays([pa.array([part.told()])], ["told"])

    def parts(self, packed: Iterable[tuple[int, bytes]]) -> Iterator[Part]:
        """`packed`: streams and their packed rows."""
        rows: dict[int, list[pa.RecordBatch]] = {}
        for stream, payload in packed:
            rows.setdefault(stream, []).extend(unpack_tuples(payload))
        for pairing in self.pairings:
            sides = [together(rows.pop(side.rest, []), side) for side in pairing.sides]
            made = joined(pairing, sides[0], sides[1])
            yield write_part(self.sink, pairing.query, pairing.fields, made)


def together(batches: Sequence[pa.RecordBatch], side: Side) -> pa.RecordBatch:
    if batches:
        return pa.concat_batches([plain(batch) for batch in batches])
    empty = [pa.array([], arrow_type(f.type)) for f in side.fields]
    return pa.RecordBatch.from_arrays(empty, [f.name for f in side.fields])


def rest_sizes(told: Sequence[str]) -> Counter[str]:
    """What tasks told of their rests: bytes, by query."""
    sizes: Counter[str] = Counter()
    for text in told:
        values = json.loads(text)
        sizes[values["query"]] += values["bytes"]
    return sizes
