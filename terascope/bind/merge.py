"""MERGE: the ordered union of streams of one shape (dissertation 3.1.3)."""

from __future__ import annotations

from collections.abc import Sequence

from terascope.analysis.order import knows_place
from terascope.bind.coerce import of_type
from terascope.bind.context import BindContext
from terascope.bind.protocols import rising
from terascope.bind.scope import FromLeaf
from terascope.connectors.arrival import is_arrival
from terascope.diagnostic import Mistake, each, mistake
from terascope.functions.base import Trend
from terascope.plan.expr import Col, Expr, Lit
from terascope.plan.rel import TS, Filter, Merge, Project, Rank, Rel, Scan
from terascope.syntax import ast
from terascope.types import Type, unify


def bind_merge(context: BindContext, query: ast.MergeQuery, leaves: Sequence[FromLeaf]) -> Rel:
    """The merge, with columns matched by position."""
    if len(query.fields) != len(leaves):
        message = f"MERGE names {len(query.fields)} fields for {len(leaves)} streams"
        help = "one merge field per stream: MERGE R.ts : S.ts FROM ... R, ... S"
        raise mistake("merge-mismatch", message, query.span, help=help)
    pairs = list(zip(leaves, query.fields, strict=True))
    positions = context.attempt(each, lambda pair: merge_position(context, *pair), pairs)
    if positions is None:
        alike(leaves, query)
        raise Mistake
    if len(set(positions)) > 1:
        raise mistake(
            "merge-mismatch",
            "the merge fields stand at different positions of the streams",
            query.fields[0].span.to(query.fields[-1].span),
            help="columns are matched by position; the merge field must be the same one",
        )
    common = context.attempt(common_order, context, leaves, query.fields)
    rels = alike(leaves, query)
    if common is None:
        raise Mistake
    on = leaves[0].rel.visible[positions[0]].name
    if knows_place(rels[0]):
        rels = in_merge_order(rels, on, common)
    return Merge(rels, on, query.slack or 0, span=query.span)


def common_order(
    context: BindContext, leaves: Sequence[FromLeaf], names: Sequence[ast.Name]
) -> Trend:
    """The direction in which all merge fields move; there must be one, counted in one unit."""
    found = [context.orders(leaf.rel)[n.name] for leaf, n in zip(leaves, names, strict=True)]
    first = found[0]
    for leaf, name, order in zip(leaves[1:], names[1:], found[1:], strict=True):
        notes = (
            f"'{names[0].name}' of '{leaves[0].qualifier}' is {first}",
            f"'{name.name}' of '{leaf.qualifier}' is {order}",
        )
        span = names[0].span.to(name.span)
        if order.slope.trend is not first.slope.trend:
            message = "the merge fields have no common order: one rises and one falls"
            help = (
                "turn one round in a sub-query, "
                f"(SELECT -{name.name} AS {name.name}, ... FROM ...) {leaf.qualifier}, "
                "or merge on fields that move the same way"
            )
            raise mistake("unordered-merge", message, span, help, notes)
        if order.clock and first.clock and order.clock != first.clock:
            message = "the merge fields have no common order: their clocks count in different units"
            help = (
                "bring them to one unit in a sub-query, "
                f"(SELECT {name.name} * 1000 AS {name.name}, ... FROM ...) {leaf.qualifier}"
            )
            raise mistake("unordered-merge", message, span, help, notes)
    return first.slope.trend


def in_merge_order(rels: tuple[Rel, ...], on: str, trend: Trend) -> tuple[Rel, ...]:
    """The streams with a hidden column that puts tuples in the order of the merge field, unless the
    place that they carry already does.
    """
    if trend is Trend.INCREASING and all(says_place(rel, on) for rel in rels):
        return rels
    return tuple(first_hidden(rel, on, trend) for rel in rels)


