"""The experiments of paper 2, section 6: the trace, its partitions, and what is received."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console, RenderableType

from bench.experiment import Outcome, Settings
from bench.hosts import figures, peers
from bench.hosts.configurations import (
    BYTES,
    DIGEST,
    GROUPS,
    ROWS,
    Configuration,
    HostsContender,
    SameAnswers,
    digest,
    figure,
)
from bench.hosts.network import lacking
from bench.hosts.queries import DELAYS, FLOW_PAIRS, SUBNETS, SUSPICIOUS
from bench.hosts.traffic import PATTERN, PER_HOST, Trace, generate, split_trace
from bench.registry import find_experiment
from bench.worker import Worker
from terascope.partitioning.layout import read_layout
from terascope.session import Session

pytestmark = pytest.mark.bench

TINY = Trace(6_000, seconds=130)
FLOW = ("srcIP", "destIP", "srcPort", "destPort")
has_no_hosts = lacking()


@pytest.fixture(scope="module")
def trace() -> pa.Table:
    return generate(TINY)


def groups(table: pa.Table, keys: tuple[str, ...], seconds: int) -> int:
    """The groups of some packets by keys and epoch."""
    epochs = pa.array(table.column("time").to_numpy() // seconds)
    return len(table.append_column("tb", epochs).group_by(["tb", *keys]).aggregate([]))


def partitions(table: pa.Table, by: str, hosts: int, folder: Path) -> list[pa.Table]:
    split_trace(table, by, [f"10.0.0.{n}" for n in range(hosts)], folder)
    layout = read_layout(folder)
    assert layout is not None
    assert [one.host for one in layout.partitions] == [
        f"10.0.0.{n // PER_HOST}" for n in range(PER_HOST * hosts)
    ]
    return [pq.read_table(folder / one.path) for one in layout.partitions]


def test_the_trace_is_in_order_and_some_flows_are_suspicious(trace: pa.Table) -> None:
    assert trace.num_rows == TINY.packets
    assert np.all(np.diff(trace.column("timestamp").to_numpy()) >= 0)
    flows = trace.group_by([*FLOW]).aggregate([("flags", "max")]).column("flags_max").to_numpy()
    assert 0.01 < np.mean(flows == PATTERN) < 0.12
    assert generate(TINY).equals(trace)


def test_partitions_have_all_packets_once(trace: pa.Table, tmp_path: Path) -> None:
    turn = partitions(trace, "", 2, tmp_path / "turn")
    assert {part.num_rows for part in turn} == {TINY.packets // 4}
    parts = partitions(trace, ", ".join(FLOW), 2, tmp_path / "flow")
    assert sum(part.num_rows for part in parts) == TINY.packets
    assert sum(groups(part, FLOW, 1 << 30) for part in parts) == groups(trace, FLOW, 1 << 30)


@pytest.mark.parametrize("text", [SUSPICIOUS, SUBNETS, DELAYS, FLOW_PAIRS])
def test_sets_have_rows_however_the_trace_is_split(
    text: str, trace: pa.Table, tmp_path: Path
) -> None:
    digests = set()
    for by in ("", "srcIP & 0xFFFFFFF0, destIP"):
        partitions(trace, by, 2, tmp_path / f"by{by[:5]}")
        with Session() as session:
            session.source(f"trace=parquet:{tmp_path / f'by{by[:5]}'}")
            results = session.query(text).run(engine="local")
            tables = {name: results[name].to_arrow() for name in results}
        assert all(table.num_rows for table in tables.values())
        digests.add(digest(tables))
    assert len(digests) == 1


@pytest.mark.spark
@pytest.mark.skipif(bool(has_no_hosts), reason=has_no_hosts)
@pytest.mark.parametrize("combining", [False, True])
def test_received_groups_are_those_of_partitions_or_of_hosts(
    combining: bool, trace: pa.Table, tmp_path: Path
) -> None:
    named = Configuration("naive", combining=combining)
    contender = HostsContender(named, SUSPICIOUS, TINY, tmp_path, sizes=(1, 2))
    worker = Worker(contender, 2, tmp_path / "worker")
    try:
        found = worker.run().figures
    finally:
        worker.close()
    for hosts in (1, 2):
        parts = partitions(trace, "", hosts, tmp_path / f"check{hosts}")
        if combining:
            parts = [pa.concat_tables(parts[n : n + PER_HOST]) for n in (0, 2)[:hosts]]
        expected = sum(groups(part, FLOW, 1) for part in parts)
        assert found[figure(GROUPS, hosts)] == expected
        assert found[figure(ROWS, hosts)] == 0
    assert found[figure(DIGEST, 1)] == found[figure(DIGEST, 2)]


# ---- what is said --------------------------------------------------------------------------------


def text_of(parts: list[RenderableType]) -> str:
    text = io.StringIO()
    console = Console(width=200, file=text)
    for part in parts:
        console.print(part)
    return text.getvalue()


def outcome(name: str, rows: tuple[float, float], digest: float = 1.0) -> Outcome:
    found = {figure(DIGEST, 1): digest, figure(DIGEST, 4): digest}
    for hosts, number in zip((1, 4), rows, strict=True):
        found |= {figure(GROUPS, hosts): number, figure(BYTES, hosts): 10 * number}
    return Outcome(name, [1.0], [found])


def test_growth_and_reductions_are_told() -> None:
    outcomes = [outcome("naive", (100, 350)), outcome("suboptimal", (50, 200))]
    outcomes.append(outcome("optimal", (20, 21)))
    shown = text_of(figures.FIG10_11.concluded((1, 4), 1000)(outcomes))
    assert "naive: 3.50 times the rows and 3.50 times the bytes from 1 to 4 hosts" in shown
    assert "optimal below suboptimal, rows (bytes) by hosts: 1: 60% (60%), 4: 90% (90%)" in shown
    assert "36 to 52%" in shown


def test_other_rows_are_found() -> None:
    outcomes = [outcome("naive", (1, 1)), outcome("optimal", (1, 1), digest=2.0)]
    SameAnswers().judge(outcomes)
    assert [one.checked for one in outcomes] == [True, False]
    assert outcomes[1].remark


def test_ratios_are_told_beside_the_targets() -> None:
    cpu = {"whole": 8.0, "split": 9.0, "one host": 10.0, "four hosts": 10.5}
    outcomes = [Outcome(f"set50 {how}", [s], [{peers.CPU: s}]) for how, s in cpu.items()]
    shown = text_of(peers.concluded(outcomes))
    assert "set50: split data take 1.12 times the seconds" in shown
    assert "set50: a tuple takes 1.05 times the processor time on four hosts" in shown


@pytest.mark.parametrize("name", ["fig8-9", "fig10-11", "fig13-14", "fig6-10-11"])
@pytest.mark.skipif(bool(has_no_hosts), reason=has_no_hosts)
def test_every_configuration_is_a_contender(name: str, tmp_path: Path) -> None:
    experiment = find_experiment(name)
    prepared = experiment.prepare(Settings(scale=0.001, data=tmp_path), lambda line: None)
    assert experiment.name == name
    assert len(prepared.contenders) == len({one.name for one in prepared.contenders}) > 1
