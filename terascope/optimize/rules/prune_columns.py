"""Drop the columns that no query reads.

Before: a: Project x, y, z (Scan TCP [all fields])   b: Project x (Read a)     (a internal)
After:  a: Project x (Scan TCP [x])                  b: Read a
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from terascope.plan.expr import Col, Expr, columns_of
from terascope.plan.plan import Plan
from terascope.plan.rel import (
    WEND,
    WSTART,
    Aggregate,
    Filter,
    Join,
    Lookup,
    Merge,
    Project,
    Rank,
    Read,
    Rel,
    Running,
    Scan,
    Window,
    changed,
    refreshed,
    with_inputs,
)


def prune_columns(plan: Plan) -> Plan:
    """Narrow every operator to what is asked of it, from the outputs to the sources."""
    needed: dict[str, set[str]] = {s.name: set(s.rel.names) if s.visible else set() for s in plan}
    narrowed: dict[str, Rel] = {}
    for stream in reversed(plan.streams):
        rel = narrow(stream.rel, needed[stream.name], needed)
        narrowed[stream.name] = exactly(rel, stream.rel, needed[stream.name])
    fields = {name: rel.fields for name, rel in narrowed.items()}
    return plan.of([s.over(refreshed(narrowed[s.name], fields)) for s in plan])


def exactly(rel: Rel, before: Rel, needed: set[str]) -> Rel:
    """A stream delivers just what its readers need, in the old order."""
    wanted = tuple(n for n in before.names if n in needed) or before.names[:1]
    if rel.names == wanted:
        return rel
    return Project(rel, tuple((n, Col(n, before.type_of(n))) for n in wanted))


def names_in(exprs: Iterable[Expr]) -> set[str]:
    return {n for e in exprs for n in columns_of(e)}


def narrow(rel: Rel, wanted: set[str], needed: dict[str, set[str]]) -> Rel:
    """The relation with at least the wanted columns, and no more than it must have."""
    match rel:
        case Scan(columns=columns):
            kept = tuple(c for c in columns if c.name in wanted) or columns[:1]
            return changed(rel, columns=kept)
        case Read(stream=stream):
            needed[stream] |= wanted & set(rel.names) or set(rel.names[:1])
            return rel
        case Lookup():
            return rel
        case Filter(source=source, predicate=predicate):
            below = narrow(source, wanted | columns_of(predicate), needed)
            return with_inputs(rel, (below,))
        case Project(source=source, items=items):
            kept_items = tuple((n, e) for n, e in items if n in wanted) or items[:1]
            below = narrow(source, names_in(e for _, e in kept_items), needed)
            return with_inputs(changed(rel, items=kept_items), (below,))
        case Window(source=source, on=on, elements=elements):
            own = {WSTART, WEND} if elements else set()
            below = narrow(source, (wanted - {WSTART, WEND}) | own | {on}, needed)
            return with_inputs(rel, (below,))
        case Aggregate() | Running():
            asked = wanted | (columns_of(rel.closing) if isinstance(rel, Running) else set())
            kept_aggs = tuple((n, a) for n, a in rel.aggs if n in asked)
            needs = names_in(e for _, e in rel.keys)
            for _, agg in kept_aggs:
                needs |= names_in(agg.args) | set(agg.order)
            below = narrow(rel.source, needs, needed)
            return with_inputs(changed(rel, aggs=kept_aggs), (below,))
        case Rank(source=source, per=per, order=order):
            needs = wanted | set(per) | names_in(e for e, _ in order)
            return with_inputs(rel, (narrow(source, needs, needed),))
        case Join():
            return narrow_join(rel, wanted, needed)
        case Merge():
            return narrow_merge(rel, wanted, needed)
        case _:
            assert_never(rel)


def narrow_join(join: Join, wanted: set[str], needed: dict[str, set[str]]) -> Rel:
    fills = tuple((n, e) for n, e in join.fills if n in wanted)
    needs = wanted | names_in(e for _, e in fills)
    needs |= names_in(e for pair in join.equalities for e in pair)
    needs |= columns_of(join.residual) if join.residual is not None else set()
    return replace(
        join,
        left=narrow(join.left, needs & set(join.left.names), needed),
        right=narrow(join.right, needs & set(join.right.names), needed),
        fills=fills,
    )


def narrow_merge(merge: Merge, wanted: set[str], needed: dict[str, set[str]]) -> Rel:
    """All inputs keep the same positions, so that columns still match."""
    asked = wanted | {merge.on}
    places = [i for i, f in enumerate(merge.fields) if f.name in asked]
    sources = []
    for source in merge.sources:
        names = [source.fields[i].name for i in places]
        below = narrow(source, set(names), needed)
        items = tuple((n, Col(n, source.type_of(n))) for n in names)
        exact = below if below.names == tuple(names) else Project(below, items)
        sources.append(exact)
    return replace(merge, sources=tuple(sources))
