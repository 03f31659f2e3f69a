"""The results of a run: the rows of every visible query, and the reports of reading the sources.

In: a finished `JobResult`. Out: `Results`, a mapping from query names to `Result`s. Spark computes
rows when they are first read; the local engine has computed them already. Addresses are text here,
raw bytes hexadecimal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cached_property
from html import escape
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from weakref import finalize

import pyarrow as pa

from terascope.connectors.base import ReadReport
from terascope.diagnostic import SourceError
from terascope.execute.low_level import Progress
from terascope.execute.results.job_result import IN_MEMORY, JobResult, summed
from terascope.execute.results.parts import drop_other_parts
from terascope.execute.results.result_files import write_lines
from terascope.explain import Format as ExplainFormat
from terascope.explain import explain_run
from terascope.kernels.encode.text import readable_table
from terascope.local.choice import EngineChoice
from terascope.output import (
    FILE_FORMATS,
    FileFormat,
    file_name,
    staged,
    write_manifest,
)
from terascope.physical.job import Job
from terascope.physical.operators import Measures
from terascope.physical.split.split_plan import SplitPlan
from terascope.pipeline import Compiled
from terascope.plan.rel import Field

if TYPE_CHECKING:
    import pandas as pd

    from terascope.execute.results.result_files import Format
    from terascope.spark.run import SparkResult
    from terascope.spark.session import DataFrame, SparkSession

SHOWN = 20
SMALL = 100_000
"""The most rows of a query that stay when its session is closed."""
WRITERS = 4
"""The number of queries that are written at the same time."""


class MalformedInput(SourceError):
    """Tuples were malformed and the run was strict."""


class SessionClosed(Exception):
    """The rows of a result were read after its Spark was stopped."""


class Result:
    """The rows of one query."""

    def __init__(self, name: str, job: JobResult, spark: Callable[[], SparkSession]) -> None:
        """`spark`: opens Spark for a DataFrame of rows that the local engine computed."""
        self.name = name
        self.fields: tuple[Field, ...] = job.fields[name]
        self._is_kept = False
        self._job = job
        self._open_spark = spark

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @property
    def held(self) -> DataFrame:
        """The rows as they are computed: an address is its version and its bytes (terascope.types).

        Raises:
            SessionClosed: Spark, which would compute them, was stopped.
        """
        if self._is_closed:
            raise SessionClosed(
                f"the session of result '{self.name}' is closed; use results before it is (inside"
                " the `with` block), or take the rows along: rows(), to_arrow(), to_pandas()"
            )
        return self._held

    @property
    def _is_closed(self) -> bool:
        """Whether rows cannot be computed any more."""
        if self._spark_job is None:
            return self._job.closed
        from terascope.spark.session import is_alive

        return not is_alive(self._spark_job.spark)

    @property
    def _spark_job(self) -> SparkResult | None:
        """The job, if Spark ran it."""
        return cast("SparkResult", self._job) if self._job.engine == "spark" else None

    @cached_property
    def _held(self) -> DataFrame:
        if self._spark_job is not None:
            return self._spark_job.frame(self.name)
        from terascope.spark.catalyst.frame import table_frame

        rows = table_frame(self._open_spark(), self._job.table(self.name), self.fields)
        return rows.df.toDF(*self.columns)

    @cached_property
    def dataframe(self) -> DataFrame:
        """The rows in their order, as a Spark DataFrame, addresses as text."""
        from terascope.spark.write import readable_frame

        return readable_frame(self.held, self.fields)

    @property
    def _kept(self) -> DataFrame:
        """The DataFrame, computed once, for counting and showing."""
        held = self.held
        if not self._is_kept and self._spark_job is not None:
            self._spark_job.keep(held)
            self._is_kept = True
        return held

    @cached_property
    def _here(self) -> pa.Table | None:
        """All rows, held; None where Spark has computed them, or they are too many to be sorted in
        this process.
        """
        parts = self._job.parts.get(self.name)
        is_large = parts is None or sum(part.rows for part in parts) > IN_MEMORY
        return None if self._spark_job and is_large else self._job.table(self.name)

    @cached_property
    def row_count(self) -> int:
        if (parts := self._job.parts.get(self.name)) is not None:
            return sum(part.rows for part in parts)
        if (here := self._here) is not None:
            return int(here.num_rows)
        from terascope.spark.mistakes import translating

        with translating():
            return self._kept.count()

    def __len__(self) -> int:
        return self.row_count

    def head(self, rows: int = SHOWN) -> pa.Table:
        """The first rows."""
        if (here := self._here) is not None:
            return readable_table(columns_of(here.slice(0, rows)), self.fields)
        from terascope.spark.write import preview

        return preview(self._kept, self.fields, rows)

    def to_arrow(self) -> pa.Table:
        if (here := self._here) is not None:
            return readable_table(columns_of(here), self.fields)
        from terascope.spark.write import to_arrow_table

        return to_arrow_table(self.held, self.fields)

    def write_text(self, file: BinaryIO, format: Format) -> int:
        """Write all rows in order, and return their number."""
        if (here := self._here) is not None:
            return write_lines(here, file, format, self.fields)
        from terascope.spark.write import write_text

        return write_text(self.held, file, format, self.fields)

    def to_pandas(self) -> pd.DataFrame:
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def rows(self) -> list[dict[str, Any]]:
        """All rows, each a dict from column to value."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def show(self, rows: int = SHOWN) -> None:
        """Print the first rows as a table."""
        from terascope.display import ResultTable, stdout_console

        stdout_console().print(ResultTable(self.name, self.fields, self.head(rows), self.row_count))

    def _repr_html_(self) -> str:
        from terascope.display import html_table

        return html_table(self.name, self.fields, self.head(), self.row_count)

    def __repr__(self) -> str:
        columns = ", ".join(f"{f.name} {f.type.label}" for f in self.fields)
        return f"<result {self.name}: {columns}>"


