"""The reports of tasks: counts of the readers, figures of the operators, rows for the driver.

In: reports of single splits; calls of operators, once a batch or a block and never once a tuple;
the output rows of the tasks of one pass. Out: one `ReadReport` by interface and one `Measure` by
operator (`group flows_low`), which travel from the tasks to the driver as JSON; packed groups and
tuples, as long as they are small. A job of Spark takes a tenth of a second and more, whatever it
has to do: groups and tuples that are merged or joined in milliseconds travel with the reports, in
the same job.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Final, Literal, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import ReadReport
from terascope.physical.delivery import Target
from terascope.physical.job import Job
from terascope.physical.operators import Measure, MergeGroups, measures_from, summed
from terascope.plan.rel import Scan

Reports: TypeAlias = dict[str, ReadReport]
"""Reports of reading, by interface."""


def note_clocks(columns: pa.RecordBatch, clocks: Iterable[str], report: ReadReport) -> None:
    """Record the last values of the clocks before any tuple is dropped: the prefilter saves the
    temporal attributes of the tuples it drops (dissertation 4.4.2).
    """
    for clock in clocks:
        at = columns.schema.get_field_index(clock)
        latest = pc.max(columns.column(at)).as_py() if at >= 0 else None
        if latest is not None:
            report.horizon[clock] = max(report.horizon.get(clock, latest), latest)


def add_report(reports: Reports, interface: str, report: ReadReport) -> None:
    reports.setdefault(interface, ReadReport()).add(report)


def reports_to_json(reports: Reports) -> str:
    return json.dumps({interface: vars(report) for interface, report in reports.items()})


def reports_from_json(texts: Iterable[str]) -> Reports:
    """The combined reports of all tasks."""
    reports: Reports = {}
    for text in texts:
        for interface, read in json.loads(text).items():
            counts = {name: Counter(read[name]) for name in ("malformed", "skipped")}
            add_report(reports, interface, ReadReport(**{**read, **counts}))
    return reports


def scan_horizon(scan: Scan, reports: Reports) -> dict[str, int]:
    """The largest value of each column of a scan, over all tuples of its interfaces."""
    furthest: dict[str, int] = {}
    for interface in scan.interfaces:
        seen = reports[interface].horizon if interface in reports else {}
        for column in scan.columns:
            if column.read_from in seen:
                latest = seen[column.read_from]
                furthest[column.name] = max(furthest.get(column.name, latest), latest)
    return furthest


# ---- output rows ---------------------------------------------------------------------------------

Kind: TypeAlias = Literal[
    "groups", "rows", "tuples", "part", "rest", "report", "counters", "values"
]
"""Partial groups to be merged; tuples for the high level; tuples of a source for the task of their
range of time; a part that was written; a query whose leftover rows have to be joined; the counts of
the readers; the counters of the operators; the values of the partitioning set that a partition has.
"""

SMALL_PAYLOAD_BYTES: Final = 1 << 16
"""A payload up to this size is sent to the driver."""
DRIVER_BYTES: Final = 8 << 20
"""The bytes that the driver processes itself. Tuples to be joined are sent in larger payloads, as
long as one of each task and stream is not more than this."""


@dataclass(frozen=True)
class Outgoing:
    """A row of a task's output: a line of JSON, or a payload."""

    stream: int
    destination: int
    kind: Kind
    payload: bytes | None = None
    report: str | None = None
    """The line of JSON."""
    dropped_bytes: int = 0
    """Bytes of a payload that was too large to be sent to the driver."""

    @property
    def size(self) -> int:
        return self.dropped_bytes + len(self.payload or b"")


@dataclass(frozen=True)
class ExchangeTask:
    """The task behind an exchange: the rows it takes, and how it runs over those that reach it."""

    kind: Kind
    run: Callable[[Iterable[tuple[int, bytes]]], Iterator[Outgoing]]
    """Over streams, or numbers of reads, and their payloads."""
    targets: Mapping[int, Target]


@dataclass(frozen=True)
class TaskReports:
    """The output rows of the tasks of one pass, as far as the driver has them."""

    rows: Sequence[Outgoing]

    def lines(self, kind: Kind) -> list[str]:
        return [row.report for row in self.rows if row.kind == kind and row.report is not None]

    def packed(self, kind: Kind) -> list[Outgoing]:
        return [row for row in self.rows if row.kind == kind and row.report is None]


