"""A query set by our own engine in one process: tuples in, answers dropped.

In: a job. Out: what the low level counted and the processor time it took: reading, looking up, and
for windows the merge and the assembly. Nothing is written, and Spark takes no part: what is left is
the work that sharing is about.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from terascope.low.groups import Block
from terascope.low.merge import Merger
from terascope.low.ownership import owned
from terascope.low.payload import pack
from terascope.low.plan import LowAggregate
from terascope.low.prepare import prepare
from terascope.low.task import Groups, LowTask
from terascope.low.waiting import own
from terascope.low.windows import Sequences
from terascope.physical.job import Job, LowOutput, SourceRead

MERGE_BYTES = 1 << 30


@dataclass(frozen=True)
class Work:
    """What was done for a set."""

    tuples: int
    probes: int
    """Look-ups in tables: hash operations."""
    rows: int
    """Groups, those of windows included."""
    seconds: float


def prepared(job: Job) -> Job:
    """A job whose kernels are compiled."""
    for read in job.reads:
        if read.low is not None:
            prepare(read.low, lambda made, total: None)
    return job


def run_job(job: Job) -> Work:
    """All aggregations of a job over all its tuples."""
    began = process_time()
    tuples = probes = rows = 0
    for read in job.reads:
        task, some = run_read(job, read)
        tuples += task.counters.tuples
        probes += int(task.counters.probes.sum())
        rows += some
    return Work(tuples, probes, rows, process_time() - began)


def run_read(job: Job, read: SourceRead) -> tuple[LowTask, int]:
    assert read.low is not None
    outputs = {output.name: output for output in job.low}
    feeding = {o.windows.stream for o in job.low if o.windows is not None}
    mine = {
        place: None if query.name in feeding else owned(query, [read.splits])[0]
        for place, query in enumerate(read.low.queries)
        if isinstance(query, LowAggregate)
    }
    task = LowTask(read.low, mine)
    rows = 0
    waiting: dict[str, list[Groups]] = {}
    for ready in task.run(read.splits, read.clocks):
        if not isinstance(ready, Groups):
            continue
        if ready.complete:
            rows += len(ready.block.rows)
            continue
        block = Block(ready.block.epoch, own(ready.block.rows))
        kept = Groups(ready.query, block, ready.dictionaries, False)
        waiting.setdefault(read.low.queries[ready.query].name, []).append(kept)
    for name, groups in waiting.items():
        rows += merged_rows(job, outputs[name], groups)
    return task, rows


def merged_rows(job: Job, output: LowOutput, groups: list[Groups]) -> int:
    """The rows of a stream whose groups have to be merged, and of the windows made of it."""
    fields = output.groups
    assert fields is not None
    blocks = [each.block for each in groups]
    folder = Path(tempfile.gettempdir())
    merger = Merger(fields.shape, fields.key_types, MERGE_BYTES, folder, by_key=True)
    for _, payload in pack(blocks, groups[0].dictionaries, fields.shape, 1, by_key=True):
        merger.add(payload)
    rows = 0
    windows = [o.windows for o in job.low if o.windows is not None]
    wanted = [w for w in windows if w.stream == output.name]
    for made in merger.results():
        whole = list(made.blocks)
        rows += sum(len(block.rows) for block in whole) if not wanted else 0
        if wanted:
            sequences = Sequences(whole, fields, wanted[0].vector)
            for each in wanted:
                rows += sum(batch.num_rows for batch in sequences.batches(each, made.dictionaries))
    return rows
