"""The splits of a source from which a sample is taken.

In: the splits and the epochs of the queries. Out: stripes of the source, in the order to read them.

The groups of an epoch come from its own tuples. So runs of neighbouring stripes are read, each long
enough to contain a whole epoch, from places spread over the source: an epoch that was read whole
and thinned evenly gives an unbiased sample of itself, whereas the tuples of some minutes say too
little about an hour, because groups come in bursts. Only an epoch that is too long to be read is
represented by stripes from all over it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from terascope.connectors.base import Split
from terascope.physical.low_plan import LowAggregate
from terascope.physical.splits import span

Stripe: TypeAlias = tuple[Split, ...]
"""Splits of about the same time, of all interfaces."""


def stripes(splits: Sequence[Split]) -> list[Stripe]:
    """A source in pieces along its time: as many as the interface with the most splits has."""
    interfaces: dict[str, list[Split]] = {}
    for split in splits:
        interfaces.setdefault(split.interface, []).append(split)
    count = max(map(len, interfaces.values()), default=0)
    made: list[list[Split]] = [[] for _ in range(count)]
    for own in interfaces.values():
        for place, split in enumerate(own):
            made[place * count // len(own)].append(split)
    return [tuple(some) for some in made]


def stripes_of_epoch(query: LowAggregate, pieces: Sequence[Stripe]) -> float | None:
    """The number of stripes of an epoch of a query; None when that is not known beforehand. An
    epoch that never ends has all of them.
    """
    if query.epoch is None:
        return float(len(pieces))
    own = [split for piece in pieces for split in piece if split.interface in query.interfaces]
    found = span(query, own)
    return None if found is None else len(pieces) / (found[1] - found[0] + 1)


def is_cut(query: LowAggregate, pieces: Sequence[Stripe], place: int) -> bool:
    """Whether the edge before a stripe may lie within an epoch of a query."""
    if query.epoch is None or not 0 < place < len(pieces):
        return True
    sides = [
        span(query, [split for split in piece if split.interface in query.interfaces])
        for piece in pieces[place - 1 : place + 1]
    ]
    before, after = sides
    return before is None or after is None or before[1] >= after[0]


Run: TypeAlias = tuple[int, ...]
"""Places of neighbouring stripes."""


def reading(count: int, per_epoch: Sequence[float | None], most: int) -> list[Run]:
    """The runs to read, from the middle of the source first: as long as the longest epoch that can
    be read, or stripes from all over an epoch when none can.
    """
    known = [min(float(count), n) for n in per_epoch if n is not None]
    readable = [n for n in known if min(count, math.ceil(n) + 1) <= most]
    if known and not readable:
        return spread_epoch(count, min(known), most)
    # Where nothing is known beforehand, there is one run.
    length = min(count, math.ceil(max(readable)) + 1 if readable else most)
    number = max(1, math.ceil(min(count, most) / max(1, length)))
    starts = [round((i + 0.5) * (count - length) / number) for i in range(number)]
    if number * length >= count:
        starts = [min(i * length, count - length) for i in range(number)]
    done: set[int] = set()
    runs: list[Run] = []
    middle = number // 2
    for i in sorted(range(number), key=lambda i: reversed_bits((i + middle) % number, number)):
        run = [place for place in range(starts[i], starts[i] + length) if place not in done]
        done.update(run)
        runs.append(tuple(run))
    return [run for run in runs if run]


def spread_epoch(count: int, per_epoch: float, most: int) -> list[Run]:
    """Stripes evenly spaced in an epoch from the middle of the source; distant ones first."""
    first = max(0.0, (count - per_epoch) / 2)
    apart = min(per_epoch, count) / most
    places = sorted({min(count - 1, int(first + (i + 0.5) * apart)) for i in range(most)})
    order = sorted(range(len(places)), key=lambda i: reversed_bits(i, len(places)))
    return [(places[i],) for i in order]


def reversed_bits(number: int, below: int) -> int:
    """An order in which neighbours are far apart: wherever it is cut short, the part before is
    spread evenly.
    """
    bits = max(1, (below - 1).bit_length())
    return int(format(number, f"0{bits}b")[::-1], 2)
