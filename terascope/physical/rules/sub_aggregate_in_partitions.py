"""Partitions send sub-aggregates of an aggregation over a stream that they finish (P2 5.2.2).

In: a draft whose partitions own streams. Out: a draft in which an aggregation over such a stream,
which is not compatible with the partitioning itself, is a super-aggregate over sub-aggregates that
every partition makes of its own rows. Of a ranking with a limit every partition sends its own first
rows: the order of a ranking has no ties, so the first of all are among them. Aggregations over
tuples of a source need no such rule: their partial groups leave every task anyway
(`split_queries`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import count

from terascope.physical.draft import JobDraft
from terascope.physical.split.split_aggregation import (
    CallSplitter,
    SplitCall,
    splits_rows,
)
from terascope.plan.expr import Col
from terascope.plan.plan import reads
from terascope.plan.rel import (
    Aggregate,
    Filter,
    Named,
    NamedAgg,
    Project,
    Rank,
    Read,
    Rel,
    walk,
    with_inputs,
)


def sub_aggregate_in_partitions(draft: JobDraft) -> JobDraft:
    """Before: Aggregate (Read kept)      After: Aggregate (Read sub), sub = Aggregate (Read kept)
    in every partition; the same for Rank.
    """
    owned = draft.ownership
    if owned is None or draft.destination == "stream":
        return draft
    streams: dict[str, Rel] = {}
    for name, rel in draft.streams.items():
        below = {read.stream for read in reads(rel)}
        if name not in owned.kept and below and below <= owned.kept:
            sub = free_name(f"{name}_sub", draft.trees)
            made = divided(sub, rel)
            if made is not None:
                streams[sub], rel = made
        streams[name] = rel
    added = streams.keys() - draft.streams.keys()
    if not added:
        return draft
    trees = with_streams(draft.trees, streams)
    kept = owned.kept | added
    return replace(draft, streams=streams, trees=trees, ownership=replace(owned, kept=kept))


def free_name(name: str, taken: Collection[str]) -> str:
    """A name that no stream has."""
    numbered = (f"{name}{n or ''}" for n in count())
    return next(one for one in numbered if one not in taken)


def with_streams(trees: Mapping[str, Rel], streams: Mapping[str, Rel]) -> dict[str, Rel]:
    """The trees with those of some streams, each behind those it reads."""
    found: dict[str, Rel] = {}
    for name, rel in trees.items():
        rel = streams.get(name, rel)
        for read in reads(rel):
            if read.stream not in trees:
                found.setdefault(read.stream, streams[read.stream])
        found[name] = rel
    return found


def divided(sub: str, rel: Rel) -> tuple[Rel, Rel] | None:
    """The sub-aggregate and the relation over it; None: there is no such aggregation."""
    match rel:
        case Project(source=source) | Filter(source=source):
            made = divided(sub, source)
            return None if made is None else (made[0], with_inputs(rel, (made[1],)))
        case Aggregate(sets=None, emit_empty=None):
            return halves(sub, rel)
        case Rank(source=source):
            made = divided(sub, source)
            if made is not None:
                return made[0], with_inputs(rel, (made[1],))
            if rel.limit is None or not is_rows_of_a_stream(source):
                return None
            return rel, replace(rel, source=Read(sub, rel.fields))
        case _:
            return None


def is_rows_of_a_stream(rel: Rel) -> bool:
    """Whether a relation has the rows of one stream, each by itself."""
    return all(isinstance(one, Read | Filter | Project) for one in walk(rel))


def halves(sub: str, rel: Aggregate) -> tuple[Rel, Rel] | None:
    """The sub- and the super-aggregate of an aggregation; None: an aggregate does not split."""
    splits: list[SplitCall] = []
    for _, call in rel.aggs:
        plain = not (call.distinct or call.order or call.function.ordered or call.function.of_set)
        made = call.function.split(tuple(a.type for a in call.args), True) if plain else None
        split = None if made is None or splits_rows(made) else CallSplitter(True).split(call)
        if not isinstance(split, SplitCall) or split.has_states or not split.subs:
            return None
        splits.append(split)
    keys = tuple((name, Col(name, expr.type)) for name, expr in rel.keys)
    subs: list[NamedAgg] = []
    supers: list[NamedAgg] = []
    items: list[Named] = list(keys)
    for (name, _), split in zip(rel.aggs, splits, strict=True):
        merged: list[Col] = []
        for part, one in enumerate(split.subs):
            columns: list[Col] = []
            for number, call in enumerate(one.calls):
                columns.append(Col(f"{name}_{part}_{number}", call.type))
                subs.append((columns[-1].name, call))
            above = one.merged(tuple(columns))
            merged.append(Col(f"{name}_{part}", above.type))
            supers.append((merged[-1].name, above))
        items.append((name, split.value(merged, may_be_empty=False)))
    low = Aggregate(rel.source, rel.keys, tuple(subs))
    high = Aggregate(Read(sub, low.fields), keys, tuple(supers))
    return low, Project(high, tuple(items))
