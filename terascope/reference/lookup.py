"""Watch lists: the rows of a small table from a file, read as every engine reads it."""

from __future__ import annotations

from terascope.execute.watch_list import read_watch_list
from terascope.plan.rel import Lookup
from terascope.reference.rows import Row


def lookup(rel: Lookup) -> list[Row]:
    """The rows, typed.

    Raises:
        SourceError: the file is not there, or a line has too few columns.
    """
    columns = [column.to_pylist() for column in read_watch_list(rel).columns]
    return list(zip(*columns, strict=True))
