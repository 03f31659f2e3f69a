"""ULLONG columns with all of their 64 bits, from Spark's sources to every kind of result."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from terascope import Config, Session, ValueMistake

pytestmark = pytest.mark.spark

TEXT = """
PROTOCOL P (ts UINT increasing clock(s), id ULLONG, n ULLONG, ip IP);
QUERY chosen: SELECT ts, id, n, ip FROM p.P WHERE id >= 9223372036854775807;
QUERY groups: SELECT tb, id, COUNT(*) AS cnt, MAX(id) AS most FROM p.P GROUP BY ts/10 AS tb, id;
QUERY real: SELECT tb, SUM(FLOAT(id)) AS total FROM p.P GROUP BY ts/10 AS tb;
"""
ROWS = [
    (1, 2**63 - 1, 1, "10.0.0.1"),
    (2, 2**63, 2, "10.0.0.2"),
    (3, 2**64 - 1, 3, "10.0.0.3"),
    (4, 5, 4, "10.0.0.4"),
    (5, None, 5, "10.0.0.5"),
    (6, 2**64 - 1, 6, "10.0.0.6"),
]
LARGE = [2**63 - 1, 2**63, 2**64 - 1, 2**64 - 1]
GROUPED = [(5, 1), (2**63 - 1, 1), (2**63, 1), (2**64 - 1, 2), (None, 1)]


def decimals(spark: SparkSession) -> Session:
    """A session with a DataFrame as Spark reads unsigned integers: decimals of 20 digits."""
    rows = [(ts, None if i is None else Decimal(i), n, ip) for ts, i, n, ip in ROWS]
    session = Session(spark=spark, config=Config(kernels="numpy"))
    schema = "ts bigint, id decimal(20,0), n bigint, ip string"
    session.dataframe("p", spark.createDataFrame(rows, schema))
    return session


def test_a_dataframe_of_decimals(spark: SparkSession, tmp_path: Path) -> None:
    with decimals(spark) as session:
        results = session.query(TEXT).run()
        assert [row["id"] for row in results["chosen"].rows()] == LARGE
        assert [(r["id"], r["cnt"]) for r in results["groups"].rows()] == GROUPED
        assert results.reports["p"].malformed == {}
        frame = results["chosen"].dataframe
        types = [field.dataType for field in frame.schema.fields]
        assert types == [T.LongType(), T.DecimalType(20, 0), T.LongType(), T.StringType()]
        assert [int(row.id) for row in frame.collect()] == LARGE
        assert results["chosen"].to_arrow().schema.field("id").type == pa.uint64()
        results.write(tmp_path / "parquet", "parquet")
    table = pq.read_table(tmp_path / "parquet" / "chosen.parquet")
    assert (table.schema.field("id").type, table.column("id").to_pylist()) == (pa.uint64(), LARGE)
    again = spark.read.parquet(str(tmp_path / "parquet" / "chosen.parquet"))
    assert [int(row.id) for row in again.collect()] == LARGE


@pytest.mark.parametrize("low", ["native", "catalyst"])
def test_a_folder_of_parquet_files(
    spark: SparkSession, tmp_path: Path, low: Literal["native", "catalyst"]
) -> None:
    columns = [
        pa.array(column, type)
        for column, type in zip(
            zip(*ROWS, strict=True),
            (pa.int64(), pa.uint64(), pa.int64(), pa.string()),
            strict=True,
        )
    ]
    table = pa.Table.from_arrays(columns, ["ts", "id", "n", "ip"])
    pq.write_table(table.slice(0, 3), tmp_path / "a.parquet")
    pq.write_table(table.slice(3), tmp_path / "b.parquet")
    config = Config(kernels="numpy", low=low)
    with Session(spark=spark, config=config) as session:
        session.source(f"p=parquet:{tmp_path}")
        results = session.query(TEXT).run()
        assert [row["id"] for row in results["chosen"].rows()] == LARGE
        found = [(r["id"], r["cnt"]) for r in results["groups"].rows()]
        assert found == GROUPED
        total = float(sum(row[1] or 0 for row in ROWS))
        assert results["real"].rows() == [{"tb": 0, "total": total}]
        assert results["groups"].dataframe.schema["id"].dataType == T.DecimalType(20, 0)
        assert results["groups"].dataframe.schema["cnt"].dataType == T.LongType()
        wrong = session.query("""
            PROTOCOL P (ts UINT increasing clock(s), id ULLONG);
            QUERY sums: SELECT tb, SUM(id + 1) AS total FROM p.P GROUP BY ts/10 AS tb;""")
        with pytest.raises(ValueMistake, match="integer overflow in"):
            wrong.run()["sums"].rows()
