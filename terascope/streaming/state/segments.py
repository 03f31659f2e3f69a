"""The slice store: packed partials and rows of slices, as segments of files.

In: payloads (terascope.kernels.merge.payload) that tasks made in one micro-batch. Out: `Segment`s,
which say where each payload is and which slices it has; pure data in the state of the batch. A file
is written once, under a name that is unique in every attempt of a task, and is removed when none of
its segments is needed any more. Files that the state does not name do not count.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.diagnostic import OutputError, as_mistake
from terascope.files import is_ours, make_folder, open_file
from terascope.functions.base import ValueMistake
from terascope.functions.packed_states import pickled_by
from terascope.functions.states import not_read
from terascope.kernels.merge.payload import pack_tuples, unpack_tuples
from terascope.physical.stream.plan import LowStream
from terascope.physical.stream.slice_streams import SliceValue

SegmentKind: TypeAlias = Literal["groups", "rows"]
"""Partial groups, to be merged when their slice closes; or rows that the high level reads."""


class Segment(NamedTuple):
    """A payload in the store. In JSON it is a list."""

    stream: str
    """The key of its stream (terascope.physical.stream.plan)."""
    kind: SegmentKind
    destination: int
    file: str
    offset: int
    length: int
    rows: int
    low: SliceValue | None
    high: SliceValue | None
    """The last slice with content; `low` is the first. None when it has none."""
    unsliced: bool = False
    """Whether it also has rows of no slice (NULL), which stay to the end."""
    layout: str = ""
    """The layout of its payload; a changed set may have another one."""

    def has_before(self, value: SliceValue | None) -> bool:
        """Whether it has rows of a slice before this one; None: the end, everything."""
        return value is None or (self.low is not None and self.low < value)

    def ends_before(self, value: SliceValue) -> bool:
        """Whether all its rows are of slices before this one."""
        return not self.unsliced and self.high is not None and self.high < value


@dataclass(frozen=True)
class Stored:
    """The storage of the payloads of a stream."""

    key: str
    column: str | None
    """The column that distinguishes the slices of rows; groups have their epochs."""
    shelf: str
    """The name of the file: streams with equal retention share one."""
    layout: str = ""
    descending: bool = False
    """Whether the column falls with time."""
    texts: tuple[str, ...] = ()
    """The expressions of the columns as text; they identify the layout."""

    @classmethod
    def of(cls, stream: LowStream) -> Stored:
        return cls(
            stream.key, stream.kept_by, stream.shelf, stream.layout, stream.descending, stream.texts
        )


class SegmentWriter:
    """Writes the files of one task attempt: streams with equal retention share a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, tuple[str, BinaryIO]] = {}
        self.segments: list[Segment] = []

    def append(self, stored: Stored, kind: SegmentKind, destination: int, payload: bytes) -> None:
        """Write a payload. Values that fall with time are recorded with the other sign, so that
        later values are larger.

        Raises:
            OutputError: the store cannot be written.
        """
        is_rows = kind == "rows"
        rows, low, high, unsliced = extent(payload, stored.column if is_rows else "epoch")
        if is_rows and stored.descending and low is not None and high is not None:
            low, high = -high, -low
        if not rows:
            return
        name, file = self._file(stored.shelf)
        with self._writing():
            offset = file.tell()
            file.write(payload)
        made = Segment(
            stored.key, kind, destination, name, offset, len(payload), rows, low, high, unsliced,
            stored.layout,
        )  # fmt: skip
        self.segments.append(made)

    def _file(self, shelf: str) -> tuple[str, BinaryIO]:
        if shelf not in self._files:
            name = f"{uuid.uuid4().hex}.slices"
            with self._writing():
                make_folder(self._folder)
                self._files[shelf] = name, open_file(self._folder / name, "xb")
        return self._files[shelf]

    def reports(self) -> Iterator[tuple[str, str]]:
        for segment in self.segments:
            yield "segment", json.dumps(segment)

    def close(self) -> None:
        with self._writing():
            for _, file in self._files.values():
                file.close()

    def _writing(self) -> AbstractContextManager[None]:
        return as_mistake(OutputError, f"cannot write slices to '{self._folder}'")

    def discard(self) -> None:
        for name, file in self._files.values():
            with suppress(OSError):  # there is no room for what it still has to write
                file.close()
            (self._folder / name).unlink(missing_ok=True)

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