@dataclass(frozen=True)
class ReportFilter:
    """Selects the rows of tasks that are sent to the driver: lines of JSON, packed groups that have
    to be merged, and packed tuples that no task could join. A row whose payload is larger than
    allowed is sent without it, and so are all other tuples for the high level.
    """

    leftovers: frozenset[int]
    """The streams of tuples that no task could join."""
    groups_bytes: int
    """The largest payload of groups that is sent."""
    rows_bytes: int
    """The largest payload of tuples that is sent."""
    sized: frozenset[int] = frozenset()
    """The streams of other tuples, whose sizes are sent."""

    @classmethod
    def of(
        cls, leftovers: Collection[int], tasks: int, targets: Mapping[int, Target] | None = None
    ) -> ReportFilter:
        """`targets`: the readers of the streams."""
        share = DRIVER_BYTES // (tasks * len(leftovers)) if leftovers else 0
        high = {number for number, target in (targets or {}).items() if target.high}
        most = max(SMALL_PAYLOAD_BYTES, share)
        return cls(frozenset(leftovers), SMALL_PAYLOAD_BYTES, most, frozenset(high - {*leftovers}))

    def selects(self, row: Outgoing) -> bool:
        if row.report is not None or row.kind in ("groups", "tuples"):
            return True
        return row.kind == "rows" and row.stream in self.leftovers | self.sized

    def report(self, row: Outgoing) -> Outgoing:
        most = self.rows_bytes if row.kind == "rows" else self.groups_bytes
        if row.kind == "tuples" or (row.kind == "rows" and row.stream in self.sized):
            most = 0
        return row if row.size <= most else replace(row, payload=None, dropped_bytes=row.size)


def small_payloads(rows: Sequence[Outgoing]) -> list[tuple[int, bytes]] | None:
    """The stream and the payload of each row, if the driver can work on all of them itself; None if
    they are too large, or the driver does not have all payloads.
    """
    pairs = [(row.stream, row.payload) for row in rows if row.payload is not None]
    is_small = len(pairs) == len(rows) and sum(row.size for row in rows) <= DRIVER_BYTES
    return pairs if is_small else None


# ---- figures of operators ------------------------------------------------------------------------

Item = TypeVar("Item")


@dataclass
class Meter:
    """The figures of one task, by operator."""

    figures: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, operator: str, **figures: float) -> None:
        known = self.figures.setdefault(operator, {})
        for name, value in figures.items():
            known[name] = known.get(name, 0) + value

    @contextmanager
    def timing(self, operator: str, **figures: float) -> Iterator[None]:
        """Count the time of a block of code, and other figures."""
        start = perf_counter()
        try:
            yield
        finally:
            self.add(operator, seconds=perf_counter() - start, **figures)

    def over(self, operator: str, items: Iterable[Item]) -> Iterator[Item]:
        """Pass items on, and count the time to make each."""
        iterator = iter(items)
        while True:
            with self.timing(operator):
                item = next(iterator, None)
            if item is None:
                return
            yield item

    def report(self, read: str = "") -> dict[str, Any]:
        """The figures as JSON. `read`: the source that the task reads."""
        return {"read": read, "measures": self.figures}


def measures_of(job: Job, reports: Iterable[Mapping[str, Any]]) -> dict[str, Measure]:
    """The sum of the figures of all tasks. A low-level stream with tuples of several sources is one
    operator for each source, which its tasks do not know.
    """
    names = {operator.name for operator in job.operators}

    def named(report: Mapping[str, Any]) -> dict[str, Measure]:
        measures = measures_from(report.get("measures", {}))
        own = {n if n in names else f"{n} of {report['read']}": m for n, m in measures.items()}
        return {name: measure for name, measure in own.items() if name in names}

    found = summed(map(named, reports))
    for operator in job.operators:  # operators that count only what they give
        one = found.get(operator.name)
        if one is not None and not one.taken:
            # A merge takes what was exchanged; groups of its other inputs were complete.
            read = operator.inputs[:1] if isinstance(operator, MergeGroups) else operator.inputs
            above = sum(found[name].given for name in read if name in found)
            found[operator.name] = replace(one, taken=above)
    return found
