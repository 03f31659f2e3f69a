"""`terascope stats`, against what DuckDB counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from bench.queries78 import PROTOCOL
from terascope.traffic.flow_records import generate_flows
from terascope.traffic.profile import FlowProfile
from tests.cli.calls import call

SET = (
    PROTOCOL
    + """
QUERY pairs: SELECT tb, srcIP, dstIP, COUNT(*) AS n FROM flows.FLOW
GROUP BY time/300 AS tb, srcIP, dstIP;
QUERY bytes: SELECT tb, dstIP, srcIP, SUM(bytes) AS total FROM flows.FLOW
GROUP BY time/300 AS tb, dstIP, srcIP;
QUERY web: SELECT tb, srcAS, COUNT(*) AS n FROM flows.FLOW
WHERE dstPort = 80 GROUP BY time/300 AS tb, srcAS;
"""
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("stats")
    generate_flows(FlowProfile(records=30_000, seed=2), folder / "flows.parquet")
    (folder / "set.gsql").write_text(SET)
    return folder / "set.gsql", folder / "flows.parquet"


def told(files: tuple[Path, Path], *flags: str) -> dict[str, Any]:
    script, table = files
    called = call("stats", script, "--source", f"flows=parquet:{table}", "--json", *flags)
    assert called.code == 0
    (source,) = json.loads(called.out)["sources"]
    assert isinstance(source, dict)
    return source


def counted(table: Path, keys: str, where: str) -> tuple[float, float]:
    """Tuples and groups of an epoch, without those that the source begins and ends with."""
    (first, last), *_ = duckdb.execute(
        f"SELECT min(time) // 300, max(time) // 300 FROM '{table}'"
    ).fetchall()
    (tuples, groups), *_ = duckdb.execute(
        f"SELECT sum(n), count(*) FROM (SELECT time // 300 AS tb, {keys}, count(*) AS n"
        f" FROM '{table}' WHERE {where} GROUP BY ALL) WHERE tb > {first} AND tb < {last}"
    ).fetchall()
    return tuples / (last - first - 1), groups / (last - first - 1)


def test_a_source_that_is_read_whole_is_counted(files: tuple[Path, Path]) -> None:
    source = told(files, "--tuples", "1M", "--seconds", "60")
    assert source["tuples_read"] == source["tuples_total"] == source["tuples_counted"] == 30_000
    pairs, web = source["keys"]
    assert len(pairs["queries"]) == 1 or set(pairs["queries"]) == {"pairs_low", "bytes_low"}
    for row, keys, where in ((pairs, "srcIP, dstIP", "TRUE"), (web, "srcAS", "dstPort = 80")):
        tuples, groups = counted(files[1], keys, where)
        assert row["exact"]
        assert row["epoch"] == "time DIV 300"
        assert row["tuples"] == pytest.approx(tuples)
        assert row["groups"] == row["at_least"] == row["at_most"] == pytest.approx(groups)
        assert row["tuples_per_group"] == pytest.approx(tuples / groups)
    (passing,), *_ = duckdb.execute(f"SELECT avg((dstPort = 80)::INT) FROM '{files[1]}'").fetchall()
    assert source["predicates"] == [{"predicate": "dstPort = 80", "share": pytest.approx(passing)}]
    assert {"query": "web_low", "share": pytest.approx(passing)} in source["queries"]


def test_a_sample_says_how_sure_it_is(files: tuple[Path, Path]) -> None:
    source = told(files, "--tuples", "1k", "--seconds", "60")
    row = source["keys"][0]
    tuples, groups = counted(files[1], "srcIP, dstIP", "TRUE")
    assert not row["exact"]
    assert row["at_least"] < groups < row["at_most"]
    assert row["tuples"] == pytest.approx(tuples, rel=0.2)
    assert row["groups"] == pytest.approx(groups, rel=0.5)


def test_for_people(files: tuple[Path, Path]) -> None:
    script, table = files
    called = call("stats", script, "--source", f"flows=parquet:{table}", "--tuples", "1M")
    assert called.code == 0
    tuples, groups = counted(table, "srcIP, dstIP", "TRUE")
    line = next(line for line in called.out.splitlines() if line.startswith("srcIP, dstIP"))
    assert line.split()[5:8] == ["10", f"{tuples:,.0f}", f"{groups:,.0f}"]
    assert "dstPort = 80" in called.out


def test_mistakes_are_told(files: tuple[Path, Path]) -> None:
    script, table = files
    assert call("stats", script, "--source", f"parquet:{table}", "--tuples", "many").code == 2
    missing = call("stats", script)
    assert missing.code == 1
    assert "no source is bound" in missing.err
