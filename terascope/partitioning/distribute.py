"""The distributed plan: which part of a query set runs in every partition, on every host, and where
all of them meet (P2 5.1 to 5.4).

In: the operator trees of named streams, the partitions of their sources with the hosts that hold
them, and the partitioning sets. Out: a `DistributedPlan`: copies of queries, each at a place.

`agnostic_plan` is the beginning: a merge of all partitions of each source at the centre, and every
query above it (P2 figures 3 and 6). `distribute` then goes over the queries bottom up and pushes
each that is eligible below the merges it reads:

    selection, merge, window    a copy for each partition (P2 5.4)
    compatible aggregation      a copy for each partition, a union of their rows (figure 4)
    other aggregation           a sub-aggregate for each partition, one more for each host with
                                several of them, and the super-aggregate (figure 5)
    compatible join             a copy for each pair of partitions (figure 7); the rows of an outer
                                side whose partition has no counterpart pass a projection that
                                fills in NULL
    ranking of a compatible one the copies below it, and the ranking at the centre

The papers ask that a merge has one reader, since theirs is removed when a query is pushed below it.
Here a merge stays as long as a query reads it, so that a stream may have several readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from terascope.partitioning.compatible import OperatorSet, compatible_sets, sources_of
from terascope.partitioning.sets import Placement
from terascope.plan.plan import reads
from terascope.plan.rel import Aggregate, Join, Rel, Running, Scan, walk

Work: TypeAlias = Literal[
    "read", "union", "query", "part", "sub-aggregate", "combine", "super-aggregate", "fill"
]
CENTRAL: Final = "central"
KINDS: Final = ("partition", "host", CENTRAL)


@dataclass(frozen=True)
class Site:
    """A partition, a host with several of them, or the centre."""

    partition: int | None = None
    host: str = ""

    @property
    def kind(self) -> str:
        if self.partition is not None:
            return "partition"
        return "host" if self.host else CENTRAL


@dataclass(frozen=True)
class Copy:
    """One piece of work at one place."""

    name: str
    """Of this copy: others read it by that name."""
    stream: str
    work: Work
    place: Site
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class DistributedPlan:
    """Copies of queries at places, each behind those it reads."""

    copies: tuple[Copy, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a stream is not computed in the partitions."""

    @property
    def by_name(self) -> Mapping[str, Copy]:
        return {copy.name: copy for copy in self.copies}

    @property
    def kept(self) -> frozenset[str]:
        """The streams that partitions compute as a whole."""
        return frozenset(c.stream for c in self.copies if c.work == "query" and is_inside(c))

    def groups(self) -> Iterator[tuple[str, tuple[Site, ...], tuple[Copy, ...]]]:
        """Places that do the same: their names together, the places, and the copies at the first
        of them. Partitions come first, the centre last.
        """
        found: dict[tuple[str, ...], list[Site]] = {}
        for place in dict.fromkeys(copy.place for copy in self.copies):
            own = [self.shown(copy) for copy in self.at(place)]
            found.setdefault((place.kind, *own), []).append(place)
        for (kind, *_), places in sorted(found.items(), key=lambda one: KINDS.index(one[0][0])):
            yield places_text(kind, places), tuple(places), self.at(places[0])

    def at(self, place: Site) -> tuple[Copy, ...]:
        return tuple(copy for copy in self.copies if copy.place == place)

    def lines(self) -> Iterator[str]:
        """The work at each place."""
        for title, _, copies in self.groups():
            yield f"{title}:"
            yield from (f"  {self.shown(copy)}" for copy in copies)

    def shown(self, copy: Copy) -> str:
        """A copy as it is at every place of its kind: its inputs by stream."""
        by_name = self.by_name
        below = [by_name[name] for name in copy.inputs]
        here = list(dict.fromkeys(c.stream for c in below if c.place == copy.place))
        apart: dict[tuple[str, str], int] = {}
        for one in (c for c in below if c.place != copy.place):
            key = (one.stream, "host" if one.place.partition is None else "partition")
            apart[key] = apart.get(key, 0) + 1
        texts = [*here, *(f"{n} {where}s' {stream}" if n > 1 else f"the {where}'s {stream}"
                          for (stream, where), n in apart.items())]  # fmt: skip
        return f"{copy.work} {copy.stream}" + (f" of {', '.join(texts)}" if texts else "")


