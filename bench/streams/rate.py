"""`stream-rate`: the fifty queries of `set50` as a stream, as a batch, and as fifty plain streams.

In one run: how many packets a second Terascope takes when it streams a capture that is there,
against the same set as a batch; whether the source is read once; and the processor time of a packet
against fifty queries of plain Structured Streaming over the same packets in Parquet. All streams
have equally many packets in a micro-batch. The plain ones get fewer micro-batches, as they are
slow: what is compared is processor time by packet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import RenderableType

from bench.compare import EachItsOwn, SameRows
from bench.experiment import Column, Contender, Outcome, Prepared, Settings, Tell
from bench.harness import made_once
from bench.peers.duckdb import DuckDb
from bench.peers.spark_streaming import PacketFiles, SparkStreaming, closes, is_whole
from bench.set50 import GSQL, PACKETS, SMALL, packet_workload
from bench.streams.streamed import Batched, Feed, Streamed, WithSeries
from bench.workload import Pair, Workload, answers, same_rows

BATCH, STREAM, PLAIN = "terascope_batch", "terascope_stream", "spark_streaming"
MICRO_BATCH = 2_500_000
"""Packets at scale 1: about as many as a micro-batch reads at most by default."""
PLAIN_BATCHES = 2
LONG_AFTER = 100_000
"""Seconds after the last packet: all windows are closed then."""


def packet_files(workload: Workload, folder: Path, each: int, count: int) -> PacketFiles:
    """The first packets of a workload, in files of `each`, and one that closes all windows."""

    def make(path: Path) -> None:
        path.mkdir(parents=True)
        table = pq.read_table(workload.parquet).slice(0, each * count)
        for number in range(count):
            some = table.slice(number * each, each)
            pq.write_table(some, path / f"packets-{number:04d}.parquet")
        pq.write_table(closing(table), path / f"packets-{count:04d}.parquet")

    made_once(folder, make)
    held = min(each * count, pq.ParquetFile(workload.parquet).metadata.num_rows)
    return PacketFiles(folder, held, workload.table, workload.sql)


def closing(table: pa.Table) -> pa.Table:
    """A packet that no selection takes and that comes long after all others."""
    last = table.column("time")[-1].as_py() + LONG_AFTER
    columns = []
    for field in table.schema:
        if field.name == "time":
            columns.append(pa.array([last], field.type))
        elif pa.types.is_string(field.type):
            columns.append(pa.nulls(1, field.type))
        else:
            columns.append(pa.array(np.zeros(1, bool)).cast(pa.uint8()).cast(field.type))
    return pa.Table.from_arrays(columns, schema=table.schema)


def prefix(workload: Workload, files: PacketFiles) -> Workload:
    """The packets of the plain streams in one file, and the queries that they answer whole."""
    path = files.folder.with_suffix(".parquet")
    made_once(
        path, lambda part: pq.write_table(pq.read_table(workload.parquet)[: files.packets], part)
    )
    whole = {name: sql for name, sql in workload.sql.items() if is_whole(sql) and closes(sql)}
    return Workload(workload.source, workload.gsql, workload.table, path, whole)


def plain_check(settings: Settings, workload: Workload) -> SameRows:
    """Against DuckDB over the same packets, for the queries that are the same."""
    check = same_rows(settings, DuckDb(Pair(workload, workload)), workload)
    check.answers = tuple(a for a in answers(workload) if a.query in workload.sql)
    return check


def conclude(captures: Mapping[str, int], outcomes: list[Outcome]) -> list[RenderableType]:
    """The three answers."""
    found = {o.contender: o for o in outcomes if o.seconds}
    lines: list[RenderableType] = []
    batch, stream, plain = (found.get(name) for name in (BATCH, STREAM, PLAIN))
    if batch and stream:
        fast, slow = batch.figure("per_second") or 1, stream.figure("sustained") or 0
        lines.append(
            f"streaming takes {slow:,.0f} packets a second once it runs, {slow / fast:.1%} of the"
            f" batch's {fast:,.0f} (target 60%)"
        )
    if stream:
        read, held = round(stream.figure("bytes_read") or 0), sum(captures.values())
        same = "all of the source, once" if read == held else f"NOT the {held:,} of the source"
        lines.append(f"its tasks read {read:,} bytes: {same}")
    if stream and plain:
        ours, theirs = cpu_of(stream), cpu_of(plain)
        lines.append(
            f"processor time of a packet: {ours * 1e6:.2f} µs, plain streams {theirs * 1e6:.2f} µs"
            f" ({theirs / ours:.1f} times as much, target 20)"
        )
    return lines


def cpu_of(outcome: Outcome) -> float:
    return (outcome.figure("cpu_seconds") or 0.0) / (outcome.figure("tuples") or 1.0)


@dataclass(frozen=True)
class StreamRate:
    name: str = "stream-rate"
    title: str = "set50 as a stream, as a batch, and as fifty plain Structured Streaming queries"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        packets = settings.count(PACKETS)
        tell(f"{packets:,} packets in {settings.data}")
        full = packet_workload(settings, packets)
        little = packet_workload(settings, min(packets, SMALL))
        each = settings.count(MICRO_BATCH)
        folder = settings.data / f"micro-{packets}-{each}-seed{settings.seed}"
        files = packet_files(full, folder, each, PLAIN_BATCHES)
        small_folder = settings.data / f"micro-{min(packets, SMALL)}-small-seed{settings.seed}"
        small_files = packet_files(little, small_folder, SMALL, 1)
        capture = full.parquet.with_suffix(".pcap")
        size = capture.stat().st_size
        batch_bytes = round(size * each / packets)
        split_bytes = min(4 << 20, max(4096, batch_bytes // (2 * settings.cores)))
        feed, small_feed = set50_feed(full, split_bytes), set50_feed(little, split_bytes)
        running = {
            "speed": "max",
            "trigger": 0.0,
            "batch_bytes": batch_bytes,
            "tasks": settings.cores,
        }
        contenders: tuple[Contender, ...] = (
            Batched(feed, small_feed, BATCH),
            Streamed(STREAM, feed, running, small_feed),
            SparkStreaming(files, small_files, PLAIN),
        )
        whole = same_rows(settings, DuckDb(Pair(full, little)), full)
        checks = {BATCH: whole, STREAM: whole, PLAIN: plain_check(settings, prefix(full, files))}
        return Prepared(
            contenders,
            WithSeries(EachItsOwn(checks)),
            (
                f"{packets:,} packets, {size / 1e6:,.0f} MB of pcap; the plain streams get"
                f" {files.packets:,} of them; {each:,} in a micro-batch; 50 queries",
            ),
            columns=(
                Column("tuples", "packets"),
                Column("per_second", "packets/s"),
                Column("cpu_seconds", "CPU s", "{:.1f}"),
                Column("batches", "batches"),
                Column("bytes_read", "bytes read"),
            ),
            inputs=(capture, full.parquet),
            runs=0 if settings.quick else None,
            conclude=lambda outcomes: conclude({str(capture): size}, outcomes),
        )


def set50_feed(workload: Workload, split_bytes: int) -> Feed:
    """The capture, cut so that a micro-batch has work for all tasks."""
    interface, _, text = workload.source.partition("=")
    return Feed(GSQL.read_text(encoding="utf-8"), {interface: text}, split_bytes=split_bytes)


EXPERIMENT = StreamRate()
