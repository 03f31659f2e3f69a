"""Groups as bytes: what travels from the low level's tasks to the ones that merge.

In: blocks of groups, whose keys are codes of the worker's dictionaries. Out: for each destination
a few payloads, each an Arrow stream that says everything about itself:

- `epoch`, run-end encoded, for a payload has its groups epoch by epoch;
- `k0`, `k1`, ...: the keys as dictionary columns, with only the values that occur;
- `state`: which slots have seen a value (terascope.kernels.tables.slots);
- `s0`, `s1`, ...: the slots; of a state, its packed bytes.

Integers are as narrow as the payload's values allow, which makes a group of two keys, a count and
a sum 13 bytes instead of 27. LZ4 gave 12, but took 55 ns a group to pack and 35 to unpack instead
of 5 and 2; Spark compresses what it shuffles anyway.

A group's destination is a hash of its epoch and of the values of its keys, so that the same group
of any worker arrives at the same place. A payload is a few megabytes: Spark shuffles few rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa

from terascope.hashing import GOLDEN, mix
from terascope.kernels.columns.arrays import Codes, Hashes, Ints, Values
from terascope.kernels.columns.dictionary import Dictionary
from terascope.kernels.merge.groups import NO_EPOCH, Block, key_codes
from terascope.kernels.merge.states import states_at
from terascope.kernels.tables.slots import Shape
from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.sketches.base import Packed

PAYLOAD_ROWS = 1 << 17
"""About as many groups as one payload has."""
STATE_ROWS = 1 << 12
"""The same for groups with states, which may be some kilobytes each."""
ZSTD = pa.ipc.IpcWriteOptions(compression="zstd")
"""For tuples that leave their host: Arrow has eight bytes for every integer, however small."""


def pack(
    blocks: Iterable[Block],
    dictionaries: Sequence[Dictionary],
    shape: Shape,
    destinations: int,
    seed: int = 0,
    most_rows: int = PAYLOAD_ROWS,
    by_key: bool = False,
) -> Iterator[tuple[int, bytes]]:
    """Payloads and where they go. Another seed spreads the groups in another way. `by_key`: all
    epochs of a group go to the same place.
    """
    if shape.states:
        most_rows = min(most_rows, STATE_ROWS)
    names = ["epoch", *(f"k{i}" for i in range(shape.keys)), "state"]
    names += [f"s{i}" for i in range(len(shape.slots))]
    for some in portions(blocks, most_rows * destinations):
        block = Block.together(some)
        places = np.zeros(len(block.rows), np.int32)
        if destinations > 1:
            choose(hashed_groups(block, dictionaries, shape, seed, by_key), destinations, places)
        for destination, arrays in by_destination(block, dictionaries, shape, destinations, places):
            yield destination, pack_tuples(pa.RecordBatch.from_arrays(arrays, names))


def portions(blocks: Iterable[Block], most: int) -> Iterator[list[Block]]:
    """Blocks, cut and combined to about `most` rows."""
    collected: list[Block] = []
    count = 0
    for block in blocks:
        for start in range(0, len(block.rows), most):
            some = block.between(start, start + most)
            if collected and count + len(some.rows) > most:
                yield collected
                collected, count = [], 0
            collected.append(some)
            count += len(some.rows)
    if collected:
        yield collected


def pack_tuples(*batches: pa.RecordBatch, compressed: bool = False) -> bytes:
    """Batches of the same schema: tuples are not merged, any destination will do."""
    sink = pa.BufferOutputStream()
    options = ZSTD if compressed else None
    with pa.ipc.new_stream(sink, batches[0].schema, options=options) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return bytes(sink.getvalue())


def pack_batches(batches: Sequence[pa.RecordBatch], compressed: bool = False) -> Iterator[bytes]:
    """Pack several batches: those with the same types of columns become one stream."""
    for _, some in groupby(batches, lambda batch: batch.schema):
        yield pack_tuples(*some, compressed=compressed)


def unpack_tuples(payload: bytes) -> Iterator[pa.RecordBatch]:
    with pa.ipc.open_stream(payload) as stream:
        yield from stream


EPOCHS = pa.run_end_encoded(pa.int32(), pa.int64())


def narrow(values: Values) -> pa.Array:
    """Integers as a column of the narrowest type that holds them."""
    least, most = values.min(initial=0), values.max(initial=0)
    for type in (np.int8, np.int16, np.int32):
        if np.iinfo(type).min <= least and most <= np.iinfo(type).max:
            return pa.array(values.astype(type))
    return pa.array(values)


def by_destination(
    block: Block,
    dictionaries: Sequence[Dictionary],
    shape: Shape,
    destinations: int,
    places: Codes,
) -> Iterator[tuple[int, list[pa.Array]]]:
    """Epochs, keys, state and slots of the groups of each destination that has some. `places`: the
    destination of each group.
    """
    runs = len(block.epochs)
    cells = np.repeat(np.arange(runs) * destinations, block.counts) + places
    counts = np.bincount(cells, minlength=runs * destinations).reshape(runs, destinations)
    edges = np.zeros(destinations + 1, np.int64)
    np.cumsum(counts.sum(axis=0), out=edges[1:])
    state = np.empty(len(places), np.int64)
    codes = np.empty((shape.keys, len(places)), np.int32)
    slots = np.empty((len(shape.slots), len(places)), np.int64)
    rows, cursors = np.ascontiguousarray(block.rows), edges[:-1].copy()
    spread(rows, places, cursors, shape.first_word, shape.first_slot, state, codes, slots)
    numbers = [np.full(len(d), -1, np.int32) for d in dictionaries]
    for destination in np.flatnonzero(np.diff(edges)).tolist():
        some = slice(int(edges[destination]), int(edges[destination + 1]))
        keys = zip(codes, dictionaries, numbers, strict=True)
        columns = [
            epoch_runs(block.epochs, counts[:, destination]),
            *(compact(own[some], dictionary, known) for own, dictionary, known in keys),
            narrow(state[some]),
        ]
        states = iter(block.states.stores if block.states is not None else ())
        for j, (slot, kind) in enumerate(zip(slots, shape.slots, strict=True)):
            words = slot[some]
            if kind.state is not None:
                seen = state[some] >> (j + 1) & 1 != 0
                columns.append(states_at(words, seen, next(states)))
                continue
            columns.append(pa.array(words.view(np.float64)) if kind.is_float else narrow(words))
        yield destination, columns


def epoch_runs(epochs: Ints, counts: Ints) -> pa.Array:
    """The epoch of each group, from the number of groups of each epoch."""
    used = np.flatnonzero(counts)
    ends, epochs = pa.array(np.cumsum(counts[used]), pa.int32()), epochs[used]
    values = pa.array(epochs, mask=epochs == NO_EPOCH)
    return pa.RunEndEncodedArray.from_arrays(ends, values, EPOCHS)


def hashed_groups(
    block: Block, dictionaries: Sequence[Dictionary], shape: Shape, seed: int, by_key: bool
) -> Hashes:
    """Hashes of groups: of their keys and, unless all epochs of a group go together, of their
    epochs.
    """
    words = np.where(block.epochs == NO_EPOCH, 0, 2 * block.epochs + 1).astype(np.uint64)
    if by_key:
        words = np.zeros(len(words), np.uint64)
    start = words * np.uint64(GOLDEN) ^ np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
    hashed: Hashes = np.repeat(start, block.counts)
    for i, dictionary in enumerate(dictionaries):
        codes = np.ascontiguousarray(key_codes(block.rows, shape, i))
        take_hashes(hashed, dictionary.hashes(codes))
    return hashed


@compiled_for(output(np.uint64), column(np.uint64))
def take_hashes(state: Hashes, hashes: Hashes) -> None:
    for i in range(len(state)):
        state[i] = mix(state[i] ^ hashes[i])


@compiled_for(column(np.uint64), INTEGER, output(np.int32))
def choose(state: Hashes, destinations: int, places: Codes) -> None:
    for i in range(len(state)):
        spread_out = mix(state[i]) >> np.uint64(32)
        places[i] = np.int32((spread_out * np.uint64(destinations)) >> np.uint64(32))


@compiled_for(
    output(np.int64, 2), column(np.int32), output(np.int64), INTEGER, INTEGER,
    output(np.int64), output(np.int32, 2), output(np.int64, 2),
)  # fmt: skip
def spread(
    rows: Ints,
    places: Codes,
    cursors: Ints,
    first_word: int,
    first_slot: int,
    state: Ints,
    codes: Codes,
    slots: Ints,
) -> None:
    """Rows into columns, each at its destination's cursor."""
    keys = len(codes)
    for i in range(len(rows)):
        at = cursors[places[i]]
        cursors[places[i]] = at + 1
        state[at] = rows[i, 0]
        for k in range(keys):
            word = rows[i, first_word + k // 2]
            codes[k, at] = np.int32(word >> 32 if k % 2 == 0 else word & 0xFFFFFFFF)
        for j in range(len(slots)):
            slots[j, at] = rows[i, first_slot + j]


def compact(codes: Codes, dictionary: Dictionary, numbers: Codes | None = None) -> pa.Array:
    """The values of some codes as a dictionary column that has no value twice.

    `numbers` is -1 for each code of the dictionary, before and after.
    """
    if numbers is None:
        numbers = np.full(len(dictionary), -1, np.int32)
    indices, used = renumber(codes, numbers)
    return pa.DictionaryArray.from_arrays(narrow(indices), dictionary.values(used))


@compiled_for(column(np.int32), output(np.int32))
def renumber(codes: Codes, numbers: Codes) -> tuple[Codes, Codes]:
    """Codes numbered anew in the order they occur, and the old code of each new one."""
    indices = np.empty(len(codes), np.int32)
    used = np.empty(min(len(numbers), len(codes)), np.int32)
    count = 0
    for i in range(len(codes)):
        code = codes[i]
        number = numbers[code]
        if number < 0:
            number = count
            numbers[code] = count
            used[count] = code
            count += 1
        indices[i] = number
    for i in range(count):
        numbers[used[i]] = -1
    return indices, used[:count]


# ---- reading -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unpacked:
    """A payload as arrays, most of them views of its bytes."""

    epochs: pa.Array
    """The epoch of each run."""
    run_ends: Codes
    keys: list[tuple[Codes, pa.Array]]
    """For each key: indices, and their values."""
    state: Ints
    slots: list[Ints | Packed]
    """Words, or packed states."""

    @property
    def rows(self) -> int:
        return len(self.state)


def unpack(payload: bytes) -> Unpacked:
    with pa.ipc.open_stream(payload) as stream:
        batch = stream.read_next_batch()
    runs = batch.column(0)
    columns = {name: batch.column(i) for i, name in enumerate(batch.schema.names)}
    keys = [column for name, column in columns.items() if name.startswith("k")]
    slots = [column for name, column in columns.items() if name[0] == "s" and name != "state"]
    return Unpacked(
        runs.values,
        runs.run_ends.to_numpy(),
        [(column.indices.to_numpy().astype(np.int32), column.dictionary) for column in keys],
        words(columns["state"]),
        [column if pa.types.is_large_binary(column.type) else words(column) for column in slots],
    )


def words(column: pa.Array) -> Ints:
    values: Values = column.to_numpy()
    return values.view(np.int64) if values.dtype == np.float64 else values.astype(np.int64)


def runs_of(unpacked: Unpacked, codes: Codes) -> Codes:
    """One code a run as one a row."""
    return np.repeat(codes, np.diff(unpacked.run_ends, prepend=np.int32(0)))
