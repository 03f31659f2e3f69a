"""The code of a bounded table, written for one shape of row and one policy (paper 1 section 6).

In: a Shape whose rows carry their epoch, and a policy. Out: the source of a kernel module with

- `add`: takes tuples into the table until the input or the output buffer ends;
- `flush`: lets all groups leave, or as many as the output buffer takes.

What the policies share is here: how rows leave, and what happens when the epoch changes. How keys
are packed and hashed and a row is started and updated is in terascope.kernels.tables.slots;
how a place is found and who must leave for a new group in terascope.kernels.tables.table_policies.

Places are offsets into the table, which is one run of 64-bit words. Behind the last place stands a
spare one: a late tuple becomes a group of its own there and leaves at once.
"""

from __future__ import annotations

from terascope.kernels.codegen.generated_modules import indent
from terascope.kernels.tables.open_table_source import column_names
from terascope.kernels.tables.slots import (
    Shape,
    arguments,
    begun,
    cell,
    hashed,
    is_here,
    overflows,
    packed,
    restarted,
    taken,
)
from terascope.kernels.tables.table_policies import POLICY_CODE, STORAGE, Policy, finding

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
        POLICY_CODE[policy],
        _SHARED.replace("STORAGE", storage),
        _add(shape, policy),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


_CONSTANTS = """
HALF = np.uint64(32)
SECOND_FACTOR = np.uint64(0xA0761D6478BD642F)
"""

_SHARED = '''
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
        f"    p = claimed({storage}, state, epoch, p, q, bucket, i)",
        "    if p < 0:",
        "        stop = i",
        "        break",
        "    state[MISSES] += 1",
        *indent(begun(shape)),
        *arguments(shape),
        *_overflow(shape, storage),
        *taken(shape),
        "if state[OLD] > 0 or p == spare:",
        f"    if after({storage}, state, p):",
        "        stop = i + 1",
        "        break",
    ]
    parameters = ", ".join([storage, "floats, state, epochs, rows"]) + column_names(shape, False)
    return f'''
@kernel
def add({parameters}):
    """The number of tuples that were taken: all, unless the output is full."""
    capacity = np.uint64(np.uint32(state[CAPACITY]))
    spare = state[CAPACITY] * STRIDE
    stop = np.int64(rows.shape[0])
    for i in range(rows.shape[0]):
{chr(10).join(indent(body, 2))}
    state[PROBES] += stop
    state[LATE_AT] -= stop
    return stop
'''


def _overflow(shape: Shape, storage: str) -> list[str]:
    """A group whose sum would overflow leaves, and starts again with the tuple."""
    sums = shape.sums
    if not sums:
        return []
    conditions, totals = [], []
    for j in sums:
        total, condition = overflows(cell(shape, j), f"a{j}", f"t{j}")
        totals.append(total)
        conditions.append(condition)
    return [
        *totals,
        f"if {' or '.join(conditions)}:",
        "    if table[p + 1] == state[CURRENT]:  # older epochs leave first",
        f"        if not drained({storage}, state, False):",
        "            stop = i",
        "            break",
        "    if full(state):",
        "        stop = i",
        "        break",
        "    leave(table, out, state, p)",
        "    state[EVICTIONS] += 1",
        *indent(restarted(shape)),
        *(f"    t{j} = a{j}" for j in sums),
    ]
