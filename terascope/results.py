"""What a run gave: for every visible query its rows, and what reading the sources saw.

In: a finished `JobResult`. Out: `Results`, a mapping from query names to `Result`s. Rows are
computed by Spark when they are first asked for. Addresses are text here, raw bytes hexadecimal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from html import escape
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from weakref import finalize

import pyarrow as pa

from terascope.connectors.base import ReadReport
from terascope.diagnostic import OutputError, SourceError
from terascope.output import (
    FILE_FORMATS,
    FileFormat,
    file_name,
    staged,
    write_manifest,
)
from terascope.pipeline import Compiled
from terascope.plan.rel import Field

if TYPE_CHECKING:
    import pandas as pd

    from terascope.execute.results.result_files import Format
    from terascope.physical.delivery import PartFormat
    from terascope.spark.api import DataFrame
    from terascope.spark.run import JobResult

__all__ = ["MalformedInput", "OutputError", "Result", "Results"]

Told = Callable[[str, int, int], None]
"""Progress: what is being done, how many of it are done, how many there are."""

SHOWN = 20
SMALL = 100_000
"""Rows of a query that stay when its session is closed."""
BATCH_ROWS = 1 << 16
WRITERS = 4
"""Queries that are written at the same time."""


class MalformedInput(SourceError):
    """Tuples were malformed and the run was strict."""


class SessionClosed(Exception):
    """The rows of a result were asked for when its Spark was stopped."""


class Result:
    """The rows of one query."""

    def __init__(self, name: str, job: JobResult) -> None:
        self.name = name
        self.fields: tuple[Field, ...] = job.fields[name]
        self._is_kept = False
        self._job = job

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @property
    def held(self) -> DataFrame:
        """The rows as they are computed: an address is its version and its bytes (terascope.types).

        Raises:
            SessionClosed: Spark, which would compute them, was stopped.
        """
        from terascope.spark.session import is_alive

        if not is_alive(self._job.spark):
            raise SessionClosed(
                f"the session of result '{self.name}' is closed; use results before it is (inside"
                " the `with` block), or take the rows along: rows(), to_arrow(), to_pandas()"
            )
        return self._held

    @cached_property
    def _held(self) -> DataFrame:
        from terascope.spark.parts import parts_frame

        if self.name in self._job.dataframes:
            return self._job.dataframes[self.name]
        job, name = self._job, self.name
        return parts_frame(
            job.spark, job.parts[name], len(self.fields), job.part_fields[name], job.orders[name]
        )

    @cached_property
    def dataframe(self) -> DataFrame:
        """The rows in their order, as a Spark DataFrame, addresses as text."""
        from terascope.spark.api import readable_frame

        return readable_frame(self.held, self.fields)

    @property
    def _kept(self) -> DataFrame:
        """Computed once, for counting and showing."""
        held = self.held
        if not self._is_kept:
            self._job.keep(held)
            self._is_kept = True
        return held

    @cached_property
    def _here(self) -> pa.Table | None:
        """All rows, held, when the tasks have written them and they are few enough: for these Spark
        need not be asked.
        """
        from terascope.execute.results.assemble import sorted_table
        from terascope.spark.parts import IN_MEMORY

        parts = self._job.parts.get(self.name)
        if parts is None or sum(part.rows for part in parts) > IN_MEMORY:
            return None
        files = [part.path for part in parts if part.rows]
        return sorted_table(files, self.fields, self._job.orders[self.name])

    @cached_property
    def row_count(self) -> int:
        from terascope.spark.mistakes import translating

        if (parts := self._job.parts.get(self.name)) is not None:
            return sum(part.rows for part in parts)
        with translating():
            return self._kept.count()

    def __len__(self) -> int:
        return self.row_count

    def head(self, rows: int = SHOWN) -> pa.Table:
        """The first rows."""
        from terascope.spark.write import preview, readable_table

        if (here := self._here) is not None:
            return readable_table(columns_of(here.slice(0, rows)), self.fields)
        return preview(self._kept, self.fields, rows)

    def to_arrow(self) -> pa.Table:
        from terascope.spark.write import readable_table, to_arrow_table

        if (here := self._here) is not None:
            return readable_table(columns_of(here), self.fields)
        return to_arrow_table(self.held, self.fields)

    def write_text(self, file: BinaryIO, format: Format) -> int:
        """All rows, in their order, and how many they are."""
        from terascope.execute.results.result_files import text_encoder, write_chunks
        from terascope.spark.write import write_text

        if (here := self._here) is None:
            return write_text(self.held, file, format, self.fields)
        encode = text_encoder(format, self.fields)
        batches = (batch for batch in here.to_batches(BATCH_ROWS) if batch.num_rows)
        return write_chunks(((encode(b), b.num_rows) for b in batches), file, format, self.fields)

    def fetch_small(self) -> None:
        """Take the rows over before their files go, if they are few."""
        if self.name in self._job.parts and self.row_count <= SMALL:
            _ = self._here

    def to_pandas(self) -> pd.DataFrame:
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def rows(self) -> list[dict[str, Any]]:
        """All rows, each a dict from column to value."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def show(self, rows: int = SHOWN) -> None:
        """Print the first rows as a table."""
        from terascope.display import result_table, stdout_console

        stdout_console().print(
            result_table(self.name, self.fields, self.head(rows), self.row_count)
        )

    def _repr_html_(self) -> str:
        from terascope.display import html_table

        return html_table(self.name, self.fields, self.head(), self.row_count)

    def __repr__(self) -> str:
        columns = ", ".join(f"{f.name} {f.type.label}" for f in self.fields)
        return f"<result {self.name}: {columns}>"