def says_place(rel: Rel, name: str) -> bool:
    """Whether the hidden time of tuples puts them in the order of this column, too: it is the same
    column, or the finer clock of the same packets. Streams that are read are not looked into.
    """
    match rel:
        case Scan():
            columns = {c.name: c for c in rel.columns}
            if TS not in columns:
                return False
            same = columns[name].read_from == columns[TS].read_from
            own = columns[name].clock is not None and not is_arrival(columns[name].read_from)
            return same or (rel.layer is not None and own)
        case Filter() | Rank():
            return says_place(rel.source, name)
        case Project():
            items = dict(rel.items)
            column, time = items[name], items.get(TS)
            if not isinstance(column, Col) or not isinstance(time, Col) or time.name != TS:
                return False
            return says_place(rel.source, column.name)
        case _:
            return False


def first_hidden(rel: Rel, on: str, trend: Trend) -> Rel:
    """The relation with the merge field, as a rising value, before its other hidden columns."""
    field = Col(on, rel.type_of(on))
    name = f"#on{sum(f.hidden for f in rel.fields)}"
    items: list[tuple[str, Expr]] = [(f.name, Col(f.name, f.type)) for f in rel.visible]
    items.append((name, field if trend is Trend.INCREASING else rising(field)))
    items += [(f.name, Col(f.name, f.type)) for f in rel.fields if f.hidden]
    return Project(rel, tuple(items), span=rel.span)


def merge_position(context: BindContext, leaf: FromLeaf, name: ast.Name) -> int:
    """The position of the merge field among the columns of its stream."""
    names = [f.name for f in leaf.rel.visible]
    if name.qualifier not in (None, leaf.qualifier):
        message = f"'{name.qualifier}.{name.name}' should name a field of '{leaf.qualifier}'"
        help = "merge fields stand in the order of the streams in FROM"
        raise mistake("merge-mismatch", message, name.span, help=help)
    if name.name not in names:
        message = f"'{leaf.qualifier}' has no column '{name.name}'"
        help = f"columns are: {', '.join(names)}"
        raise mistake("unknown-column", message, name.span, help=help)
    if name.name not in context.orders(leaf.rel):
        raise mistake(
            "unordered-merge",
            f"'{name.name}' of '{leaf.qualifier}' is not ordered, so that it cannot be merged on",
            name.span,
        )
    return names.index(name.name)


def alike(leaves: Sequence[FromLeaf], query: ast.MergeQuery) -> tuple[Rel, ...]:
    """The streams with columns of one name and type each, by position: the names of the first, and
    types that hold the values of all.
    """
    first = leaves[0].rel
    types = [field.type for field in first.visible]
    hidden = {tuple(f.name for f in leaf.rel.fields if f.hidden) for leaf in leaves}
    with_place = len(hidden) == 1 and all(knows_place(leaf.rel) for leaf in leaves)
    for leaf in leaves:
        if len(leaf.rel.visible) != len(first.visible):
            message = (
                f"'{leaf.qualifier}' has {len(leaf.rel.visible)} columns, "
                f"'{leaves[0].qualifier}' has {len(first.visible)}"
            )
            raise mistake("merge-mismatch", message, query.span)
        for place, (target, field) in enumerate(zip(first.visible, leaf.rel.visible, strict=True)):
            common = unify(types[place], field.type)
            if common is None:
                message = (
                    f"column '{field.name}' is {field.type.label} in '{leaf.qualifier}' "
                    f"and {target.type.label} in '{leaves[0].qualifier}'"
                )
                raise mistake("merge-mismatch", message, query.span)
            types[place] = common
    rels: list[Rel] = []
    for leaf in leaves:
        items: list[tuple[str, Expr]] = []
        for target, field, type in zip(first.visible, leaf.rel.visible, types, strict=True):
            column = Col(field.name, field.type)
            items.append((target.name, of_type(column, type)))
        if with_place:
            carried = [f for f in leaf.rel.fields if f.hidden]
            items += [(f.name, Col(f.name, f.type)) for f in carried]
            # Two inputs may hold the same tuple of a source: its place alone is no order then.
            items.append((f"#in{len(carried)}", Lit(len(rels), Type.INT)))
        rels.append(Project(leaf.rel, tuple(items), span=leaf.span))
    return tuple(rels)
