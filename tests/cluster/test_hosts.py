"""Partitions on several hosts: tasks run where their partition is, and a host that is killed or cut
off changes no answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.hosts.network import Network, NoNetwork, ip, lacking
from tests.cluster.hosts import LONG_TRACE, NAMES, Runs, running_driver

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why := lacking()), reason=why),
]

VICTIM = 2
BACK_SECONDS = 120
"""The longest that a host takes to work again."""


@pytest.mark.timeout(400)
def test_tasks_run_on_the_hosts_of_their_partitions(tmp_path: Path) -> None:
    with running_driver(tmp_path, hosts=2) as runs:
        said = runs.run("batch", "batch")
        addresses = [runs.cluster.network.address(host) for host in (1, 1, 2, 2)]
        assert {n: set(hosts) for n, hosts in said["hosts"].items()} == {
            str(number): {address} for number, address in enumerate(addresses)
        }
        assert not said["sending"]
        assert runs.run("sent", "sent")["sending"]
        streamed = runs.run("stream", "stream")
        assert streamed["batches"] > 4
        assert streamed["places"].get("ANY", 0) == 0
        assert streamed["places"]["NODE_LOCAL"] >= 2 * streamed["batches"]
        expected = runs.rows("batch", "batch")
        assert all(expected[name] for name in NAMES)
        assert runs.rows("batch", "sent") == expected
        assert runs.rows("stream", "stream") == expected


def test_networks_of_dead_processes_are_removed() -> None:
    with pytest.raises(NoNetwork):
        ip("-n", "terascope-none", "link")
    with Network(1) as network:
        dead = "terascope-4194305-0-0"  # above the largest id of a process
        ip("netns", "add", dead)
        with Network(1) as other:
            names = ip("netns", "list")
            assert dead not in names
            assert network.namespace(1) in names
            assert other.namespace(1) in names
    assert network.namespace(0) not in ip("netns", "list")


# ---- hosts that are lost -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    folder = tmp_path_factory.mktemp("lost")
    with running_driver(folder, hosts=3, trace=LONG_TRACE) as runs:
        yield runs


@pytest.fixture(scope="module")
def expected(runs: Runs) -> Mapping[str, list[tuple[Any, ...]]]:
    """The rows of undisturbed runs."""
    runs.run("batch", "calm")
    runs.run("stream", "calm_stream")
    rows = runs.rows("batch", "calm")
    assert runs.rows("stream", "calm_stream") == rows
    assert all(rows[name] for name in NAMES)
    return rows


def kill_executor(runs: Runs) -> Callable[[], None]:
    assert runs.cluster.kill_executors(VICTIM)
    return lambda: None


def kill_host(runs: Runs) -> Callable[[], None]:
    runs.cluster.kill_host(VICTIM)

    def restart() -> None:
        runs.cluster.start_worker(VICTIM)
        runs.cluster.await_worker(VICTIM)

    return restart


def cut_off(runs: Runs) -> Callable[[], None]:
    runs.cluster.network.cut_off(VICTIM)
    return lambda: runs.cluster.network.connect(VICTIM)


FAULTS = {"executor": kill_executor, "host": kill_host, "cut": cut_off}


def await_back(runs: Runs, name: str) -> None:
    """Run batches until the host reads its partitions again; each has the right rows."""
    address = runs.cluster.network.address(VICTIM)
    end = time.monotonic() + BACK_SECONDS
    for number in range(1000):
        found = runs.run("batch", f"{name}_{number}")["hosts"]
        if all(set(found.get(str(n), ())) == {address} for n in (2, 3)):
            return
        assert time.monotonic() < end, found


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("moment", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", ["batch", "sent"])
def test_a_batch_survives_a_lost_host(
    runs: Runs, expected: Mapping[str, list[tuple[Any, ...]]], kind: str, fault: str, moment: float
) -> None:
    name = f"{kind}_{fault}_{moment:g}"
    calm = runs.run(kind, f"{name}_calm")["seconds"]
    runs.start(kind, name)
    time.sleep(moment * calm)  # the moment of the fault is what the test is about
    repair = FAULTS[fault](runs)
    runs.done()
    assert runs.rows("batch", name) == expected
    repair()
    await_back(runs, f"{name}_back")


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("moment", [0, 3, 6])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_stream_survives_a_lost_host(
    runs: Runs, expected: Mapping[str, list[tuple[Any, ...]]], fault: str, moment: int
) -> None:
    """The host is lost in a micro-batch, and is back two later, while the stream runs."""
    name = f"stream_{fault}_{moment}"
    runs.start("stream", name)
    while runs.expect("micro-batch") != f"micro-batch {moment}":
        pass
    repair = FAULTS[fault](runs)
    over = False
    for _ in range(2):
        over = over or runs.expect("micro-batch", "done").startswith("done")
    repair()
    if not over:
        runs.done()
    assert runs.rows("stream", name) == expected
    await_back(runs, f"{name}_back")
