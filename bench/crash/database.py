"""A callback that keeps rows in a database, with the number of their batch in one transaction.

In: calls with the rows of a batch. Out: every batch once, whoever is killed, and when: what is not
committed is called again, and what is, is known.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path

import pyarrow as pa

from bench.crash.queries import NAMES
from bench.crash.rows import Rows

TABLES = """
CREATE TABLE IF NOT EXISTS rows (query TEXT, row TEXT);
CREATE TABLE IF NOT EXISTS taken (query TEXT PRIMARY KEY, batch INTEGER);
"""


class Database:
    """The rows of all queries; opened for each call, for calls come from several threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with sqlite3.connect(path) as opened:
            opened.executescript(TABLES)

    def __call__(self, query: str, batch: int, rows: pa.Table, /) -> None:
        lines = [(query, json.dumps(row, default=str)) for row in rows.to_pylist()]
        with sqlite3.connect(self._path) as transaction:
            transaction.executemany("INSERT INTO rows VALUES (?, ?)", lines)
            transaction.execute("INSERT OR REPLACE INTO taken VALUES (?, ?)", (query, batch))

    def last(self, query: str, /) -> int | None:
        """The last batch that was committed."""
        with sqlite3.connect(self._path) as opened:
            found = opened.execute("SELECT batch FROM taken WHERE query = ?", (query,)).fetchone()
        return None if found is None else int(found[0])

    def rows(self) -> Rows:
        """All rows."""
        with sqlite3.connect(self._path) as opened:
            held = opened.execute("SELECT query, row FROM rows").fetchall()
        return {name: Counter(row for query, row in held if query == name) for name in NAMES}
