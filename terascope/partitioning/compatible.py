"""stub"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from terascope.plan.expr import Col, columns_of, substitute
from terascope.plan.rel import *


@dataclass(frozen=True)
class Kept:
    streams: frozenset[str]
    reasons: Mapping[str, str] = field(default_factory=dict)


def kept_streams(streams, placement, rotate=None):
    kept = {}
    reasons = {}

    def look(rel):
        """Returns lineage dict or None"""
        match rel:
            case Scan():
                if not all(n in placement for n in rel.interfaces):
                    return None
                return {c.name: Col(c.read_from, c.type) for c in rel.columns}, placement[
                    rel.interfaces[0]
                ]
            case Read():
                return kept.get(rel.stream)
            case Lookup():
                return None
            case Filter() | Rank(limit=None):
                return look(rel.source)
            case Window():
                return look(rel.source)
            case Project():
                f = look(rel.source)
                if f is None:
                    return None
                lin, p = f
                out = {}
                for n, e in rel.items:
                    if columns_of(e) <= lin.keys():
                        out[n] = substitute(e, lin)
                return out, p
            case Aggregate() | Running():
                f = look(rel.source)
                if f is None:
                    return None
                lin, p = f
                keys = {n: substitute(e, lin) for n, e in rel.keys if columns_of(e) <= lin.keys()}
                vals = set(keys.values())
                plain = {v.name for v in vals if isinstance(v, Col)}
                ok = all(e in vals or columns_of(e) <= plain for e in p.expressions)
                return (keys, p) if ok else None
            case Join():
                a, b = look(rel.left), look(rel.right)
                if a is None or b is None:
                    return None
                eq = {
                    (str(substitute(x, a[0])), str(substitute(y, b[0])))
                    for x, y in rel.equalities
                    if columns_of(x) <= a[0].keys() and columns_of(y) <= b[0].keys()
                }
                if all((str(e), str(e)) in eq for e in a[1].expressions):
                    return ({**a[0], **(b[0] if rel.kind in ("inner",) else {})}, a[1])
                return None
            case Rank():
                return None
            case _:
                return None

    for name, rel in streams.items():
        f = look(rel)
        if f is not None:
            kept[name] = f
        else:
            reasons[name] = "central"
    return Kept(frozenset(kept), reasons)
