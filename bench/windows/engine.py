"""A set of windows by our own engine in one process, without Spark's fixed costs.

In: GSQL over the SYNs and a way to share slices. Out: how many groups of slices went up, how many
rows the queries have, and the CPU time it took: the low level over all splits, then the merge and
the windows. It is what the tasks of Spark do, with partials packed for an exchange that nobody
makes; planning is left out, and results are columns of Arrow that nobody writes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import pyarrow as pa

from bench.windows.snort import gsql
from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.low.groups import Block
from terascope.low.merge import Merger
from terascope.low.payload import pack
from terascope.low.prepare import prepare
from terascope.low.task import Groups, LowTask
from terascope.low.waiting import own
from terascope.low.windows import Sequences, Windows
from terascope.physical.job import Job, LowOutput, SourceRead
from terascope.physical.planner import LowSettings, SharingSettings
from terascope.pipeline import Bindings, compile_set
from terascope.sharing.slices import Periodic
from terascope.sharing.windows import Mode

MERGE_BYTES = 1 << 29


@dataclass(frozen=True)
class Work:
    """What was done for one set."""

    tuples: int
    partials: int
    """Groups of slices."""
    results: int
    low_seconds: float
    """Of the sub-queries: the low level, until its groups are packed."""
    high_seconds: float
    """Of the super-queries: their merge, and the windows."""

    @property
    def seconds(self) -> float:
        return self.low_seconds + self.high_seconds


def plan_windows(syns: Path, windows: tuple[Periodic, ...], grouped: bool, mode: Mode) -> Job:
    """The job of a set, its kernels compiled."""
    interface = Interface("snort", "parquet", str(syns))
    low = LowSettings(sharing=SharingSettings(windows=mode))
    bindings = Bindings(interfaces={"snort": interface}, low=low)
    job = compile_set(Source(gsql(windows, grouped), "snort.gsql"), bindings).job()
    for read in job.reads:
        assert read.low is not None
        prepare(read.low, lambda made, total: None)
    return job


def run_windows(job: Job) -> Work:
    """The windows of all queries of a job."""
    (read,) = job.reads
    began = process_time()
    task, payloads = run_low_level(job, read)
    between = process_time()
    results = sum(batch.num_rows for batch in windows_of(job, payloads))
    ended = process_time()
    partials = int(task.counters.partials.sum())
    return Work(task.counters.tuples, partials, results, between - began, ended - between)


def run_low_level(job: Job, read: SourceRead) -> tuple[LowTask, dict[str, list[bytes]]]:
    """The task when it is done, and the groups of each stream, packed."""
    assert read.low is not None
    outputs = {output.name: output for output in job.low}
    task = LowTask(read.low, {})  # as in Spark: what windows are made of is merged first
    waiting: dict[str, list[Groups]] = {}
    for ready in task.run(read.splits, read.clocks):
        if isinstance(ready, Groups):
            name = read.low.queries[ready.query].name
            block = Block(ready.block.epoch, own(ready.block.rows))
            kept = Groups(ready.query, block, ready.dictionaries, ready.complete)
            waiting.setdefault(name, []).append(kept)
    return task, {name: packed(outputs[name], groups) for name, groups in waiting.items()}


def packed(output: LowOutput, groups: list[Groups]) -> list[bytes]:
    assert output.groups is not None
    blocks = [each.block for each in groups]
    parts = pack(blocks, groups[0].dictionaries, output.groups.shape, 1, by_key=True)
    return [payload for _, payload in parts]


def windows_of(job: Job, payloads: dict[str, list[bytes]]) -> Iterator[pa.RecordBatch]:
    """The groups of all windows."""
    wanted: dict[str, list[Windows]] = {}
    for output in job.low:
        if output.windows is not None:
            wanted.setdefault(output.windows.stream, []).append(output.windows)
    for output in job.low:
        if output.name not in payloads:
            continue
        fields = output.groups
        assert fields is not None
        folder = Path(tempfile.gettempdir())
        merger = Merger(fields.shape, fields.key_types, MERGE_BYTES, folder, by_key=True)
        for payload in payloads[output.name]:
            merger.add(payload)
        windows = wanted[output.name]
        for groups in merger.results():
            sequences = Sequences(list(groups.blocks), fields, windows[0].vector)
            for each in windows:
                yield from sequences.batches(each, groups.dictionaries)
