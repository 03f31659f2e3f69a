"""Values that are known in several places at once, and what several of them have in common.

A group of a query has values that its tuples have as well: `srcIP & 0xFFFFFF00 AS net` is `net` in
the rows of the query and `srcIP & 0xFFFFFF00` in the tuples of a source. A `KnownValue` holds such
a value: an expression for each place where it is known. A place is a source, by its name, or
`OUTPUT`, the columns of the relation that is looked at.

In: entries of two relations, or of two partitioning sets. Out: `meet`: the finest values that both
determine, each with its expression in every place (P2 3.5.2, 3.5.3, 4.1); `derived`: a wanted value
as a function of entries, the same function in every place. Partitioning sets and grouping sets of
sampling are inferred with the same two functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from terascope.partitioning.forms import common, rewritten
from terascope.partitioning.normal import form_key
from terascope.plan.expr import Col, Expr, columns_of, substitute, walk

OUTPUT: Final = ""
"""The columns of the relation that is looked at; no source has this name."""
NEXT: Final = "#next"
"""The columns of the relation above it."""
RELATIONS: Final = (OUTPUT, NEXT)
MOST_REPAIRS: Final = 4
"""Rounds in which a value is made coarser until it is the same function in every place."""

Values: TypeAlias = Mapping[str, Expr]
"""The expression of one value, by place."""


@dataclass(frozen=True)
class KnownValue:
    """One value, in every place where it is known."""

    values: Values
    temporal: bool = False
    """Derived from an ordered column: by default no part of a partitioning set (P2 3.5.1)."""

    @property
    def expr(self) -> Expr:
        """The value over the columns of the relation."""
        return self.values[OUTPUT]

    @property
    def origins(self) -> Values:
        """The value over the columns of each source."""
        return {place: expr for place, expr in self.values.items() if place not in RELATIONS}

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for entries with the same values, however these are written."""
        keys = ((place, cached_key(expr)) for place, expr in sorted(self.values.items(), key=first))
        return (*keys, self.temporal)


def first(item: tuple[str, Expr]) -> str:
    return item[0]


# ---- the algebra, remembered ---------------------------------------------------------------------

# A query set asks the same questions of the same few expressions over and over.


@lru_cache(maxsize=1 << 14)
def cached_key(expr: Expr) -> tuple[object, ...]:
    return form_key(expr)


@lru_cache(maxsize=1 << 14)
def cached_common(one: Expr, other: Expr) -> Expr | None:
    return common(one, other)


@lru_cache(maxsize=1 << 14)
def cached_ways(target: Expr, given: tuple[tuple[Expr, Expr], ...]) -> tuple[Expr, ...]:
    """The ways to compute the target, the shortest first."""
    return tuple(sorted(rewritten(target, given), key=lambda way: len(list(walk(way)))))


def same(one: Expr, other: Expr) -> bool:
    return one == other or cached_key(one) == cached_key(other)


def touch(one: Expr, other: Expr) -> bool:
    """Whether two expressions have a column in common; if not, neither determines the other."""
    return not columns_of(one).isdisjoint(columns_of(other))


def hole(number: int, expr: Expr) -> Col:
    """A column that stands for the value of an entry."""
    return Col(f"#{number}", expr.type)


IT: Final = "#0"
"""The hole of a function of one value."""


def function_of(target: Expr, given: Expr) -> Expr | None:
    """The target as a function of one value, written over the hole `IT`; None: it is none."""
    return next(iter(cached_ways(target, ((hole(0, given), given),))), None)


def applied_to(function: Expr, value: Expr) -> Expr:
    return substitute(function, {IT: value})


# ---- a value as a function of entries ------------------------------------------------------------