def is_inside(copy: Copy) -> bool:
    return copy.place.partition is not None


def places_text(kind: str, places: Sequence[Site]) -> str:
    if kind == "partition":
        numbers = [p.partition for p in places if p.partition is not None]
        span = f"{numbers[0]}"
        if len(numbers) > 1:
            span = f"{numbers[0]} to {numbers[-1]}"
            if numbers[-1] - numbers[0] >= len(numbers):
                span = ", ".join(map(str, numbers))
        hosts = list(dict.fromkeys(p.host for p in places if p.host))
        where = f" on {', '.join(hosts)}" if hosts else ""
        return f"partition{'s' if len(places) > 1 else ''} {span}{where}"
    if kind == "host":
        return f"host{'s' if len(places) > 1 else ''} {', '.join(p.host for p in places)}"
    return kind


# ---- before --------------------------------------------------------------------------------------


def agnostic_plan(
    streams: Mapping[str, Rel], partitions: Mapping[str, Mapping[int, str]]
) -> DistributedPlan:
    """Every partition is sent to the centre, where every query runs. `partitions`: for each source
    the host of each of its partitions, empty where that is not known.
    """
    copies: list[Copy] = []
    for source, hosts in partitions.items():
        parts = [Copy(f"{source}@{n}", source, "read", Site(n, host)) for n, host in hosts.items()]
        copies += [*parts, Copy(source, source, "union", Site(), tuple(c.name for c in parts))]
    for name, rel in streams.items():
        copies.append(Copy(name, name, "query", Site(), inputs_of(rel)))
    return DistributedPlan(tuple(copies))


def inputs_of(rel: Rel) -> tuple[str, ...]:
    """The sources and the streams that a tree reads."""
    scans = (s for one in walk(rel) if isinstance(one, Scan) for s in sorted(sources_of(one)))
    return tuple(dict.fromkeys((*scans, *(read.stream for read in reads(rel)))))


# ---- bottom up -----------------------------------------------------------------------------------


def distribute(
    streams: Mapping[str, Rel],
    partitions: Mapping[str, Mapping[int, str]],
    placement: Placement,
    outputs: Sequence[str] = (),
    splits: Callable[[Rel], bool] = lambda rel: True,
) -> DistributedPlan:
    """The plan after all eligible queries are pushed below the merges they read. `outputs`: the
    streams that are delivered; none: all. `splits`: whether an aggregation has a sub- and a
    super-aggregate.
    """
    operators: dict[str, list[OperatorSet]] = {}
    for one in compatible_sets(streams):
        operators.setdefault(one.stream, []).append(one)
    plan = agnostic_plan(streams, partitions)
    for name, rel in streams.items():
        refusal = next((why for one in operators[name] if (why := one.refusal(placement))), "")
        if is_eligible(plan, name):
            if not refusal:
                plan = pushed(plan, name, rel)
                continue
            first = operators[name][0]
            if len(operators[name]) > 1 and first.entries and not first.refusal(placement):
                plan = partly_pushed(plan, name)
            elif is_aggregation(rel) and splits(rel):
                plan = split_up(plan, name)
        else:
            refusal = refusal or "it reads what is computed at the centre"
        plan = replace(plan, reasons={**plan.reasons, name: refusal})
    return without_unread(plan, outputs or tuple(streams))


def is_eligible(plan: DistributedPlan, name: str) -> bool:
    """Whether a query reads nothing but unions of copies in partitions (Opt_Eligible, P2 5.2)."""
    by_name = plan.by_name
    below = [by_name[one] for one in by_name[name].inputs if one in by_name]
    return (
        bool(below)
        and len(below) == len(by_name[name].inputs)
        and all(
            one.work == "union" and all(is_inside(by_name[part]) for part in one.inputs)
            for one in below
        )
    )


