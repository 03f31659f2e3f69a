"""Reports of reading, combined over splits and tasks.

In: reports of single splits. Out: one report by interface, and its JSON form, in which it travels
from the tasks to the driver.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import ReadReport
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
    return json.dumps(
        {
            interface: {
                "bytes_read": r.bytes_read,
                "tuples": r.tuples,
                "malformed": dict(r.malformed),
                "skipped": dict(r.skipped),
                "files": r.files,
                "horizon": r.horizon,
            }
            for interface, r in reports.items()
        }
    )


def reports_from_json(texts: Iterable[str]) -> Reports:
    """The combined reports of all partitions."""
    reports: Reports = {}
    for text in texts:
        for interface, told in json.loads(text).items():
            seen = ReadReport(
                told["bytes_read"], told["tuples"], Counter(told["malformed"]),
                Counter(told["skipped"]), told["files"], told["horizon"],
            )  # fmt: skip
            add_report(reports, interface, seen)
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
