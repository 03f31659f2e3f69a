"""Payloads of a set that has changed since: the same groups, other slots.

In: a payload and what its columns were, when it was written. Out: the same with the columns of the
set that runs now. A slot that is new has seen nothing; a column that is new is NULL: no query that
was there before reads them, and one that is new begins with slices that have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from terascope.kernels.merge.payload import to_bytes, unpack_tuples


@dataclass(frozen=True)
class Layouts:
    """What the columns of payloads are, by the name of their layout."""

    known: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def groups(self, payload: bytes, layout: str, now: Sequence[str], keys: int) -> bytes:
        """Partial groups; `now` has the keys first, `keys` of them, then the slots."""
        before = self.known.get(layout, now)
        if list(before) == list(now):
            return payload
        made = [rearranged(batch, before[keys:], now[keys:]) for batch in unpack_tuples(payload)]
        (batch,) = made
        return to_bytes(batch)

    def rows(
        self, batch: pa.RecordBatch, layout: str, now: Sequence[str], types: Sequence[pa.DataType]
    ) -> list[pa.Array]:
        """The columns of rows, as they are now."""
        before = list(self.known.get(layout, now))
        places = {text: place for place, text in enumerate(before)}
        return [
            batch.column(places[text])
            if text in places and places[text] < batch.num_columns
            else pa.nulls(batch.num_rows, type)
            for text, type in zip(now, types, strict=True)
        ]


def rearranged(batch: pa.RecordBatch, before: Sequence[str], now: Sequence[str]) -> pa.RecordBatch:
    """Partial groups with other slots; see terascope.kernels.merge.payload for the columns."""
    kept = [name for name in batch.schema.names if name == "epoch" or name.startswith("k")]
    state = batch.column("state").to_numpy().astype(np.int64)
    seen = state & 1
    slots: list[pa.Array] = []
    for place, text in enumerate(now):
        if text in before:
            was = before.index(text)
            seen |= ((state >> np.int64(1 + was)) & 1) << np.int64(1 + place)
            slots.append(batch.column(f"s{was}"))
        elif "_float" in text.partition("(")[0]:
            slots.append(pa.array(np.zeros(batch.num_rows)))
        else:
            slots.append(pa.array(np.zeros(batch.num_rows, np.int64)))
    names = [*kept, "state", *(f"s{i}" for i in range(len(now)))]
    arrays = [*(batch.column(name) for name in kept), pa.array(seen), *slots]
    return pa.RecordBatch.from_arrays(arrays, names)