def derived(entries: Sequence[KnownValue], wanted: Values) -> KnownValue | None:
    """The wanted value as one function of entries, the same in all places where it is wanted; with
    its expression in all other places that these entries have. None: no such function is known.
    """
    places = sorted(wanted)
    target = wanted[places[0]]
    usable = [
        entry
        for entry in entries
        if entry.values.keys() >= wanted.keys() and touch(entry.values[places[0]], target)
    ]
    if not usable:
        return None
    given = tuple((hole(i, e.values[places[0]]), e.values[places[0]]) for i, e in enumerate(usable))
    by_hole = {new.name: entry for (new, _), entry in zip(given, usable, strict=True)}
    for way in cached_ways(target, given):
        used = [by_hole[name] for name in columns_of(way)]
        if not used or not all(
            same(in_place(way, by_hole, place), wanted[place]) for place in places[1:]
        ):
            continue
        everywhere = frozenset.intersection(*(frozenset(e.values) for e in used))
        values = {
            place: wanted[place] if place in wanted else in_place(way, by_hole, place)
            for place in everywhere
        }
        return KnownValue(values, any(e.temporal for e in used))
    return None


def in_place(function: Expr, by_hole: Mapping[str, KnownValue], place: str) -> Expr:
    names = columns_of(function)
    return substitute(function, {name: by_hole[name].values[place] for name in names})


# ---- what entries have in common -----------------------------------------------------------------


def meet(ones: Sequence[KnownValue], others: Sequence[KnownValue]) -> tuple[KnownValue, ...]:
    """The finest values that both determine, in all places of both. Entries meet in the places that
    both know; entries that share no place do not meet.
    """
    found: dict[tuple[object, ...], KnownValue] = {}
    for entry in met(ones, others):
        found.setdefault(entry.key, entry)
    return tuple(found.values())


def met(ones: Sequence[KnownValue], others: Sequence[KnownValue]) -> Iterator[KnownValue]:
    for given, wanted in ((ones, others), (others, ones)):
        for entry in wanted:
            places = {p for e in given for p in e.values} & entry.values.keys()
            made = derived(given, {p: entry.values[p] for p in places}) if places else None
            if made is not None:
                values = {**made.values, **entry.values}
                yield KnownValue(values, made.temporal or entry.temporal)
    for one in ones:
        for other in others:
            made = common_entry(one, other)
            if made is not None:
                yield made


def common_entry(one: KnownValue, other: KnownValue) -> KnownValue | None:
    """The finest value that two entries determine, by the same function in every place."""
    shared = sorted(one.values.keys() & other.values.keys())
    if not shared or not all(touch(one.values[p], other.values[p]) for p in shared):
        return None
    left, right = dict(one.values), dict(other.values)
    for _ in range(MOST_REPAIRS):
        differing = [place for place in shared if not same(left[place], right[place])]
        if not differing:
            return KnownValue({**right, **left}, one.temporal or other.temporal)
        place = differing[0]
        coarser = cached_common(left[place], right[place])
        if coarser is None or not columns_of(coarser):
            return None
        from_left = function_of(coarser, left[place])
        from_right = function_of(coarser, right[place])
        if from_left is None or from_right is None:
            return None
        left = {p: applied_to(from_left, e) for p, e in left.items()} | {place: coarser}
        right = {p: applied_to(from_right, e) for p, e in right.items()} | {place: coarser}
    return None


def without_derivable(entries: Iterable[KnownValue], place: str) -> tuple[KnownValue, ...]:
    """The entries without those that others determine, in one place."""
    kept = list(entries)
    for entry in list(reversed(kept)):
        rest = [e for e in kept if e is not entry]
        given = tuple((hole(i, e.values[place]), e.values[place]) for i, e in enumerate(rest))
        if given and any(map(columns_of, cached_ways(entry.values[place], given))):
            kept.remove(entry)
    return tuple(kept)


def over(
    entries: Sequence[KnownValue], items: Iterable[tuple[str, Expr]]
) -> tuple[KnownValue, ...]:
    """The entries of a relation over other columns: items are (name, expression over the
    relation).
    """
    named = [KnownValue({OUTPUT: expr, NEXT: Col(name, expr.type)}) for name, expr in items]
    made = (e for e in meet(entries, named) if NEXT in e.values and e.origins)
    return tuple(KnownValue({**e.origins, OUTPUT: e.values[NEXT]}, e.temporal) for e in made)