def read_segment(folder: Path, segment: Segment) -> bytes:
    """The payload of a segment.

    Raises:
        ValueMistake: it would run code when it is read, and other users may have written it.
    """
    with (folder / segment.file).open("rb") as file:
        file.seek(segment.offset)
        payload = file.read(segment.length)
    if not is_ours(folder):
        refuse_pickles(payload)
    return payload


def refuse_pickles(payload: bytes) -> None:
    """Refuse states of users' aggregates that are pickles."""
    for batch in unpack_tuples(payload):
        for column in batch.columns:
            name = pickled_by(column)
            if name is not None:
                raise ValueMistake(not_read(name))


def extent(
    payload: bytes, column: str | None
) -> tuple[int, SliceValue | None, SliceValue | None, bool]:
    """The rows, the first and the last slice of a payload, and whether some rows have no slice."""
    rows = 0
    lows: list[SliceValue] = []
    highs: list[SliceValue] = []
    unsliced = column is None
    for batch in unpack_tuples(payload):
        rows += batch.num_rows
        if column is None or not batch.num_rows:
            continue
        values = batch.column(column)
        if isinstance(values, pa.RunEndEncodedArray):
            values = values.values
        unsliced = unsliced or values.null_count > 0
        found = pc.min_max(values)
        if found["min"].is_valid:
            lows.append(found["min"].as_py())
            highs.append(found["max"].as_py())
    return rows, min(lows, default=None), max(highs, default=None), unsliced


def groups_between(
    payload: bytes, low: SliceValue | None, high: SliceValue | None
) -> Iterator[bytes]:
    """The partials of the slices from `low` up to, and without, `high`; None: no limit on that
    side. Partials of no slice come at the end, when there is no upper limit.
    """
    for batch in unpack_tuples(payload):
        epochs = batch.column("epoch")
        runs = list(zip(epochs.values.to_pylist(), epochs.run_ends.to_pylist(), strict=True))
        kept: list[tuple[int, int]] = []
        start = 0
        for value, end in runs:
            if wanted(value, low, high):
                if kept and kept[-1][1] == start:
                    kept[-1] = (kept[-1][0], end)
                else:
                    kept.append((start, end))
            start = end
        if kept == [(0, batch.num_rows)]:
            yield payload if len(runs) else pack_tuples(batch)
            continue
        for first, last in kept:
            yield pack_tuples(whole(batch.slice(first, last - first)))


def wanted(value: SliceValue | None, low: SliceValue | None, high: SliceValue | None) -> bool:
    if value is None:
        return high is None
    return (low is None or value >= low) and (high is None or value < high)


def whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A slice of run-end encoded columns with run ends of its own, to be sent alone."""
    arrays = []
    for column in batch.columns:
        if isinstance(column, pa.RunEndEncodedArray):
            column = pc.run_end_encode(pc.run_end_decode(column), run_end_type=pa.int32())
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


@dataclass(frozen=True)
class Layouts:
    """The columns of payloads, by the name of their layout."""

    known: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def groups(self, payload: bytes, layout: str, now: Sequence[str], keys: int) -> bytes:
        """Partial groups in the present layout: `now` has `keys` keys, then the slots."""
        before = self.known.get(layout, now)
        if list(before) == list(now):
            return payload
        made = [rearranged(batch, before[keys:], now[keys:]) for batch in unpack_tuples(payload)]
        (batch,) = made
        return pack_tuples(batch)

    def rows(
        self, batch: pa.RecordBatch, layout: str, now: Sequence[str], types: Sequence[pa.DataType]
    ) -> list[pa.Array]:
        """The columns of rows, in the present layout."""
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
        elif text.startswith("state["):
            slots.append(pa.nulls(batch.num_rows, pa.large_binary()))
        elif "_float" in text.partition("(")[0]:
            slots.append(pa.array(np.zeros(batch.num_rows)))
        else:
            slots.append(pa.array(np.zeros(batch.num_rows, np.int64)))
    names = [*kept, "state", *(f"s{i}" for i in range(len(now)))]
    arrays = [*(batch.column(name) for name in kept), pa.array(seen), *slots]
    return pa.RecordBatch.from_arrays(arrays, names)
