"""The answers of a query set, whichever engine computed them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Self, cast

import pyarrow as pa

from terascope.connectors.base import ReadReport
from terascope.execute.low_level import EngineName, LowResult
from terascope.execute.reports import Reports, add_report, measures_of
from terascope.execute.results.parts import Part, write_rows
from terascope.execute.results.result_files import Format, sorted_table, write_table
from terascope.physical.delivery import PartFormat
from terascope.physical.job import Job
from terascope.physical.operators import Measure, Measures
from terascope.plan.rel import Field

IN_MEMORY: Final = 2_000_000
"""The most rows in parts that this process sorts itself, though Spark could."""


@dataclass
class JobResult:
    """The rows of every output, and the counts of the readers. `close` releases the resources that
    an engine keeps for unread rows.
    """

    engine: ClassVar[EngineName] = "local"

    fields: dict[str, tuple[Field, ...]] = field(default_factory=dict)
    """The columns of each output, with their GSQL types."""
    reports: dict[str, ReadReport] = field(default_factory=dict)
    """The counts of the readers, by the name of the read."""
    interfaces: Reports = field(default_factory=dict)
    """The counts of the readers, by interface."""
    parts: dict[str, list[Part]] = field(default_factory=dict)
    """The outputs that tasks wrote themselves."""
    part_fields: dict[str, tuple[Field, ...]] = field(default_factory=dict)
    """The columns of these outputs: the emitted columns, then those by which rows are sorted."""
    orders: dict[str, tuple[tuple[str, bool], ...]] = field(default_factory=dict)
    """The columns by which the rows of these outputs are sorted; True: descending."""
    tables: dict[str, pa.Table] = field(default_factory=dict)
    """The other outputs, where the local engine computed them: rows in order, values in held form.
    """
    counters: list[dict[str, Any]] = field(default_factory=list)
    """The counters of each reading task: tuples, evaluations, evictions."""
    closed: bool = False

    measures: dict[str, Measure] = field(default_factory=dict)
    """The measured figures of each operator of the job."""

    def take_low_level(self, low: LowResult[Any], job: Job) -> None:
        """Take over the parts, the counts and the counters of the low level."""
        self.counters = low.counters
        self.measures = {**measures_of(job, low.counters), **low.measures}
        for name, reports in low.reports.items():
            self.take_reports(name, reports)
        for query, fields in low.direct.items():
            self.parts[query] = [part for part in low.parts if part.query == query]
            self.part_fields[query] = fields
            self.note_rows(query, sum(part.rows for part in self.parts[query]))

    def measured(self) -> Measures:
        """The figures of every operator, by its name."""
        return dict(self.measures)

    def take_reports(self, read: str, reports: Reports) -> None:
        self.reports[read] = summed(reports.values())
        for interface, report in reports.items():
            add_report(self.interfaces, interface, report)

    def note_rows(self, query: str, rows: int) -> None:
        self.measures[f"write {query}"] = Measure(taken=rows, given=rows)

    def table(self, output: str) -> pa.Table:
        """All rows of an output that tasks wrote, or that the local engine computed: in order,
        values in held form.
        """
        if output in self.tables:
            return self.tables[output]
        files = [part.path for part in self.parts[output] if part.rows]
        return sorted_table(files, self.fields[output], self.orders[output])

    def write(self, output: str, path: Path, format: Format, in_parts: bool) -> int:
        """Write the rows of an output as one file, in order, or as a folder of parts; how many
        they are.

        Raises:
            OutputError: the file cannot be written.
            ValueMistake: computing the rows met a value no answer exists for.
        """
        if not in_parts:
            return write_table(self.table(output), path, format, self.fields[output])
        if output in self.parts:
            return sum(part.rows for part in self.parts[output])
        part_format = cast("PartFormat", format)
        return write_rows(self.tables[output], path, part_format, self.fields[output])

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def summed(reports: Iterable[ReadReport]) -> ReadReport:
    total = ReadReport()
    for report in reports:
        total.add(report)
    return total
