"""Partials meet in Spark's shuffle, and what tasks write Spark can read."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from terascope.connectors.base import arrow_type
from terascope.diagnostic import OutputError
from terascope.execute.merge import Merging
from terascope.execute.reports import ExchangeTask
from terascope.execute.results.parts import PartWriter
from terascope.execute.results.result_files import Format, sorted_table, write_table
from terascope.functions.aggregates.folding import MIN_FLOAT
from terascope.functions.base import ValueMistake
from terascope.functions.slots import COUNT, SUM_INT
from terascope.kernels.columns.dictionary import dictionary_for
from terascope.kernels.merge.groups import Block, GroupFields
from terascope.kernels.merge.payload import pack
from terascope.kernels.tables.slots import Shape
from terascope.physical.delivery import Direct, Sink, Target
from terascope.physical.row_pipeline import Compute, RowPipeline
from terascope.plan.expr import Col
from terascope.plan.rel import Field
from terascope.spark.catalyst.frame import schema_of
from terascope.spark.catalyst.relations import sort_column
from terascope.spark.engine import OUTGOING, exchanged_batches, unpacked
from terascope.spark.mistakes import in_worker, translating
from terascope.spark.stream.source import REPORT
from terascope.spark.write import Writing, write_output
from terascope.types import INT_MAX, Type, parse_ip

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_spark_reads_parts(spark: SparkSession, tmp_path: Path, vectorized: str) -> None:
    """With its own two readers of Parquet."""
    shape = Shape(2, (COUNT, SUM_INT, MIN_FLOAT))
    fields = GroupFields(
        (Field("tb", Type.LLONG), Field("ip", Type.IP), Field("who", Type.STRING)),
        (Field("n", Type.LLONG), Field("total", Type.LLONG), Field("least", Type.FLOAT)),
        shape,
        0,
    )
    addresses, names = dictionary_for(Type.IP), dictionary_for(Type.STRING)
    first = addresses.encode(pa.array([None, *(parse_ip(f"10.0.{i}.1") for i in range(200))]))
    second = names.encode(pa.array([f"name {i}" for i in range(70)]))
    random = np.random.default_rng(5)
    wanted = []
    with PartWriter(tmp_path, "parquet", fields.fields) as part:
        for epoch in (None, 3, 4, 5):
            rows = np.zeros((30_000, shape.stride), np.int64)
            a, b = random.choice(first, len(rows)), random.choice(second, len(rows))
            rows[:, 0] = random.choice([0b1111, 0b0111, 0b1001], len(rows))
            rows[:, 1] = a.astype(np.int64) << 32 | b
            rows[:, 2] = random.zipf(1.5, len(rows))
            rows[:, 3] = random.integers(-(2**50), 2**50, len(rows))
            rows.view(np.float64)[:, 4] = random.random(len(rows))
            part.write_block(Block.of(epoch, rows), fields, [addresses, names])
            wanted.append(rows)
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        found = spark.read.parquet(str(part.path)).toArrow()
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    every = np.concatenate(wanted)
    assert found.schema.types == [
        pa.int64(), pa.string(), pa.string(), pa.int64(), pa.int64(), pa.float64(),
    ]  # fmt: skip
    assert found["n"].to_numpy().tolist() == every[:, 2].tolist()
    seen = every[:, 0] >> 2 & 1 == 1
    assert np.array_equal(found["total"].is_valid().to_numpy(), seen)
    assert found["total"].drop_null().to_numpy().tolist() == every[seen, 3].tolist()
    assert found["tb"].null_count == 30_000
    assert found["tb"].drop_null().to_numpy().tolist() == np.repeat([3, 4, 5], 30_000).tolist()
    texts = names.values((every[:, 1] & 0xFFFFFFFF).astype(np.int32))
    assert found["who"].combine_chunks().equals(texts)
    assert found["ip"].null_count == int((every[:, 1] >> 32 == 0).sum()) > 0


# ---- the exchange --------------------------------------------------------------------------------

GROUPS = GroupFields(
    (Field("tb", Type.LLONG), Field("k", Type.LLONG)),
    (Field("n", Type.LLONG), Field("total", Type.LLONG)),
    Shape(1, (COUNT, SUM_INT)),
    0,
)
WORKERS, DESTINATIONS, KEYS = 5, 3, 4_000


def partials(value: int) -> list[tuple[int, int, str, bytes, None]]:
    """Rows as the tasks of a source give them: every worker knows all keys of two epochs."""
    given = []
    for worker in range(WORKERS):
        dictionary = dictionary_for(Type.LLONG)
        order = np.random.default_rng(worker).permutation(KEYS)
        codes = dictionary.encode(pa.array(order * 1000)).astype(np.int64)
        rows = np.stack([np.full(KEYS, 7), codes << 32, np.ones(KEYS), order * value], axis=1)
        blocks = [Block.of(epoch, rows.astype(np.int64)) for epoch in (1, 2)]
        for place, payload in pack(blocks, [dictionary], GROUPS.shape, DESTINATIONS):
            given.append((0, place, "groups", payload, None))
    return given


def merged(
    spark: SparkSession, value: int, target: Target, sink: Sink | None, memory_bytes: int = 1 << 26
) -> DataFrame:
    df = spark.createDataFrame(partials(value), OUTGOING).repartition(4)
    met = df.repartitionById(DESTINATIONS, F.col("destination"))
    merging = Merging({0: target}, sink, memory_bytes)
    task = ExchangeTask("groups", merging.merged, merging.targets)
    return met.mapInArrow(in_worker(partial(exchanged_batches, task)), OUTGOING)


def test_partials_of_all_workers_meet(spark: SparkSession) -> None:
    target = Target("low", GROUPS.fields, GROUPS, high=True)
    rows = merged(spark, 10, target, None).filter("kind = 'rows'").select("payload")
    frame = rows.mapInArrow(partial(unpacked, GROUPS.fields), schema_of(GROUPS.fields))
    found = sorted(tuple(row) for row in frame.collect())
    assert found == [
        (epoch, key * 1000, WORKERS, WORKERS * key * 10) for epoch in (1, 2) for key in range(KEYS)
    ]


def test_tasks_write_what_they_have_merged(spark: SparkSession, tmp_path: Path) -> None:
    fields = (GROUPS.fields[3], GROUPS.fields[1])
    last = Compute(tuple((f.name, Col(f.name, f.type)) for f in fields))
    direct = Direct("q", RowPipeline("low", (last,)), fields, (3, 1))
    target = Target("low", GROUPS.fields, GROUPS, direct=(direct,))
    told = merged(spark, 10, target, Sink(str(tmp_path), "parquet")).collect()
    assert {row.kind for row in told} == {"part", "counters"}
    parts = [json.loads(row.report) for row in told if row.kind == "part"]
    assert sorted(Path(part["path"]) for part in parts) == sorted((tmp_path / "q").iterdir())
    assert sum(part["rows"] for part in parts) == 2 * KEYS
    table = pq.read_table([part["path"] for part in parts])
    assert table.schema.names == ["total", "k"]
    found = sorted(zip(*table.to_pydict().values(), strict=True))
    assert found == [(WORKERS * key * 10, key * 1000) for key in range(KEYS) for _ in (1, 2)]


def test_a_sum_too_large_is_one_clear_line(spark: SparkSession) -> None:
    target = Target("low", GROUPS.fields, GROUPS, high=True)
    with pytest.raises(ValueMistake, match=r"^integer overflow in SUM"), translating():
        merged(spark, INT_MAX // KEYS, target, None).collect()


def test_a_part_that_cannot_be_written_is_one_clear_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    df = spark.range(3).select(F.col("id").alias("c0"))
    writing = Writing("q", tmp_path / "nowhere", "parquet", GROUPS.fields[:1])
    with pytest.raises(OutputError, match=r"^cannot write '.*': no such file"), translating():
        df.mapInArrow(in_worker(writing), REPORT).collect()


# ---- one file out of parts -----------------------------------------------------------------------

MIXED = (
    Field("a.b", Type.IP),
    Field("text", Type.STRING),
    Field("f", Type.FLOAT),
    Field("raw", Type.BINARY),
    Field("ok", Type.BOOL),
    Field("n", Type.LLONG),
)
ROWS = [
    (parse_ip("10.0.0.1"), 'a "b", c', 0.1, b"\x00\xff", True, 3),
    (parse_ip("9.0.0.1"), "", math.nan, b"", False, 1),
    (None, None, None, None, None, None),
    (parse_ip("2001:db8::1"), "é\n", -math.inf, b"x", True, 2),
    (parse_ip("9.0.0.1"), "z", 1e300, None, None, -4),
]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("format", ["csv", "json", "ndjson"])
def test_parts_put_together_are_the_file_spark_writes(
    spark: SparkSession, tmp_path: Path, format: Format, descending: bool
) -> None:
    order = [("a.b", descending), ("f", not descending)]
    df = spark.createDataFrame(ROWS, schema_of(MIXED)).repartition(3)
    by = [sort_column(F.col("c0"), descending), sort_column(F.col("c2"), not descending)]
    write_output(df.orderBy(*by), tmp_path / "spark", format, MIXED)
    parts = []
    for row in ROWS:
        columns = [pa.array([v], arrow_type(f.type)) for v, f in zip(row, MIXED, strict=True)]
        with PartWriter(tmp_path, "held", MIXED) as part:
            part.write(pa.RecordBatch.from_arrays(columns, [f.name for f in MIXED]))
        parts.append(part.path)
    table = sorted_table(parts, MIXED, order)
    assert write_table(table, tmp_path / "parts", format, MIXED) == len(ROWS)
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "spark").read_bytes()
