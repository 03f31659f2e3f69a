"""DataFrames as sources: the kind `dataframe`, for tuples that Spark already has.

In: a DataFrame, opaque here, and how it holds its columns (`terascope.spark.dataframes` looks).
Out: an `Interface` without files. Values convert as those of a Parquet file do, so that a DataFrame
and a file of the same rows give the same answers. Spark reads it by itself; `batches` is for the
reference interpreter, which has no Spark of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from terascope.connectors.base import Column, Edge, ReadReport, Split
from terascope.connectors.registry import Interface
from terascope.connectors.tables.arrow_columns import own_type
from terascope.connectors.tables.batches import arrow_column, assemble
from terascope.connectors.tables.convert import Converted
from terascope.types import Type

KIND = "dataframe"


@dataclass(frozen=True)
class HeldColumn:
    """A column as the DataFrame has it."""

    name: str
    type: str
    """In Spark's words."""
    arrow: pa.DataType | None
    """Its type in a Parquet file; None when it is no single value, or of a type that GSQL lacks."""


@dataclass(frozen=True)
class DataFrameInterface(Interface):
    """A DataFrame under the name queries call it by. Its tuples are in Spark, and stay there."""

    frame: Any = field(default=None, repr=False)
    held: tuple[HeldColumn, ...] = ()
    declared: str = ""
    """The partitioning set by which Spark's partitions of it are declared to be made."""

    @property
    def partitioned_by(self) -> str:
        return self.declared

    @property
    def described(self) -> str:
        return f"DataFrame '{self.name}'"

    @property
    def noun(self) -> str:
        return "a DataFrame"

    @cached_property
    def files(self) -> tuple[Path, ...]:
        return ()

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns that hold single values."""
        typed = [(c.name, own_type(c.arrow)) for c in self.held if c.arrow is not None]
        return tuple(Column(name, type) for name, type in typed if type is not None)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.held)

    def splits(self, target_bytes: int, edge: Edge | None = None) -> list[Split]:
        """No split: Spark has its own partitions."""
        return []

    def cannot_hold(self, name: str, type: Type) -> tuple[str, str] | None:
        found = next((c for c in self.held if c.name == name), None)
        if found is None:
            return None
        subject = f"column '{name}' of {self.described} is {found.type}"
        if found.arrow is None:
            return (
                f"{subject}, which no GSQL type can hold",
                "bind a DataFrame in which it is a plain value, or several:"
                " df.withColumn(...) with a field, a length or a text of it",
            )
        if not fits(found.arrow, type):
            own = own_type(found.arrow)
            assert own is not None
            return (
                f"{subject}, which {type.label} cannot hold",
                f"declare it {own.label}, or change the column with df.withColumn(...)",
            )
        return None

    def batches(self, columns: Sequence[Column], report: ReadReport) -> Iterator[pa.RecordBatch]:
        """All tuples of the DataFrame, collected into this process."""
        names = list(self.column_names)
        wanted = [names.index(c.name) for c in columns if c.name in names]
        places = [f"c{i}" for i in range(len(names))]
        by_place = self.frame.toDF(*places)
        table: pa.Table = by_place.select(*(places[i] for i in wanted)).toArrow()
        rows = table.num_rows if wanted else self.frame.count()
        held = {names[i]: table.column(at).combine_chunks() for at, i in enumerate(wanted)}

        def convert(column: Column) -> Converted | None:
            return arrow_column(held[column.name], column) if column.name in held else None

        whole = Split(KIND, self.name, "", 0, 0, 0)
        yield assemble(whole, columns, np.arange(rows, dtype=np.int64), convert, report)


def fits(held: pa.DataType, type: Type) -> bool:
    """Whether a value of a column may be one of a type."""
    if pa.types.is_temporal(held):
        return not type.is_address and type is not Type.BOOL
    return not (pa.types.is_boolean(held) and type.is_address)
