"""The server of a run, asked over HTTP."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from terascope.diagnostic import StreamError
from terascope.operate.server import StatusServer, fetch_status
from terascope.operate.status import Status
from terascope.streaming.state.runs import Run
from tests.operate.statuses import CHOSEN, ETH0, NOW, STATUS, TALKERS, TREED, WINDOWED, run_status


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(clock: Clock) -> Iterator[StatusServer]:
    with StatusServer(clock=clock) as made:
        yield made


def get(server: StatusServer, path: str) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def health(server: StatusServer) -> int:
    return get(server, "/health")[0].status


def run_of(server: StatusServer, tmp_path: Path) -> Run:
    return Run(1, server.port, "flows.gsql", str(tmp_path))


def samples(server: StatusServer) -> dict[tuple[str, tuple[str, ...]], float]:
    answer, content = get(server, "/metrics")
    assert answer.status == 200
    families = list(text_string_to_metric_families(content.decode()))
    assert all(f.documentation for f in families)
    return {
        (s.name, tuple(s.labels.values())): s.value for family in families for s in family.samples
    }


def test_status_is_what_was_published_last(server: StatusServer, tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="is starting: it has no status yet; try again"):
        fetch_status(run_of(server, tmp_path))
    server.publish(STATUS)
    answer, content = get(server, "/status?pretty")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("application/json")
    assert Status.from_json(content) == STATUS
    later = replace(STATUS, run=run_status(batch=1205))
    server.publish(later)
    assert fetch_status(run_of(server, tmp_path)) == later


def test_metrics_are_for_prometheus(server: StatusServer) -> None:
    assert samples(server) == {}
    server.publish(STATUS)
    found = samples(server)
    assert found["terascope_source_tuples_total", ("eth0",)] == 15_432_000
    assert found["terascope_source_bytes_total", ("eth0",)] == 9_876_543_210
    assert found["terascope_source_late_total", ("eth0",)] == 3
    assert found["terascope_source_malformed_total", ("eth1",)] == 2
    assert found["terascope_source_watermark_seconds", ("eth1",)] == NOW - 35
    assert found["terascope_source_backlog_bytes", ("eth1",)] == 3_400_000
    assert found["terascope_source_stalled", ("eth0",)] == 0
    assert found["terascope_source_stalled", ("eth1",)] == 1
    assert found["terascope_query_rows_total", ("talkers",)] == 1204
    assert found["terascope_query_lag_seconds", ("talkers",)] == 40
    assert found["terascope_query_pending_bytes", ("talkers",)] == 1_234_567
    assert found["terascope_store_bytes", ()] == 12_300_000
    assert found["terascope_store_segments", ()] == 14
    assert found["terascope_batch_seconds", ()] == 0.31
    assert found["terascope_batches_total", ()] == 1205
    assert found["terascope_restarts_total", ()] == 0
    assert found["terascope_driver_memory_bytes", ()] == 512_000_000
    assert found["terascope_worker_memory_bytes", ()] == 1_130_000_000
    assert found["terascope_run_info", ("flows.gsql", "running")] == 1
    assert found["terascope_low_evicted_total", ("low1",)] == 3
    server.publish(TREED)
    found = samples(server)
    assert found["terascope_tree_intermediate", ("low1", "eth0")] == 1
    assert found["terascope_tree_tables", ("low1", "eth0")] == 0
    assert found["terascope_tree_gain", ("low1", "eth0")] == 0.42
    assert found["terascope_tree_since_seconds", ("low1", "eth0")] == NOW - 300
    assert found["terascope_tree_probes_per_tuple", ("low1", "eth0")] == 1.625


def test_metrics_of_strategies(server: StatusServer) -> None:
    server.publish(CHOSEN)
    found = samples(server)
    assert found["terascope_strategy_groups", ("low1", "eth0", "quantile_len", "gk_lite")] == 40.0


def test_metrics_of_windows(server: StatusServer) -> None:
    server.publish(WINDOWED)
    found = samples(server)
    family = "talkers", "srcIP", "TCP.time"
    gauges = {
        "planned_rate": 12_400, "planned_measured": 1, "planned_seconds": NOW - 300,
        "rate": 11_900, "clusters": 2, "retired": 2, "possible_gain": 0.07,
    }  # fmt: skip
    for name, value in gauges.items():
        assert found[f"terascope_windows_{name}", family] == value, name
    costs = {labels[0]: v for (n, labels), v in found.items() if n == "terascope_windows_cost"}
    assert costs == {"shared": 900.0, "unshared": 1_500.5, "chosen": 800.0}, "others are impossible"


def test_what_is_not_known_has_no_sample_and_what_is_gone_is_gone(server: StatusServer) -> None:
    server.publish(STATUS)
    silent = replace(ETH0, watermark_ns=None)
    server.publish(
        replace(STATUS, sources=(silent,), queries=(replace(TALKERS, lag_seconds=None),))
    )
    found = samples(server)
    assert ("terascope_source_tuples_total", ("eth0",)) in found
    assert ("terascope_source_watermark_seconds", ("eth0",)) not in found
    assert ("terascope_query_lag_seconds", ("talkers",)) not in found
    assert not [key for key in found if key[1] == ("eth1",)]


@pytest.mark.parametrize(("trigger", "patience"), [(1.0, 10.0), (30.0, 150.0)])
def test_health_ends_with_the_batches(
    server: StatusServer, clock: Clock, trigger: float, patience: float
) -> None:
    server.publish(replace(STATUS, run=run_status(trigger_seconds=trigger)))
    clock.now = NOW + patience - 0.1
    assert health(server) == 200
    clock.now = NOW + patience
    answer, content = get(server, "/health")
    assert answer.status == 503
    assert json.loads(content)["last_batch_seconds_ago"] == patience
    # Other news are no batch.
    again = run_status(updated=clock.now, trigger_seconds=trigger)
    server.publish(replace(STATUS, run=replace(again, state="restarting", restarts=1)))
    assert health(server) == 503
    server.publish(replace(STATUS, run=replace(again, batch=1205)))
    assert health(server) == 200


def test_a_failed_run_is_not_healthy_and_a_starting_one_has_some_time(
    server: StatusServer, clock: Clock
) -> None:
    assert health(server) == 200
    clock.now += 10
    assert health(server) == 503
    server.publish(replace(STATUS, run=replace(run_status(updated=clock.now), state="failed")))
    assert health(server) == 503


def test_other_pages_say_which_there_are(server: StatusServer) -> None:
    answer, content = get(server, "/nonsense")
    assert answer.status == 404
    assert "/metrics" in json.loads(content)["error"]


def test_only_this_machine_is_served(server: StatusServer) -> None:
    assert server._server.socket.getsockname()[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_told(server: StatusServer) -> None:
    with pytest.raises(StreamError, match=f"cannot listen on port {server.port} .* give another"):
        StatusServer(server.port)
    with pytest.raises(StreamError, match="cannot listen on port 70000"):
        StatusServer(70000)


def test_a_run_that_does_not_answer(tmp_path: Path) -> None:
    with StatusServer() as server:
        run = run_of(server, tmp_path)
    with pytest.raises(StreamError, match=r"flows.gsql \(process 1\) does not answer on port"):
        fetch_status(run)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        mute = replace(run, port=deaf.getsockname()[1])
        with pytest.raises(StreamError, match="does not answer"):
            fetch_status(mute, patience=0.1)


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("LOCALHOST:{port}", 200),
        ("[::1]:{port}", 200),
        ("proxy.example:8443", 200),
        ("evil.example:{port}", 403),
        ("127.0.0.1", 403),
        ("127.0.0.1:1", 403),
        ("127.0.0.1.evil.example:{port}", 403),
        ("", 403),
        (None, 403),
    ],
)
@pytest.mark.parametrize("path", ["/status", "/metrics", "/health"])
def test_only_names_of_this_machine_are_answered(
    clock: Clock, host: str | None, code: int, path: str
) -> None:
    with StatusServer(clock=clock, hosts=["proxy.example:8443"]) as server:
        server.publish(STATUS)
        connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.putrequest("GET", path, skip_host=True)
        if host is not None:
            connection.putheader("Host", host.format(port=server.port))
        connection.endheaders()
        answer = connection.getresponse()
        content = answer.read().decode()
        connection.close()
        assert answer.status == code
        assert code == 200 or "flows.gsql" not in content


def test_two_hosts_are_refused_and_nothing_can_be_changed_over_http(server: StatusServer) -> None:
    server.publish(STATUS)
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.putrequest("GET", "/status")
    connection.putheader("Host", "evil.example")
    connection.endheaders()
    assert connection.getresponse().status == 403
    connection.close()
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.request(method, "/set?threshold=1", body="threshold=1")
        assert connection.getresponse().status == 405
        connection.close()
