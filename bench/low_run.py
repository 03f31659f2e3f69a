"""A query set by our own engine in one process: tuples in, answers dropped.

In: a job. Out: what the low level counted and the processor time it took: reading and looking up,
until groups are packed for an exchange that nobody makes; then, of those that need it, the merge
and the windows. Nothing is written, and Spark takes no part: what is left is the work that sharing
is about.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time

from terascope.execute.grouping.pending_groups import own
from terascope.execute.merge import Merger
from terascope.execute.prepare import prepare
from terascope.execute.rows.collect import Sequences
from terascope.execute.task import Groups, LowTask
from terascope.kernels.merge.payload import pack
from terascope.kernels.merge.window_kernel import assemble_kernel
from terascope.physical.job import Job, SourceRead
from terascope.physical.low_plan import LowAggregate, LowOutput
from terascope.physical.splits import owned

MERGE_BYTES = 1 << 29


@dataclass(frozen=True)
class Work:
    """What was done for a set."""

    tuples: int
    probes: int
    """Look-ups in tables: hash operations."""
    partials: int
    """Groups that had to be merged, those of slices included."""
    rows: int
    """Groups in the end, those of windows included."""
    low_seconds: float
    """Of the low level, until its groups are packed."""
    high_seconds: float
    """Of the merge, and the windows."""

    @property
    def seconds(self) -> float:
        return self.low_seconds + self.high_seconds


def prepared(job: Job) -> Job:
    """A job whose kernels are compiled."""
    for read in job.reads:
        if read.low is not None:
            prepare(read.low, lambda made, total: None)
    outputs = {output.name: output for output in job.low}
    for stream in feeding(job):
        groups = outputs[stream].groups
        assert groups is not None
        assemble_kernel(groups.shape).compile()
    return job


def run_job(job: Job) -> Work:
    """All aggregations of a job over all its tuples."""
    tuples = probes = partials = rows = 0
    low = high = 0.0
    for read in job.reads:
        began = process_time()
        task, complete, payloads = run_low_level(job, read)
        between = process_time()
        rows += complete + sum(merged_rows(job, payloads))
        high += process_time() - between
        low += between - began
        tuples += task.counters.tuples
        probes += int(task.counters.probes.sum())
        partials += int(task.counters.partials.sum())
    return Work(tuples, probes, partials, rows, low, high)


def feeding(job: Job) -> set[str]:
    """The streams whose groups windows are made of."""
    return {o.windows.stream for o in job.low if o.windows is not None}


def run_low_level(job: Job, read: SourceRead) -> tuple[LowTask, int, dict[str, list[bytes]]]:
    """The task when it is done, its complete groups, and the others of each stream, packed."""
    assert read.low is not None
    outputs = {output.name: output for output in job.low}
    feeds = feeding(job)
    mine = {
        place: None if query.name in feeds else owned(query, [read.splits])[0]
        for place, query in enumerate(read.low.queries)
        if isinstance(query, LowAggregate)
    }
    task = LowTask(read.low, mine)
    complete = 0
    waiting: dict[str, list[Groups]] = {}
    for ready in task.run(read.splits, read.clocks):
        if not isinstance(ready, Groups):
            continue
        if ready.complete:
            complete += len(ready.block.rows)
            continue
        block = replace(ready.block, rows=own(ready.block.rows))
        kept = Groups(ready.query, block, ready.dictionaries, False)
        waiting.setdefault(read.low.queries[ready.query].name, []).append(kept)
    packed = {name: packed_groups(outputs[name], groups) for name, groups in waiting.items()}
    return task, complete, packed


def packed_groups(output: LowOutput, groups: list[Groups]) -> list[bytes]:
    assert output.groups is not None
    blocks = [each.block for each in groups]
    parts = pack(blocks, groups[0].dictionaries, output.groups.shape, 1, by_key=True)
    return [payload for _, payload in parts]


def merged_rows(job: Job, payloads: Mapping[str, list[bytes]]) -> Iterator[int]:
    """The rows of streams whose groups have to be merged, or of the windows made of them."""
    for output in job.low:
        if output.name not in payloads:
            continue
        fields = output.groups
        assert fields is not None
        folder = Path(tempfile.gettempdir())
        merger = Merger(fields.shape, fields.key_types, MERGE_BYTES, folder, by_key=True)
        for payload in payloads[output.name]:
            merger.add(payload)
        found = [o.windows for o in job.low if o.windows is not None]
        windows = [w for w in found if w.stream == output.name]
        for groups in merger.results():
            blocks = list(groups.blocks)
            if not windows:
                yield sum(len(block.rows) for block in blocks)
                continue
            sequences = Sequences(blocks, fields, windows[0].vector.end)
            for each in windows:
                batches = sequences.batches(each, groups.dictionaries)
                yield sum(batch.num_rows for batch in batches)
