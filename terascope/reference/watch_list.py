"""Watch lists: a small table from a CSV file (GS-Lite's WATCHLIST).

In: the file's path and the columns wanted. Out: an Arrow table, typed. The first line is a header
when it names all the columns; otherwise columns go by position.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.diagnostic import SourceError
from terascope.functions.casts import cast_value
from terascope.plan.rel import Lookup
from terascope.types import Type


def read_watch_list(rel: Lookup) -> pa.Table:
    """Read a watch list. An empty cell, or a value that does not fit its column's type, is NULL.

    Raises:
        SourceError: the file is not there, or a line has too few columns.
    """
    lines = read_lines(rel.path)
    places = list(range(len(rel.schema)))
    header = [name.strip() for name in lines[0]] if lines else []
    if lines and set(rel.names) <= set(header):
        places = [header.index(name) for name in rel.names]
        lines = lines[1:]
    for line in lines:
        if len(line) <= max(places):
            raise SourceError(
                f"watch list '{rel.path}' has a line with {len(line)} columns, "
                f"at least {max(places) + 1} are needed"
            )
    columns = [
        pa.array([typed(line[at].strip(), f.type) for line in lines], arrow_type(f.type))
        for at, f in zip(places, rel.schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, list(rel.names))


def read_lines(path: str) -> list[list[str]]:
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            return [line for line in csv.reader(file) if line]
    except OSError as error:
        raise SourceError(f"cannot read the watch list '{path}': {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"the watch list '{path}' is not CSV text: {error}") from error


def typed(text: str, type: Type) -> object:
    return cast_value(text, Type.STRING, type) if text else None
