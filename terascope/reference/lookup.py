"""Watch lists: a small table from a CSV file (GS-Lite's WATCHLIST).

In: the file's path and the columns wanted. Out: its rows, typed. The first line is a header when
it names all the columns; otherwise columns go by position.
"""

from __future__ import annotations

import csv
from pathlib import Path

from terascope.connectors.base import SourceError
from terascope.functions.casts import cast_value
from terascope.plan.rel import Lookup
from terascope.reference.rows import Row
from terascope.types import Type


def lookup(rel: Lookup) -> list[Row]:
    """An empty cell, and a value that is not one of its column's type, are NULL.

    Raises:
        SourceError: the file is not there, or a line has too few columns.
    """
    try:
        with Path(rel.path).open(encoding="utf-8", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
    except OSError as error:
        raise SourceError(f"cannot read the watch list '{rel.path}': {error.strerror}") from error
    if not lines:
        return []
    places = list(range(len(rel.schema)))
    header = [name.strip() for name in lines[0]]
    if set(rel.names) <= set(header):
        places = [header.index(name) for name in rel.names]
        lines = lines[1:]
    for line in lines:
        if len(line) <= max(places):
            raise SourceError(
                f"watch list '{rel.path}' has a line with {len(line)} columns, "
                f"at least {max(places) + 1} are needed"
            )
    return [
        tuple(typed(line[i].strip(), f.type) for i, f in zip(places, rel.schema, strict=True))
        for line in lines
    ]


def typed(text: str, type: Type) -> object:
    return cast_value(text, Type.STRING, type) if text else None
