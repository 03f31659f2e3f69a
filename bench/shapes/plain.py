"""A query set from its text to its result files, in one process and without Spark.

In: the text and its sources. Out: the rows that were written, and the processor time of planning,
of the tasks, and of the merge. Kernels are compiled before the clock runs.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from terascope.config import Config
from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.execute.merge import Merging
from terascope.execute.prepare import prepare
from terascope.execute.reading_task import NativeRead, low_rows, native_bundles
from terascope.execute.reports import Outgoing
from terascope.execute.results.parts import Part
from terascope.physical.delivery import Sink
from terascope.physical.rules.finish_in_tasks import deliveries, stream_numbers
from terascope.pipeline import Bindings, compile_set

TASKS = 2


@dataclass(frozen=True)
class Ran:
    """What a run took and gave."""

    seconds: float
    rows: int


def run_set(text: str, sources: Sequence[str], memory_bytes: int = 1 << 30) -> Ran:
    """Plan a set and run all its tasks, one after the other."""
    interfaces = {i.name: i for i in map(parse_interface, sources)}
    began = process_time()
    config = Config(memory_bytes=memory_bytes)
    job = compile_set(Source(text, "set"), Bindings(interfaces=interfaces, config=config)).job()
    planned = deliveries(job, writing=True, sorted_later=True)
    seconds = process_time() - began
    for read in planned.reads:
        assert read.low is not None
        prepare(read.low, lambda made, total: None)
    began = process_time()
    with tempfile.TemporaryDirectory() as folder:
        sink = Sink(folder, "held", memory_bytes=memory_bytes)
        told: list[Outgoing] = []
        groups: dict[int, list[tuple[int, Path]]] = {}
        for read in planned.reads:
            numbers = stream_numbers(job, read)
            own = tuple(p for p in planned.joins if p.left.stream in numbers)
            reading = NativeRead(read, numbers, planned.targets, sink, TASKS, own)
            for bundle in native_bundles(reading, TASKS):
                for row in low_rows(reading, bundle):
                    if row.kind == "groups" and row.payload is not None:
                        path = Path(folder) / uuid.uuid4().hex
                        path.write_bytes(row.payload)
                        groups.setdefault(row.destination, []).append((row.stream, path))
                    else:
                        told.append(row)
        merging = Merging(planned.targets, sink, memory_bytes, planned.joins)
        for some in groups.values():
            told += merging.merged((stream, path.read_bytes()) for stream, path in some)
        parts = [Part.of(row.report or "") for row in told if row.kind == "part"]
        seconds += process_time() - began
        return Ran(seconds, sum(part.rows for part in parts))


def source(name: str, kind: str, path: Path) -> str:
    return f"{name}={kind}:{path}"
