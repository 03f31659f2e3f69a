"""Which columns can be named where.

In: the inputs of a FROM clause. Out: a column for a name, qualified or not, or the reason why not.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from terascope.connectors.packets.fields import canonical
from terascope.plan.build import call
from terascope.plan.expr import Cast, Col, Expr
from terascope.plan.rel import Field

MOST_SHOWN = 16


class NoSuchColumn(Exception):
    def __init__(self, code: str, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.help = code, message, help


@dataclass(frozen=True)
class ScopeInput:
    """One input of FROM: what it is called, and its columns as (name in queries, column below)."""

    qualifier: str
    columns: tuple[tuple[str, Field], ...]

    def find(self, name: str) -> Col | None:
        """The column of that name, or the one that is known under it as an alias."""
        for known, field in self.columns:
            if known == name:
                return Col(field.name, field.type)
        for known, field in self.columns:
            if canonical(known) == canonical(name):
                return Col(field.name, field.type)
        return None


def is_among(names: Set[str], equated: Iterable[frozenset[str]]) -> bool:
    """Whether several columns are equated with each other."""
    return len(names) > 1 and any(names <= one for one in equated)


@dataclass(frozen=True)
class Scope:
    """All inputs of a query. `equated`: sets of columns that a join condition makes equal. `seen`:
    what a column is for the user, where a join of SQL's meaning fills it (missing_side.py).
    `later_equated`: like `equated`, of outer joins that are not made yet: before them, only
    `coalesce` of such columns is the value they have in common.
    """

    inputs: tuple[ScopeInput, ...]
    equated: tuple[frozenset[str], ...] = ()
    seen: Mapping[str, Expr] = dataclasses.field(default_factory=dict)
    later_equated: tuple[frozenset[str], ...] = ()

    def find(self, name: str, qualifier: str | None) -> Expr:
        """The column a name means.

        Raises:
            NoSuchColumn: nothing, or more than one thing, is called so.
        """
        if qualifier is not None:
            return self.as_seen(self.find_qualified(name, qualifier))
        found = self.find_all(name)
        if is_among({c.name for c in found}, self.later_equated):
            return call(
                "coalesce",
                *(c if c.type is found[0].type else Cast(c, found[0].type) for c in found),
            )
        column, shared = self.find_shared(name)
        return column if shared else self.as_seen(column)

    def find_shared(self, name: str) -> tuple[Col, bool]:
        """The column that a name without qualifier means, and whether several inputs share it: then
        it is the value that they have in common.

        Raises:
            NoSuchColumn: nothing, or more than one thing, is called so.
        """
        found = self.find_all(name)
        if not found:
            raise NoSuchColumn("unknown-column", f"no column '{name}'", self.suggest(name))
        if len(found) > 1 and not is_among({c.name for c in found}, self.equated):
            names = ", ".join(f"{i.qualifier}.{name}" for i in self.inputs if i.find(name))
            raise NoSuchColumn(
                "ambiguous-column", f"'{name}' may be any of {names}", "write which one you mean"
            )
        return found[0], len(found) > 1

    def find_all(self, name: str) -> list[Col]:
        """The columns of that name, of all inputs."""
        return [c for i in self.inputs if (c := i.find(name)) is not None]

    def as_seen(self, column: Col) -> Expr:
        return self.seen.get(column.name, column)

    def find_qualified(self, name: str, qualifier: str) -> Col:
        for source in self.inputs:
            if source.qualifier == qualifier:
                column = source.find(name)
                if column is None:
                    raise NoSuchColumn(
                        "unknown-column",
                        f"'{qualifier}' has no column '{name}'",
                        self.suggest(name, qualifier),
                    )
                return column
        known = ", ".join(i.qualifier for i in self.inputs)
        raise NoSuchColumn(
            "unknown-column", f"no input is called '{qualifier}'", f"inputs here are: {known}"
        )

    def suggest(self, name: str, qualifier: str | None = None) -> str:
        inputs = [i for i in self.inputs if qualifier in (None, i.qualifier)]
        known = list(dict.fromkeys(k for i in inputs for k, f in i.columns if not f.hidden))
        lower = {k.lower(): k for k in known}
        close = difflib.get_close_matches(name.lower(), lower, n=1)
        if close:
            return f"did you mean '{lower[close[0]]}'?"
        shown = ", ".join(known[:MOST_SHOWN])
        return f"columns here are: {shown}" + (", ..." if len(known) > MOST_SHOWN else "")
