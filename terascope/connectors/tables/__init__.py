"""Table-like sources: CSV, JSON lines and Parquet files.

A row that does not fit (wrong number of fields, a value that is not of its column's type, broken
JSON, invalid UTF-8) is dropped and counted with its reason; all others are used. However a file is
split, its rows and their `#pos` are the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from terascope.connectors.base import Connector
from terascope.connectors.tables.csv import CsvConnector
from terascope.connectors.tables.jsonlines import JsonConnector
from terascope.connectors.tables.parquet import ParquetConnector

TABLE_CONNECTORS: Mapping[str, Connector] = {
    "csv": CsvConnector(),
    "parquet": ParquetConnector(),
    "json": (_json := JsonConnector()),
    "jsonl": _json,
    "ndjson": _json,
}
"""Kind, or synonym of one -> connector."""

__all__ = ["TABLE_CONNECTORS", "CsvConnector", "JsonConnector", "ParquetConnector"]
