"""The code of a bounded table, written for one shape of row and one policy (paper 1 section 6).

In: a Shape whose rows carry their epoch, and a policy. Out: the source of a kernel module with

- `add`: takes tuples into the table until the input or the output buffer ends;
- `flush`: lets all groups leave, or as many as the output buffer takes;
- `places`: where groups stand, for measurements and tests.

What the policies share is here: how rows leave, and what happens when the epoch changes. How keys
are packed and hashed and a row is started and updated is in terascope.kernels.tables.table_rows;
how a place is found and who must leave for a new group in terascope.kernels.tables.table_policies.

Places are offsets into the table, which is one run of 64-bit words. Behind the last place stands a
spare one: a late tuple becomes a group of its own there and leaves at once.
"""

from __future__ import annotations

from textwrap import indent

from terascope.functions.slots import SUM_INT
from terascope.kernels.tables.slots import Shape, overflows
from terascope.kernels.tables.table_policies import PLACES, STORAGE, Policy, finding, makes_room
from terascope.kernels.tables.table_rows import (
    arguments,
    begun,
    cell,
    hashed,
    indented,
    is_here,
    packed,
    restarted,
    taken,
)

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
    "PROBES",
    "MISSES",
    "EVICTIONS",
    "FLUSHED",
    "LATE",
    "BACKLOG",  # the most groups that ever became old at once
)
"""The state of a table beside its rows: one 64-bit word each."""

LATE_LIMIT = 64
"""So many late tuples in a row mean that the clock was set back, and not that tuples overtook each
other: their epoch becomes the current one."""


def source(shape: Shape, policy: Policy) -> str:
    """The kernel module of a table."""
    storage = STORAGE[policy]
    parts = [
        f"{', '.join(STATE_WORDS)} = range({len(STATE_WORDS)})",
        f"STRIDE = {shape.stride}",
        f"LATE_LIMIT = {LATE_LIMIT}",
        _CONSTANTS,
        _leave(shape),
        PLACES[policy],
        _SHARED.replace("STORAGE", storage),
        makes_room(policy),
        _add(shape, policy),
        _places(shape),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def columns(shape: Shape) -> list[str]:
    """The names of the column arguments of `add`: codes, then values, then masks."""
    return [*_codes(shape), *_values(shape), *_masks(shape)]


def _codes(shape: Shape) -> list[str]:
    return [f"code{k}" for k in range(shape.keys)]


def _values(shape: Shape) -> list[str]:
    return [f"value{j}" for j, kind in enumerate(shape.slots) if kind.reads_value]


def _masks(shape: Shape) -> list[str]:
    return [f"mask{j}" for j, kind in enumerate(shape.slots) if kind.takes_argument]


_CONSTANTS = """
HALF = np.uint64(32)
SECOND_FACTOR = np.uint64(0xA0761D6478BD642F)
"""

_SHARED = '''
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
def set_back(state, i):
    """Whether so many tuples in a row were late that the clock must have been set back."""
    if state[LATE_AT] != i:  # else the tuple comes again because the output buffer was full
        state[LATE_RUN] = state[LATE_RUN] + 1 if state[LATE_AT] == i - 1 else 1
        state[LATE_AT] = i
    return state[LATE_RUN] > LATE_LIMIT


@inlined
def claimed(STORAGE, state, epoch, p, q, bucket, i):
    """A place for a new group, its former owner sent off; -1 when the output buffer is full."""
    state[PAID] = 0
    if full(state):
        return -1
    if epoch != state[CURRENT] or state[STARTED] == 0:
        late = state[STARTED] != 0 and epoch < state[CURRENT]
        if late and not set_back(state, i):
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
        leave(table, out, state, p)
        table[p] = 0
    if state[OLD] > 0 and state[PAID] == 0:
        flush_one(STORAGE, state)
    state[PAID] = 0
    return full(state)


@kernel
def flush(STORAGE, state):
    """All groups leave; FALSE when the output buffer is full before that."""
    return drained(STORAGE, state, True)
'''


def _leave(shape: Shape) -> str:
    copies = "\n".join(f"    out[to + {w}] = table[p + {w}]" for w in range(shape.stride))
    return f"""
@inner
def leave(table, out, state, p):
    to = np.int64(np.uint32(state[OUT])) * STRIDE
{copies}
    state[OUT] += 1
"""


def _add(shape: Shape, policy: Policy) -> str:
    storage = STORAGE[policy]
    body = [
        "r = np.int64(np.uint32(rows[i]))",
        "epoch = epochs[r]",
        *packed(shape),
        *hashed(shape),
        *finding(policy, is_here(shape)),
        "if missed:",
        *indented(
            f"p = claimed({storage}, state, epoch, p, q, bucket, i)",
            "if p < 0:",
            "    stop = i",
            "    break",
            "state[MISSES] += 1",
            *begun(shape),
        ),
        *arguments(shape),
        *_overflow(shape, storage),
        *taken(shape),
        "if state[OLD] > 0 or p == spare:",
        *indented(f"if after({storage}, state, p):", "    stop = i + 1", "    break"),
    ]
    parameters = ", ".join([storage, "floats, state, epochs, rows", *columns(shape)])
    return f'''
@kernel
def add({parameters}):
    """The number of tuples that were taken: all, unless the output is full."""
    capacity = np.uint64(np.uint32(state[CAPACITY]))
    spare = state[CAPACITY] * STRIDE
    stop = np.int64(rows.shape[0])
    for i in range(rows.shape[0]):
{indent(chr(10).join(body), " " * 8)}
    state[PROBES] += stop
    state[LATE_AT] -= stop
    return stop
'''


def _places(shape: Shape) -> str:
    """The first and the second place of groups, as numbers from 0."""
    parameters = ", ".join(["state", "first", "second", *_codes(shape)])
    body = "\n".join(
        [*packed(shape), *hashed(shape), "first[r] = place(h, capacity)",
         "second[r] = place(h * SECOND_FACTOR, capacity)"]
    )  # fmt: skip
    return f"""
@kernel
def places({parameters}):
    capacity = np.uint64(np.uint32(state[CAPACITY]))
    for r in range(first.shape[0]):
{indent(body, " " * 8)}
"""


def _overflow(shape: Shape, storage: str) -> list[str]:
    """A group whose sum would overflow leaves, and starts again with the tuple."""
    sums = [j for j, kind in enumerate(shape.slots) if kind == SUM_INT]
    if not sums:
        return []
    conditions, totals = [], []
    for j in sums:
        total, condition = overflows(cell(shape, j), f"v{j}", f"t{j}")
        totals.append(total)
        conditions.append(condition)
    return [
        *totals,
        f"if {' or '.join(conditions)}:",
        *indented(
            "if table[p + 1] == state[CURRENT]:  # older epochs leave first",
            f"    if not drained({storage}, state, False):",
            "        stop = i",
            "        break",
            "if full(state):",
            "    stop = i",
            "    break",
            "leave(table, out, state, p)",
            "state[EVICTIONS] += 1",
            *restarted(shape),
            *(f"t{j} = v{j}" for j in sums),
        ),
    ]
