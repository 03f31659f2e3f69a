"""Arrival times: when a tuple arrived by the wall clock, whatever time the tuple itself has.

In: splits, and the time at which they were planned: for a micro-batch its own, for a batch that of
the whole run. Out: splits that carry this time, so that reading one again gives the same time, and
the columns computed from it. GSQL's accessor for it is `get_system_time`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from terascope.connectors.base import POSITION, TICK_NS, Column, ReadReport, Split
from terascope.types import Type

ACCESSOR: Final = "get_system_time"
TICKS_NS: Final[Mapping[str, int]] = {f"#arrival_{unit}": tick for unit, tick in TICK_NS.items()}
"""int64 pseudo-columns that every source has, and how long a tick of each is."""
ARRIVAL_OPTION: Final = "#arrived"
"""The option of a split that says when its tuples arrived, in nanoseconds."""


def arrival_column(unit: str) -> str:
    """The column with the arrival in a unit of a clock: s, ms, us or ns."""
    return f"#arrival_{unit}"


def is_arrival(column: str) -> bool:
    return column in TICKS_NS


def arrived(splits: Iterable[Split], columns: Iterable[Column], at_ns: int) -> list[Split]:
    """Splits whose tuples arrived at a time, if one of the columns is an arrival time."""
    asked = [column.name for column in columns if is_arrival(column.name)]
    if not asked:
        return list(splits)
    option = (ARRIVAL_OPTION, str(at_ns))
    bounds = tuple((name, at_ns // TICKS_NS[name], at_ns // TICKS_NS[name]) for name in asked)
    return [
        replace(split, options=(*split.options, option), bounds=(*split.bounds, *bounds))
        for split in splits
    ]


def held_columns(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns that the connector reads: one at least, because the number of tuples is that of
    its values.
    """
    held = tuple(column for column in columns if not is_arrival(column.name))
    return held or (Column(POSITION, Type.LLONG),)


def with_arrival(
    batches: Iterable[pa.RecordBatch],
    columns: Sequence[Column],
    at_ns: int,
    report: ReadReport,
) -> Iterator[pa.RecordBatch]:
    """Batches of held columns with the arrival columns in their places."""
    names = [column.name for column in columns]
    for batch in batches:
        held = {name: batch.column(place) for place, name in enumerate(batch.schema.names)}
        for name in names:
            if is_arrival(name):
                value = at_ns // TICKS_NS[name]
                held[name] = pa.array(np.full(batch.num_rows, value, np.int64))
                if batch.num_rows:
                    report.horizon[name] = max(report.horizon.get(name, value), value)
        yield pa.RecordBatch.from_arrays([held[name] for name in names], names)
