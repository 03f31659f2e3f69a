"""The partitions of a job for explain: their balance, and the queries that each finishes."""

from __future__ import annotations

from pathlib import Path

from terascope.connectors.base import interface_of
from terascope.partitioning.balance import balances
from terascope.physical.job import Job, SourceRead
from terascope.physical.ownership import KeyOwnership
from terascope.units import plural, readable_bytes

READ_BY_TIME = (
    "partitions: tasks read ranges of time of all partitions, since most queries need the groups of"
    " all of them, and one host has them"
)


def partition_facts(read: SourceRead) -> list[tuple[str, str]]:
    """The partitions of each partitioned source, by the bytes of each."""
    parts = [one for one in read.interfaces if one.partition is not None]
    sets = {interface_of(one.name): one.partition.by for one in parts if one.partition is not None}
    loads = {one.name: float(sum(map(file_bytes, one.files))) for one in parts}
    facts: list[tuple[str, str]] = []
    for balance in balances(loads, sets):
        size = readable_bytes(sum(balance.loads))
        facts.append((balance.source, f"{read.interfaces[0].kind}: {balance.text}, {size}"))
        if balance.advice:
            facts.append(("advice", balance.advice))
    return facts


def ownership_notes(owned: KeyOwnership | None, job: Job) -> tuple[str, ...]:
    """The queries that each partition finishes, and why others are computed above."""
    if owned is None:
        parts = any(one.is_part for read in job.reads for one in read.interfaces)
        return (READ_BY_TIME,) if parts else ()
    shown = [output.stream for output in job.outputs]
    sets = "; ".join(
        f"{source} by {one}" if one.expressions else f"{source} by no set, tuples in turn"
        for source, one in owned.sets.items()
    )
    kept = [name for name in shown if name in owned.kept]
    lines = [f"partitions: {sets}"]
    lines += [f"  each partition finishes {', '.join(kept)}"] if kept else []
    lines += [
        f"  {name} is computed above: {owned.reasons.get(name, 'it reads other sources')}"
        for name in shown
        if name not in owned.kept
    ]
    lines += [
        f"  partitions send tuples of {read} once, not the partial groups of"
        f" {plural(len(names), 'aggregation')}: {', '.join(sorted(names))}"
        for read, names in owned.sending.items()
    ]
    return ("\n".join(lines),)


def file_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