def is_aggregation(rel: Rel) -> bool:
    return any(isinstance(one, Aggregate | Running) for one in walk(rel)) and not any(
        isinstance(one, Join) for one in walk(rel)
    )


def parts_of(plan: DistributedPlan, name: str) -> list[dict[Site, Copy]]:
    """For each input of a query, the copies below its union, by place."""
    by_name = plan.by_name
    return [
        {by_name[part].place: by_name[part] for part in by_name[one].inputs}
        for one in by_name[name].inputs
    ]


def pushed(plan: DistributedPlan, name: str, rel: Rel) -> DistributedPlan:
    """Before: the query over unions      After: a union of its copies in the partitions."""
    parts = parts_of(plan, name)
    places = dict.fromkeys(place for some in parts for place in some)
    join = next((one for one in walk(rel) if isinstance(one, Join)), None)
    copies: list[Copy] = []
    for place in places:
        here = [some[place].name for some in parts if place in some]
        missing = [number for number, some in enumerate(parts) if place not in some]
        work: Work = "query"
        if missing and join is not None and len(parts) > 1:
            kept = {"left": 0, "right": 1}.get(join.kind)
            if join.kind != "full" and (kept is None or kept in missing):
                continue  # the rows have no partner, and none is asked for
            work = "fill"
        copies.append(Copy(f"{name}@{place.partition}", name, work, place, tuple(here)))
    return replaced(plan, name, copies, ())


def split_up(plan: DistributedPlan, name: str) -> DistributedPlan:
    """Before: an aggregation over a union      After: sub-aggregates in the partitions, one for
    each host with several, and the super-aggregate (P2 5.2.2).
    """
    (parts, *_) = parts_of(plan, name)
    subs = [
        Copy(f"sub {name}@{place.partition}", name, "sub-aggregate", place, (below.name,))
        for place, below in parts.items()
    ]
    by_host: dict[str, list[Copy]] = {}
    for sub in subs:
        by_host.setdefault(sub.place.host, []).append(sub)
    sent = [sub for host, own in by_host.items() if not host or len(own) == 1 for sub in own]
    combined = [
        Copy(f"sub {name}@{host}", name, "combine", Site(host=host), tuple(s.name for s in own))
        for host, own in by_host.items()
        if host and len(own) > 1
    ]
    last = Copy(
        name, name, "super-aggregate", Site(), tuple(one.name for one in (*sent, *combined))
    )
    return replaced(plan, name, [*subs, *combined], (last,))


def partly_pushed(plan: DistributedPlan, name: str) -> DistributedPlan:
    """Before: a query over a union      After: its lower operators in the partitions, the rest at
    the centre.
    """
    (parts, *_) = parts_of(plan, name)
    copies = [
        Copy(f"{name}@{place.partition}", name, "part", place, (below.name,))
        for place, below in parts.items()
    ]
    last = Copy(name, name, "query", Site(), tuple(copy.name for copy in copies))
    return replaced(plan, name, copies, (last,))


def replaced(
    plan: DistributedPlan, name: str, copies: Sequence[Copy], last: tuple[Copy, ...]
) -> DistributedPlan:
    """The plan with copies in the place of a query; those above it read a union of the copies."""
    union = Copy(name, name, "union", Site(), tuple(copy.name for copy in copies))
    made: list[Copy] = []
    for one in plan.copies:
        made += (*copies, *(last or (union,))) if one.name == name else (one,)
    return replace(plan, copies=tuple(made))


def without_unread(plan: DistributedPlan, outputs: Sequence[str]) -> DistributedPlan:
    """The plan without copies that nothing reads and that are not delivered."""
    by_name = plan.by_name
    wanted: set[str] = set()
    pending = [name for name in outputs if name in by_name]
    while pending:
        name = pending.pop()
        if name not in wanted:
            wanted.add(name)
            pending += by_name[name].inputs
    return replace(plan, copies=tuple(c for c in plan.copies if c.name in wanted))
