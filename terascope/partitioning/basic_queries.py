"""A query set as basic queries: the nodes of the cost model (P2 4.2).

In: a Plan. Out: the same computation as `BasicQuery`s, each with at most one operator that needs
tuples together (aggregation, join, merge, ranking), and with the selections around it. A SELECT
that ranks the groups of a join is three of them, of which two have names of their own such as
`top/1`. The names of raw streams begin with the mark of a source, `<`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from terascope.plan.plan import Plan, reads
from terascope.plan.rel import (
    Aggregate,
    Join,
    Merge,
    Rank,
    Read,
    Rel,
    Running,
    Scan,
    inputs,
    walk,
    with_inputs,
)

RAW: Final = "<"


@dataclass(frozen=True)
class BasicQuery:
    """One node of a query set."""

    name: str
    query: str
    """The stream of the set that it is a part of, or is."""
    rel: Rel
    delivered: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """The nodes and the raw streams that it reads, each once."""
        scans = (raw_name(rel) for rel in walk(self.rel) if isinstance(rel, Scan))
        below = (read.stream for read in reads(self.rel))
        return tuple(dict.fromkeys((*scans, *below)))

    @property
    def is_leaf(self) -> bool:
        return any(map(is_raw, self.inputs))


def raw_name(scan: Scan) -> str:
    """The tuples of one protocol from some interfaces."""
    return f"{RAW}{','.join(scan.interfaces)}.{scan.protocol}"


def is_raw(name: str) -> bool:
    """Whether a name is that of a raw stream."""
    return name.startswith(RAW)


def needs_tuples_together(rel: Rel) -> bool:
    match rel:
        case Aggregate() | Running() | Join() | Merge():
            return True
        case Rank(limit=limit):
            return limit is not None
        case _:
            return False


def basic_queries(plan: Plan) -> tuple[BasicQuery, ...]:
    """The nodes of a plan, each behind those it reads. A scan that is bound to no source reads one
    that is called as its protocol.
    """
    found: list[BasicQuery] = []
    for stream in plan:
        parts: list[BasicQuery] = []
        rel = cut(named_scans(stream.rel), stream.name, parts)
        found += [*parts, BasicQuery(stream.name, stream.name, rel, stream.visible)]
    return tuple(found)


def cut(rel: Rel, query: str, parts: list[BasicQuery]) -> Rel:
    """The relation, with a Read in the place of each input that is a node of its own."""
    below: Iterable[Rel] = inputs(rel)
    if needs_tuples_together(rel):
        below = [apart(one, query, parts) for one in below]
    else:
        below = [cut(one, query, parts) for one in below]
    return with_inputs(rel, tuple(below))


def apart(rel: Rel, query: str, parts: list[BasicQuery]) -> Rel:
    if not any(map(needs_tuples_together, walk(rel))):
        return rel
    made = cut(rel, query, parts)
    name = f"{query}/{len(parts) + 1}"
    parts.append(BasicQuery(name, query, made))
    return Read(name, rel.fields)


def named_scans(rel: Rel) -> Rel:
    if isinstance(rel, Scan):
        return rel if rel.interfaces else replace(rel, interfaces=(rel.protocol,))
    return with_inputs(rel, tuple(map(named_scans, inputs(rel))))