class Results(Mapping[str, Result], AbstractContextManager["Results"]):
    """The answers of a query set, by query. Close it (or its session) after use."""

    def __init__(
        self,
        compiled: Compiled,
        job: JobResult,
        spark: Callable[[], SparkSession],
        planned: tuple[Job, SplitPlan],
        folder: Path | None = None,
        choice: EngineChoice | None = None,
    ) -> None:
        """`folder`: the folder of rows that tasks wrote for these results alone. `spark`: opens
        Spark for a DataFrame. `planned`: the compiled set.
        """
        self.compiled = compiled
        self.choice = choice
        """The engine of the run, and the reason."""
        self._planned = planned
        self._job = job
        self._folder = None if folder is None else finalize(self, rmtree, folder, True)
        shown = [n for n in job.fields if folder is not None or n not in job.parts]
        self._results = {name: Result(name, job, spark) for name in shown}
        self.written: dict[str, int] = {}
        """The rows of each query in the written files."""

    def __getitem__(self, query: str) -> Result:
        if query not in self._results:
            raise KeyError(f"no query '{query}'; there are {', '.join(self._results) or 'none'}")
        return self._results[query]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def measures(self) -> Measures:
        """The figures of each physical operator, by its name: tuples in and out, probes, time.
        Spark computes the relations of its high level once more for them, when they are first
        asked for.
        """
        return self._job.measured()

    def explain(self, format: ExplainFormat = "text") -> str:
        """The physical plan that was run, with the measured figures of every operator."""
        return explain_run(self.compiled, self._planned, self.measures, format)

    @property
    def reports(self) -> Mapping[str, ReadReport]:
        """The reports of reading, by interface: bytes, tuples, malformed ones by reason."""
        return dict(self._job.interfaces)

    @property
    def total(self) -> ReadReport:
        """The sum of the reports of all interfaces."""
        return summed(self._job.interfaces.values())

    def check_strict(self) -> None:
        """Treat malformed tuples as an error.

        Raises:
            MalformedInput: a tuple was malformed.
        """
        total = self.total
        if total.malformed:
            raise MalformedInput(f"malformed input: {malformed_text(total)}")

    def write(
        self, directory: str | Path, format: FileFormat = "csv", progress: Progress | None = None
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
        self,
        folder: Path,
        format: FileFormat,
        progress: Progress | None = None,
        parts: bool = False,
    ) -> dict[str, int]:
        """Write the files; return the rows of each. With `parts` a query is a folder."""
        if format not in FILE_FORMATS:
            raise ValueError(f"no format '{format}'; formats are {', '.join(FILE_FORMATS)}")
        names = list(self._job.fields)
        told = itertools.count()

        def write_one(name: str) -> int:
            path = folder / (file_name(name) if parts else file_name(name, format))
            rows = self._job.write(name, path, format, parts)
            write_manifest(folder, self.compiled, name, path.name, format, rows, self.reports)
            if progress is not None:
                progress("writing", next(told), len(names))
            return rows

        # Spark has to be asked for some of them; while one waits for it another may compute.
        with ThreadPoolExecutor(WRITERS) as pool:
            self.written = dict(zip(names, pool.map(write_one, names), strict=True))
        if parts:
            # Remove the parts of failed attempts, when nothing is computed any more: after the loss
            # of an executor Spark reads a source again, with all parts.
            for name, have in self._job.parts.items():
                drop_other_parts(folder / file_name(name), [part.path for part in have])
        return self.written

    def close(self) -> None:
        """Release the rows that Spark keeps, and the files of these results alone. Small results
        still show their rows then.
        """
        if self._folder is not None:
            for name, result in self._results.items():
                if name in self._job.parts and result.row_count <= SMALL:
                    _ = result._here  # kept before its files are removed
            self._folder()
        self._job.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        tables = "".join(result._repr_html_() for result in self.values())
        return f"<div>{tables}<p>{escape(self.summary())}</p></div>"

    def __repr__(self) -> str:
        return f"<results {', '.join(self)}>"

    def summary(self) -> str:
        """The amount of input, in one line."""
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
