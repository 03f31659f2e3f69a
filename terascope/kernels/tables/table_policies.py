"""The group that leaves a full table: three policies (paper 1 section 6, paper 4 section III-C).

In: the name of a policy. Out: the parts of a table's kernel module that depend on it: how the group
of a tuple is found, how a place is made for a new one, and which group is flushed next.

`direct_mapped`: a group has one place; its owner leaves when another group comes. `second_chance`:
it has two; when others own both, the one at the first leaves. `lru`: as many groups as there are
buckets, chained; the least recently used one leaves when the table is full.

Invariant: a new group never leaves before an old one. In the chained table this holds by itself: an
old group was always used before a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

Policy: TypeAlias = Literal["direct_mapped", "second_chance", "lru"]

POLICIES: Final[tuple[Policy, ...]] = ("direct_mapped", "second_chance", "lru")

STORAGE: Final[dict[Policy, str]] = {
    "direct_mapped": "entries, out",
    "second_chance": "entries, out",
    "lru": "entries, out, heads, links",
}
"""The arrays that every function of the module is given."""


def finding(policy: Policy, is_at: Callable[[str], str]) -> list[str]:
    """Statements that set `missed`, and `p` to the place of the tuple's group unless missed.
    `is_at`: the condition that it is at a place.
    """
    if policy == "lru":
        return [
            "bucket = place(h, capacity)",
            "entry = np.int64(heads[bucket])",
            "p = entry * STRIDE",
            "q = p",
            f"while entry != NONE and not ({is_at('p')}):",
            "    entry = np.int64(links[4 * entry + CHAINED])",
            "    p = entry * STRIDE",
            "missed = entry == NONE",
            "if not missed and epoch == state[CURRENT]:",
            "    used(links, entry, np.int64(capacity))",
        ]
    first = [
        "p = place(h, capacity) * STRIDE",
        "q = p",
        "bucket = 0",
        f"missed = not ({is_at('p')})",
    ]
    second = [
        "if missed:",
        "    q = place(h * SECOND_FACTOR, capacity) * STRIDE",
        f"    if {is_at('q')}:",
        "        p = q",
        "        missed = False",
    ]
    return first if policy == "direct_mapped" else first + second


_BY_PLACE = '''
@inner
def flush_one(entries, out, state):
    """The next old group leaves, or the next of all if there is none; there must be one."""
    cursor = state[CURSOR]
    old = state[OLD] > 0
    while entries[cursor] == 0 or (old and entries[cursor + 1] == state[CURRENT]):
        cursor += STRIDE
        if cursor == state[CAPACITY] * STRIDE:
            cursor = 0
    state[CURSOR] = cursor
    leave(entries, out, state, cursor)
    entries[cursor] = 0
    state[OCCUPIED] -= 1
    state[OLD] -= old
    state[FLUSHED] += 1


@inner
def vacated(entries, out, state, p):
    """Whether the place is free for a new group, as it is when an old one was there."""
    if entries[p] == 0:
        state[OCCUPIED] += 1
        return True
    if entries[p + 1] == state[CURRENT]:
        return False
    leave(entries, out, state, p)
    state[OLD] -= 1
    state[FLUSHED] += 1
    state[PAID] = 1
    return True


@inner
def room_made(entries, out, state, p, q, bucket):
    if vacated(entries, out, state, p):
        return p
    # or at the second
    if not drained(entries, out, state, False) or full(state):
        return -1
    leave(entries, out, state, p)
    state[EVICTIONS] += 1
    return p
'''

_OR_AT_THE_SECOND = """if vacated(entries, out, state, q):
        return q"""

_BY_CHAIN = '''
NONE = 0xFFFFFFFF
CHAINED, OLDER, NEWER, BUCKET = 0, 1, 2, 3


@inner
def used(links, entry, ring):
    """The entry becomes the most recently used; `ring` joins the newest and the oldest."""
    newest = np.int64(links[4 * ring + OLDER])
    if newest != entry:
        unlinked(links, entry)
        linked(links, entry, ring)


@inner
def unlinked(links, entry):
    older = np.int64(links[4 * entry + OLDER])
    newer = np.int64(links[4 * entry + NEWER])
    links[4 * newer + OLDER] = older
    links[4 * older + NEWER] = newer


@inner
def linked(links, entry, ring):
    newest = np.int64(links[4 * ring + OLDER])
    links[4 * entry + OLDER] = newest
    links[4 * entry + NEWER] = ring
    links[4 * newest + NEWER] = entry
    links[4 * ring + OLDER] = entry


@inner
def unchained(heads, links, entry):
    bucket = np.int64(links[4 * entry + BUCKET])
    following = links[4 * entry + CHAINED]
    at = np.int64(heads[bucket])
    if at == entry:
        heads[bucket] = following
        return
    while np.int64(links[4 * at + CHAINED]) != entry:
        at = np.int64(links[4 * at + CHAINED])
    links[4 * at + CHAINED] = following


@inner
def oldest_left(entries, out, heads, links, state):
    """The least recently used group leaves; its entry is free."""
    entry = np.int64(links[4 * state[CAPACITY] + NEWER])
    leave(entries, out, state, entry * STRIDE)
    entries[entry * STRIDE] = 0
    unlinked(links, entry)
    unchained(heads, links, entry)
    links[4 * entry + CHAINED] = state[FREE]
    state[FREE] = entry
    state[OCCUPIED] -= 1


@inner
def flush_one(entries, out, heads, links, state):
    state[OLD] -= state[OLD] > 0
    state[FLUSHED] += 1
    oldest_left(entries, out, heads, links, state)




@inner
def room_made(entries, out, heads, links, state, p, q, bucket):
    if state[OCCUPIED] == state[CAPACITY]:
        if state[OLD] > 0:
            state[OLD] -= 1
            state[FLUSHED] += 1
            state[PAID] = 1
        else:
            state[EVICTIONS] += 1
        oldest_left(entries, out, heads, links, state)
    entry = state[FREE]
    state[FREE] = np.int64(links[4 * entry + CHAINED])
    links[4 * entry + CHAINED] = heads[bucket]
    links[4 * entry + BUCKET] = bucket
    heads[bucket] = entry
    linked(links, entry, state[CAPACITY])
    state[OCCUPIED] += 1
    return entry * STRIDE
'''

POLICY_CODE: Final[dict[Policy, str]] = {
    "direct_mapped": _BY_PLACE.replace("# or at the second", ""),
    "second_chance": _BY_PLACE.replace("# or at the second", _OR_AT_THE_SECOND),
    "lru": _BY_CHAIN,
}
"""The functions of a policy: how a place follows from a hash, which group is flushed next, and
`room_made`: a place for a new group of the current epoch, or -1."""
