"""The native low level without Spark: all tasks of a job one after another, and the merge.

In: a Job. Out: the rows of every low-level stream, to be compared with what the reference
interpreter says of the same streams.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from terascope.config import Config
from terascope.connectors.registry import Interface
from terascope.execute.merge import Merger
from terascope.execute.rows.collect import Sequences
from terascope.execute.task import Groups, LowTask, Reached, TaskCounters
from terascope.kernels.merge.finish import columns as finished_columns
from terascope.kernels.merge.float_ranges import finished_blocks
from terascope.kernels.merge.payload import pack
from terascope.physical.job import Job
from terascope.physical.low_plan import LowAggregate, LowOutput
from terascope.physical.planner import plan_job
from terascope.physical.rules.share_tables import SEEN
from terascope.physical.settings import costs_of, host_of
from terascope.physical.split.split_plan import split_plan
from terascope.physical.splits import bundles, owned
from terascope.plan.plan import Plan
from terascope.plan.rel import Aggregate
from terascope.reference.interpreter import evaluate, tuples_of
from terascope.reference.rows import Evaluation, Row, Rows, Sources
from tests.oracle.compare import assert_same_rows

DESTINATIONS = 3


def low_rows(
    job: Job, tasks: int, folder: Path, merge_bytes: int = 1 << 28
) -> tuple[dict[str, list[Row]], list[TaskCounters]]:
    """The rows of all low-level streams, by name, and what each task counted."""
    numbers = {output.name: output for output in job.low}
    rows: dict[str, list[Row]] = {name: [] for name in numbers}
    feeding = {output.windows.stream for output in job.low if output.windows is not None}
    payloads: dict[tuple[str, int], list[bytes]] = {}
    counters = []
    for read in job.reads:
        assert read.low is not None
        parts = bundles(read.splits, tasks, read.edge)
        names = {i.name for i in read.interfaces}
        for number, splits in enumerate(parts):
            mine = {
                place: None if query.name in feeding else owned(query, parts)[number]
                for place, query in enumerate(read.low.queries)
                if isinstance(query, LowAggregate) and set(query.interfaces) <= names
            }
            task = LowTask(read.low, mine)
            for ready in task.run(splits, read.clocks):
                if isinstance(ready, Reached):
                    continue
                name = read.low.queries[ready.query].name
                if not isinstance(ready, Groups):
                    rows[name] += tuples(ready.columns)
                    continue
                fields = numbers[name].groups
                assert fields is not None
                if ready.complete:
                    rows[name] += tuples(
                        finished_columns([ready.block], fields, ready.dictionaries)
                    )
                    continue
                shape, by_key = fields.shape, name in feeding
                packed = pack([ready.block], ready.dictionaries, shape, DESTINATIONS, by_key=by_key)
                for destination, payload in packed:
                    payloads.setdefault((name, destination), []).append(payload)
            counters.append(task.counters)
    for (name, _), some in payloads.items():
        fields = numbers[name].groups
        assert fields is not None
        by_key = name in feeding
        merger = Merger(
            fields.shape, fields.key_types, merge_bytes, folder, by_key=by_key, sums=fields.sums
        )
        for payload in some:
            merger.add(payload)
        for groups in merger.results():
            blocks = list(groups.blocks)
            several = groups.several and not numbers[name].merged_above
            for block in finished_blocks(blocks, fields.shape, several):
                rows[name] += tuples(finished_columns([block], fields, groups.dictionaries))
            for output in job.low:
                if output.windows is not None and output.windows.stream == name:
                    sequences = Sequences(blocks, fields, output.windows.vector.end)
                    for batch in sequences.batches(output.windows, groups.dictionaries):
                        rows[output.name] += tuples(batch)
    return rows, counters


def answers(job: Job, low: dict[str, list[Row]], plan: Plan, sources: Sources) -> dict[str, Rows]:
    """The rows of every stream above the low level, as the reference computes them."""
    fields = {output.name: output.fields for output in job.low}
    known = {name: Rows(fields[name], rows) for name, rows in low.items()}
    for name, rel in job.streams.items():
        context = Evaluation.of(plan, sources, known)
        known[name] = Rows(rel.fields, tuples_of(rel, context))
    return known


def job_output(job: Job, name: str) -> LowOutput:
    return next(output for output in job.low if output.name == name)


def tuples(columns: Any) -> list[Row]:
    values = [column.to_pylist() for column in columns.columns]
    return [tuple(row) for row in zip(*values, strict=True)]


def assert_low_level_agrees(
    plan: Plan,
    interfaces: dict[str, Interface],
    sources: Sources,
    settings: Config,
    tasks: int,
    split_bytes: int,
    folder: Path,
) -> Job:
    """Every low-level stream has the rows that the reference gives it; every group stands once."""
    job = plan_job(plan, interfaces, split_bytes, settings)
    found, _ = low_rows(job, tasks, folder)
    whole = split_plan(plan, host_of(settings), costs_of(settings)).plan
    wanted = Plan(tuple(s for s in whole if s.name in found), plan.parameters)
    expected = evaluate(wanted, sources)
    columns = {output.name: [f.name for f in output.fields] for output in job.low}
    for name, wide in found.items():
        if job_output(job, name).windows is not None:
            continue
        rel = wanted[name].rel  # its table may have slots of others, too
        places = [columns[name].index(f.name) for f in rel.fields]
        rows = [tuple(row[i] for i in places) for row in wide]
        if isinstance(rel, Aggregate):
            keys = Counter(row[: len(rel.keys)] for row in rows)
            assert not [key for key, count in keys.items() if count > 1], name
        if any(column.startswith(SEEN) for column in columns[name]):
            # Queries without aggregates share the table; their readers keep their own groups.
            own = set(expected[name].tuples)
            rows = [row for row in rows if row in own]
        assert_same_rows(expected[name].tuples, rows, rel.fields)
    return job
