"""MERGE: the ordered union of streams of one shape (dissertation 3.1.3)."""

from __future__ import annotations

from terascope.analysis.order import column_orders
from terascope.analysis.sequence import knows_place
from terascope.bind.context import Context
from terascope.bind.joins import Leaf
from terascope.bind.sources import SourceBinder, flatten_items
from terascope.plan.expr import Cast, Col, Expr, Lit
from terascope.plan.rel import Merge, Project, Rel
from terascope.syntax import ast
from terascope.types import Type, unify


def bind_merge(context: Context, sources: SourceBinder, query: ast.Merge) -> Rel | None:
    """The merge, with columns matched by position."""
    found = [sources.bind_leaf(item) for item in flatten_items(query.sources)]
    leaves = [leaf for leaf in found if leaf is not None]
    if len(leaves) != len(found):
        return None
    if len(query.fields) != len(leaves):
        context.error(
            "merge-mismatch",
            f"MERGE names {len(query.fields)} fields for {len(leaves)} streams",
            query.span,
            help="one merge field per stream: MERGE R.ts : S.ts FROM ... R, ... S",
        )
        return None
    rels = alike(context, leaves, query)
    positions = [
        merge_position(context, leaf, name) for leaf, name in zip(leaves, query.fields, strict=True)
    ]
    if rels is None or any(p is None for p in positions):
        return None
    if len(set(positions)) > 1:
        context.error(
            "merge-mismatch",
            "the merge fields stand at different positions of the streams",
            query.fields[0].span.to(query.fields[-1].span),
            help="columns are matched by position; the merge field must be the same one",
        )
        return None
    on = leaves[0].rel.visible[positions[0] or 0].name
    return Merge(rels, on, query.slack or 0, span=query.span)


def merge_position(context: Context, leaf: Leaf, name: ast.Name) -> int | None:
    """Where the merge field stands among the columns of its stream."""
    names = [f.name for f in leaf.rel.visible]
    if name.qualifier not in (None, leaf.qualifier):
        context.error(
            "merge-mismatch",
            f"'{name.qualifier}.{name.name}' should name a field of '{leaf.qualifier}'",
            name.span,
            help="merge fields stand in the order of the streams in FROM",
        )
        return None
    if name.name not in names:
        context.error(
            "unknown-column",
            f"'{leaf.qualifier}' has no column '{name.name}'",
            name.span,
            help=f"columns are: {', '.join(names)}",
        )
        return None
    if name.name not in column_orders(leaf.rel, context.stream_orders):
        context.error(
            "unordered-merge",
            f"'{name.name}' of '{leaf.qualifier}' is not ordered, so that it cannot be merged on",
            name.span,
        )
        return None
    return names.index(name.name)


def alike(context: Context, leaves: list[Leaf], query: ast.Merge) -> tuple[Rel, ...] | None:
    """The streams with columns of one name and type each, by position."""
    first = leaves[0].rel
    hidden = {tuple(f.name for f in leaf.rel.fields if f.hidden) for leaf in leaves}
    place = len(hidden) == 1 and all(knows_place(leaf.rel) for leaf in leaves)
    rels: list[Rel] = []
    for leaf in leaves:
        if len(leaf.rel.visible) != len(first.visible):
            context.error(
                "merge-mismatch",
                f"'{leaf.qualifier}' has {len(leaf.rel.visible)} columns, "
                f"'{leaves[0].qualifier}' has {len(first.visible)}",
                query.span,
            )
            return None
        items: list[tuple[str, Expr]] = []
        for target, field in zip(first.visible, leaf.rel.visible, strict=True):
            column = Col(field.name, field.type)
            if unify(target.type, field.type) is None:
                context.error(
                    "merge-mismatch",
                    f"column '{field.name}' is {field.type.value} in '{leaf.qualifier}' "
                    f"and {target.type.value} in '{leaves[0].qualifier}'",
                    query.span,
                )
                return None
            cast = column if field.type is target.type else Cast(column, target.type)
            items.append((target.name, cast))
        if place:
            carried = [f for f in leaf.rel.fields if f.hidden]
            items += [(f.name, Col(f.name, f.type)) for f in carried]
            # Two inputs may hold the same tuple of a source: its place alone is no order then.
            items.append((f"#in{len(carried)}", Lit(len(rels), Type.INT)))
        rels.append(Project(leaf.rel, tuple(items), span=leaf.span))
    return tuple(rels)
