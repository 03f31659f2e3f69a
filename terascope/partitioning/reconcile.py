"""Reconcile partitioning sets: the largest set with which the readers of two sets are compatible
(P2 4.1).

In: two partitionings, each of one source or of several sources that a join or merge ties together:
the expressions of such sources stand in one order, and the n-th of each has equal values on all
sides. Out: the partitioning of all their sources from which both can be computed; nothing when they
have no value in common.

    srcIP, destIP       with  srcIP, destIP, srcPort, destPort    srcIP, destIP
    time/60, srcIP      with  time/90, srcIP & 0xFFF0             time/180, srcIP & 0xFFF0
    srcIP & 0xFF00      with  srcIP & 0x0FF0                      srcIP & 0xF00

Among plain attributes that is their intersection, among expressions of one attribute their least
common denominator (`forms.common`), and an expression of several attributes is taken as it is where
the other set determines it.
"""

from __future__ import annotations

from collections.abc import Iterable

from terascope.partitioning.lineage import KnownValue, meet, without_derivable
from terascope.partitioning.sets import PartitionSet, Placement


def reconcile(one: Placement, other: Placement) -> Placement:
    """The largest partitioning from which both can be computed. Sources that only one of the two
    has are tied to the others by it; where the two share no source, each keeps its own.
    """
    if not one.keys() & other.keys():
        return {**one, **other}
    found = meet(entries_of(one), entries_of(other))
    return placement_of(found, sorted(one.keys() | other.keys()))


def entries_of(placement: Placement) -> tuple[KnownValue, ...]:
    """The values of a partitioning whose sources are tied together."""
    sources = sorted(placement)
    rows = zip(*(placement[source].expressions for source in sources), strict=True)
    return tuple(KnownValue(dict(zip(sources, row, strict=True))) for row in rows)


def placement_of(entries: Iterable[KnownValue], sources: Iterable[str]) -> Placement:
    """The partitioning of the values that are known of all sources; nothing where there is none."""
    names = list(sources)
    whole = [entry for entry in entries if entry.values.keys() >= set(names)]
    kept = without_derivable(whole, names[0])
    return {n: PartitionSet(tuple(e.values[n] for e in kept)) for n in names} if kept else {}
