"""Aggregation tables of fixed size: the cache next to the source (paper 1 section 6, 4 III-C).

In: batches of tuples as columns: epochs, key codes, arguments of slots, and a selection vector.
Out: partial groups as rows of a Shape, in the order in which they leave the table: evicted because
another group needs the place, or flushed because their epoch is over.

Whatever the policy, the partials of a group, combined, are the group: nothing is lost, nothing is
counted twice. If the epochs of the tuples never decrease, neither do those of the rows.

Flushing at the end of an epoch is eager (all groups at once, when the first tuple of the next epoch
comes) or lazy: the groups are old then, and every arriving tuple sends one of them off. An old one
whose place is needed leaves at that moment; before a new group must leave, and when the epoch
changes again, all old ones do. A tuple that is late joins the old group it belongs to, or leaves as
a group of its own.

Sums of integers never wrap: a group whose sum would overflow leaves and starts again.

The machine code is written for one shape of row and one policy (terascope.kernels.tables.
table_policies): `add` takes tuples in until the input or the output buffer ends, `flush` lets all
groups leave, or as many as the output buffer takes. Places are offsets into the table, which is one
run of 64-bit words. Behind the last place stands a spare one: a late tuple becomes a group of its
own there and leaves at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from terascope.hashing import random_hash
from terascope.kernels.codegen.generated_modules import indent, load_module
from terascope.kernels.columns.arrays import Codes, Masks, Rows, Values
from terascope.kernels.tables import slots
from terascope.kernels.tables.slots import Shape
from terascope.kernels.tables.table_policies import POLICY_CODE, STORAGE, Policy, finding
from terascope.machine_code import column, compile_for, output

Flush: TypeAlias = Literal["eager", "lazy"]
Taker: TypeAlias = Callable[[Rows], None]
"""Takes rows [k, stride] from a buffer that is reused: rows that shall stay must be copied."""

OUTPUT_ROWS = 1024
"""Large enough that returning to Python costs nothing, small enough for the cache."""

LEAST_OUTPUT_ROWS = 3
NOTHING = 0xFFFFFFFF
LINK_BYTES = 20
"""Bytes of an entry of a chained table for chaining: the head of its bucket, and four links."""


class Counters(NamedTuple):
    """Counts of a table since it was made. Rows that left: evictions + flushed + late."""

    probes: int
    """Tuples."""
    misses: int
    """Tuples whose group was not there."""
    evictions: int
    """Groups that left before their epoch was over."""
    flushed: int
    """Groups that left because it was."""
    late: int
    """Tuples of an earlier epoch that left as groups of their own."""
    backlog: int
    """The most groups that ever became old at once."""


STATE_WORDS = (
    "CAPACITY",  # places of the table
    "ROOM",  # rows of the output buffer
    "EAGER",  # whether all groups leave at the end of their epoch at once
    "STARTED",  # whether there was a tuple yet, so that there is a current epoch
    "CURRENT",  # the epoch whose groups are new; all others in the table are old
    "OCCUPIED",  # groups in the table
    "OLD",  # old groups among them
    "OUT",  # rows in the output buffer
    "CURSOR",  # the place from which groups are looked for that shall leave
    "FREE",  # the first free entry (chained table)
    "PAID",  # whether the present tuple has sent an old group off already
    "LATE_RUN",  # late tuples one right after the other
    "LATE_AT",  # the position of the last of them, seen from the first tuple of the call
    *(name.upper() for name in Counters._fields),
)
"""The state of a table beside its rows: one 64-bit word each."""

LATE_LIMIT = 64
"""More late tuples in a row mean that the clock was set back, and not that tuples overtook each
other: their epoch becomes the current one."""


class BoundedTable:
    def __init__(
        self,
        shape: Shape,
        policy: Policy,
        capacity: int,
        flush: Flush,
        taker: Taker,
        output_rows: int = OUTPUT_ROWS,
    ) -> None:
        if not shape.with_epoch:
            raise ValueError("the rows of a bounded table carry their epoch")
        if not 1 <= capacity < 2**31 or output_rows < LEAST_OUTPUT_ROWS:
            raise ValueError(f"no table of {capacity} groups that gives {output_rows} rows at once")
        self.shape = shape
        self.policy = policy
        self.capacity = capacity
        self._taker = taker
        self._module = compiled(shape, policy)
        self._table = np.zeros((capacity + 1) * shape.stride, np.int64)
        self._out = np.zeros((output_rows, shape.stride), np.int64)
        eager = flush == "eager"
        known = {"CAPACITY": capacity, "ROOM": output_rows, "EAGER": eager, "LATE_AT": -2}
        self._state = np.array([known.get(word, 0) for word in STATE_WORDS], np.int64)
        self.storage: tuple[Values, ...] = (
            self._table,
            self._out.reshape(-1),
            *_chains(policy, capacity),
        )
        self._floats = self._table.view(np.float64)

    def add(
        self,
        epochs: Rows,
        rows: Codes,
        codes: Sequence[Codes],
        values: Sequence[Values],
        masks: Sequence[Masks],
    ) -> None:
        """Takes the tuples at positions `rows` of the columns.

        `values` and `masks` are of the slots that take an argument, one by one; the mask is 0 where
        it is NULL.
        """
        columns = (*codes, *values, *masks)
        while len(rows):
            taken = self._module.add(
                *self.storage, self._floats, self._state, epochs, rows, *columns
            )
            rows = rows[taken:]
            self._hand_over()

    def held(self) -> Rows:
        """A copy of all groups, which stay."""
        rows = self._table.reshape(-1, self.shape.stride)
        return np.asarray(rows[rows[:, 0] != 0])

    def flush(self) -> None:
        """All groups leave, old ones first. The table is then as new."""
        while not self._module.flush(*self.storage, self._state):
            self._hand_over()
        self._hand_over()
        self._state[STATE_WORDS.index("STARTED")] = 0

    @property
    def counters(self) -> Counters:
        return Counters(*self._state[-len(Counters._fields) :].tolist())

    @property
    def occupied(self) -> int:
        return self._word("OCCUPIED")

    @property
    def waiting(self) -> int:
        """Old groups that wait to be flushed."""
        return self._word("OLD")

    @property
    def memory_bytes(self) -> int:
        return self._state.nbytes + sum(array.nbytes for array in self.storage)

    def _word(self, name: str) -> int:
        return int(self._state[STATE_WORDS.index(name)])

    def _hand_over(self) -> None:
        at = STATE_WORDS.index("OUT")
        count = int(self._state[at])
        if count:
            self._state[at] = 0
            self._taker(self._out[:count])


def capacity_for(shape: Shape, memory_bytes: int, policy: Policy) -> int:
    """Groups of the largest table that keeps within the memory, but never less than one."""
    fixed = (OUTPUT_ROWS + 1) * shape.row_bytes + 8 * len(STATE_WORDS)
    links = LINK_BYTES if policy == "lru" else 0
    ring = 16 if policy == "lru" else 0
    return max(1, min((memory_bytes - fixed - ring) // (shape.row_bytes + links), 2**31 - 1))


@cache
def compiled(shape: Shape, policy: Policy) -> ModuleType:
    module = load_module(source(shape, policy))
    words, links = output(np.int64), output(np.uint32)
    storage = (words, words, links, links) if policy == "lru" else (words, words)
    columns = (column(np.int64), column(np.int32), *slots.column_types(shape, False))
    compile_for(module.add, *storage, output(np.float64), words, *columns)
    compile_for(module.flush, *storage, words)
    return module


def _chains(policy: Policy, capacity: int) -> tuple[npt.NDArray[np.uint32], ...]:
    """Bucket heads and links of a chained table: all entries free, one after the other."""
    if policy != "lru":
        return ()
    heads = np.full(capacity, NOTHING, np.uint32)
    links = np.zeros((capacity + 1, 4), np.uint32)
    links[:, 0] = np.arange(1, capacity + 2)
    links[capacity, 1:3] = capacity
    return heads, links.reshape(-1)


# ---- the machine code ----------------------------------------------------------------------------


def source(shape: Shape, policy: Policy) -> str:
    storage = STORAGE[policy]
    parts = [
        f"{', '.join(STATE_WORDS)} = range({len(STATE_WORDS)})",
        f"STRIDE = {shape.stride}",
        f"LATE_LIMIT = {LATE_LIMIT}",
        CONSTANTS,
        leaving(shape),
        POLICY_CODE[policy],
        SHARED.replace("STORAGE", storage),
        adding(shape, policy),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


CONSTANTS = """
HALF = np.uint64(32)
SECOND_FACTOR = np.uint64(0xA0761D6478BD642F)
"""

SHARED = '''
@inner
def place(h, capacity):
    """The upper half of the hash, scaled to the number of places."""
    return np.int64(((h >> HALF) * capacity) >> HALF)


@inner
def full(state):
    """Whether the output buffer may not hold all that one tuple can send off: two rows."""
    return state[OUT] + 2 > state[ROOM]


@inner
def drained(STORAGE, state, everything):
    while state[OLD] > 0:
        if full(state):
            return False
        flush_one(STORAGE, state)
    if everything:
        while state[OCCUPIED] > 0:
            if full(state):
                return False
            flush_one(STORAGE, state)
    return True


@inner
def set_back(state, r):
    """Whether so many tuples in a row were late that the clock must have been set back."""
    if state[LATE_AT] != r:  # else the tuple comes again because the output buffer was full
        state[LATE_RUN] = state[LATE_RUN] + 1 if state[LATE_AT] == r - 1 else 1
        state[LATE_AT] = r
    return state[LATE_RUN] > LATE_LIMIT


@inlined
def claimed(STORAGE, state, epoch, p, q, bucket, r):
    """A place for a new group, its former owner sent off; -1 when the output buffer is full."""
    state[PAID] = 0
    if full(state):
        return -1
    if epoch != state[CURRENT] or state[STARTED] == 0:
        late = state[STARTED] != 0 and epoch < state[CURRENT]
        if late and not set_back(state, r):
            state[LATE] += 1
            return state[CAPACITY] * STRIDE
        if not drained(STORAGE, state, late or state[EAGER] != 0) or full(state):
            return -1
        state[STARTED] = 1
        state[CURRENT] = epoch
        state[OLD] = state[OCCUPIED]
        state[BACKLOG] = max(state[BACKLOG], state[OLD])
        state[LATE_RUN] = 0
    return room_made(STORAGE, state, p, q, bucket)


@inner
def after(STORAGE, state, p):
    """A late tuple's own group leaves; otherwise an arriving tuple sends one old group off."""
    if p == state[CAPACITY] * STRIDE:
        leave(entries, out, state, p)
        entries[p] = 0
    if state[OLD] > 0 and state[PAID] == 0:
        flush_one(STORAGE, state)
    state[PAID] = 0
    return full(state)