class Results(Mapping[str, Result]):
    """The answers of a query set, by query. Close it (or its session) when they are used."""

    def __init__(
        self,
        compiled: Compiled,
        job: JobResult,
        folder: Path | None = None,
    ) -> None:
        """`folder`: where tasks wrote rows that nobody else needs."""
        self.compiled = compiled
        self._job = job
        self._folder = None if folder is None else finalize(self, rmtree, folder, True)
        shown = job.fields if folder is not None else job.dataframes
        self._results = {name: Result(name, job) for name in shown}
        self.written: dict[str, int] = {}
        """Rows of each query in the files that were written."""

    def __getitem__(self, query: str) -> Result:
        if query not in self._results:
            raise KeyError(f"no query '{query}'; there are {', '.join(self._results) or 'none'}")
        return self._results[query]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def reports(self) -> Mapping[str, ReadReport]:
        """What reading saw, by interface: bytes, tuples, malformed ones by reason."""
        return dict(self._job.interfaces)

    @property
    def total(self) -> ReadReport:
        """The same for all interfaces together."""
        total = ReadReport()
        for report in self._job.interfaces.values():
            total.add(report)
        return total

    def check_strict(self) -> None:
        """Take malformed tuples for an error.

        Raises:
            MalformedInput: a tuple was malformed.
        """
        total = self.total
        if total.malformed:
            raise MalformedInput(f"malformed input: {malformed_text(total)}")

    def write(
        self, directory: str | Path, format: FileFormat = "csv", progress: Told | None = None
    ) -> list[Path]:
        """Every query as DIR/NAME.<format> with its manifest; all of them or none.

        Raises:
            OutputError: the directory cannot be written.
            ValueMistake: computing the rows met a value no answer exists for.
        """
        directory = Path(directory)
        with staged(directory, self.compiled.bindings.output_mode) as folder:
            counts = self.write_into(folder, format, progress)
        return [directory / file_name(query, format) for query in counts]

    def write_into(
        self, folder: Path, format: FileFormat, progress: Told | None = None, parts: bool = False
    ) -> dict[str, int]:
        """The files, and how many rows each of them has. With `parts` every query is a folder."""
        if format not in FILE_FORMATS:
            raise ValueError(f"no format '{format}'; formats are {', '.join(FILE_FORMATS)}")
        names = list(self._job.fields)
        told = iter(range(len(names) + 1))

        def write_one(name: str) -> int:
            path = folder / (file_name(name) if parts else file_name(name, format))
            rows = self._write_query(name, path, format, parts)
            write_manifest(folder, self.compiled, name, path.name, format, rows, self.reports)
            if progress is not None:
                progress("writing", next(told), len(names))
            return rows

        # Spark has to be asked for some of them; while one waits for it another may compute.
        with ThreadPoolExecutor(WRITERS) as pool:
            self.written = dict(zip(names, pool.map(write_one, names), strict=True))
        if parts:
            self._drop_other_parts(folder)
        return self.written

    def _drop_other_parts(self, folder: Path) -> None:
        """When nothing is computed any more: Spark reads a source again, parts and all, when it
        lost an executor that kept what other queries need.
        """
        from terascope.spark.parts import keep_only

        for name, have in self._job.parts.items():
            keep_only(folder / file_name(name), [part.path for part in have])

    def _write_query(self, name: str, path: Path, format: FileFormat, parts: bool) -> int:
        from terascope.spark.parts import collected, write_parts
        from terascope.spark.write import write_output

        job = self._job
        have, fields = job.parts.get(name), job.fields[name]
        if parts:
            if have is None:
                return write_parts(job.unsorted[name], path, cast("PartFormat", format), fields)
            return sum(part.rows for part in have)
        if have is None:
            return write_output(self[name].held, path, format, fields)
        everything = job.part_fields[name]
        return collected(job.spark, have, path, format, len(fields), everything, job.orders[name])

    def close(self) -> None:
        """Give back what Spark kept, and what was written for these results alone. Small ones still
        show their rows then.
        """
        if self._folder is not None:
            for result in self._results.values():
                result.fetch_small()
            self._folder()
        self._job.close()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        tables = "".join(result._repr_html_() for result in self.values())
        return f"<div>{tables}<p>{escape(self.summary())}</p></div>"

    def __repr__(self) -> str:
        return f"<results {', '.join(self)}>"

    def summary(self) -> str:
        """What was read, in one line."""
        total = self.total
        text = f"{total.tuples:,} tuples"
        if total.bytes_read or not total.tuples:  # nobody knows the bytes of a DataFrame
            text += f", {total.bytes_read:,} bytes read"
        return text + (f", malformed: {malformed_text(total)}" if total.malformed else "")


def columns_of(table: pa.Table) -> list[pa.Array]:
    return [column.combine_chunks() for column in table.columns]


def malformed_text(report: ReadReport) -> str:
    return ", ".join(malformed_words(report))


def malformed_words(report: ReadReport) -> list[str]:
    """Each reason with its counts, the most frequent first; then the files that are to blame."""
    words = []
    for why, count in report.malformed.most_common():
        skipped = f" ({report.skipped[why]:,} bytes skipped)" if report.skipped[why] else ""
        words.append(f"{count:,} {why}{skipped}")
    return [*words, *(f"'{path}': {why}" for path, why in report.files.items())]