@kernel
def flush(STORAGE, state):
    """All groups leave; FALSE when the output buffer is full before that."""
    return drained(STORAGE, state, True)
'''


def leaving(shape: Shape) -> str:
    copies = "\n".join(f"    out[to + {w}] = entries[p + {w}]" for w in range(shape.stride))
    return f"""
@inner
def leave(entries, out, state, p):
    to = np.int64(np.uint32(state[OUT])) * STRIDE
{copies}
    state[OUT] += 1
"""


def hashed(shape: Shape) -> list[str]:
    """The upper half of `h` says the place."""
    words = [f"np.uint64({word})" for word in shape.word_names]
    if shape.keys % 2:  # an empty lower half would leave half of the product empty
        words[-1] = f"({words[-1]} >> np.uint64(32))"
    return random_hash(words)


def adding(shape: Shape, policy: Policy) -> str:
    storage = STORAGE[policy]

    def is_at(place: str) -> str:
        # The epoch belongs to the group: a late tuple finds its old group, and a new one does not.
        held = f"entries[{place} + 1] == epoch and entries[{place}] != 0"
        return f"{slots.same_words(shape, f'np.uint64({place})')} and {held}"

    restarted = ["entries[base] = 1", *slots.zero_slots(shape)]
    overflow = [  # the group leaves, and starts again with the tuple
        "if entries[p + 1] == state[CURRENT]:  # older epochs leave first",
        f"    if not drained({storage}, state, False):",
        "        stop = r",
        "        break",
        "if full(state):",
        "    stop = r",
        "    break",
        "leave(entries, out, state, p)",
        "state[EVICTIONS] += 1",
        *restarted,
        "seen = np.int64(1)",
        *(f"s{j} = v{j}[i]" for j in shape.sums),
    ]
    body = [
        "i = np.uint32(rows[r])",
        "epoch = epochs[i]",
        *slots.load_words(shape),
        *hashed(shape),
        *finding(policy, is_at),
        "if missed:",
        f"    p = claimed({storage}, state, epoch, p, q, bucket, r)",
        "    if p < 0:",
        "        stop = r",
        "        break",
        "    state[MISSES] += 1",
        "base = np.uint64(p)",
        "if missed:",
        "    entries[p + 1] = epoch",
        *indent([*slots.new_words(shape), *restarted]),
        "seen = entries[base]",
        *slots.update_slots(shape, False, overflow),
        "if state[OLD] > 0 or p == spare:",
        f"    if after({storage}, state, p):",
        "        stop = r + 1",
        "        break",
    ]
    return f'''
@kernel
def add({storage}, floats, state, epochs, rows{slots.column_names(shape, False)}):
    """The number of tuples that were taken: all, unless the output is full."""
    capacity = np.uint64(np.uint32(state[CAPACITY]))
    spare = state[CAPACITY] * STRIDE
    stop = np.int64(rows.shape[0])
    for r in range(rows.shape[0]):
{chr(10).join(indent(body, 2))}
    state[PROBES] += stop
    state[LATE_AT] -= stop
    return stop
'''
