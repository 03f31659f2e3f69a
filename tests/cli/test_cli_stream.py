"""`terascope run --stream`: its flags, rows on stdout, and a real process that is watched, stopped
and started again.
"""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from terascope.cli.printing import RowPrinter
from terascope.cli.stopping import AtOnce, Stopping
from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.operate.subscription import Subscription
from terascope.pipeline import Bindings, compile_set
from terascope.plan.rel import Field
from terascope.reference.interpreter import evaluate
from terascope.streaming.state.runs import Run, announced
from terascope.types import Type
from tests.agreement import delivered
from tests.cli.calls import ENVIRONMENT, Called, call, small_trace
from tests.properties.stream_cases import readable
from tests.reference.connector_sources import ConnectorSources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKETS = 1500
SET = """\
QUERY talkers: SELECT tb, srcIP, count(*) AS packets FROM PKT GROUP BY time/5 AS tb, srcIP;
QUERY total: SELECT tb, sum(packets) AS packets FROM talkers GROUP BY tb;
QUERY windows: SELECT destIP, count(*) AS packets, wend
FROM PKT [RANGE '9 sec' SLIDE '4 sec'] GROUP BY destIP;
"""


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_trace(tmp_path_factory.mktemp("traces") / "trace.pcap", PACKETS)


@pytest.fixture
def gsql(tmp_path: Path) -> Path:
    path = tmp_path / "set.gsql"
    path.write_text(SET)
    return path


# ---- flags ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--speed 10x", "--speed: is for streams: give --stream, too"),
        ("--checkpoint state", "--checkpoint: is for streams"),
        ("--stream --speed fast", "'fast' is no speed; write 1x, 10x, 0.5x or max"),
        ("--stream --heartbeat often", "'often' is no duration; write 500ms, 2s or 1m, or off"),
        ("--stream --skew -2s", "'-2s' is no duration"),
        ("--stream --trigger 1", "'1' is no duration"),
        ("--stream --batch-bytes many", "'many' is no size; write 64MB or 1GB"),
        ("--stream --format json", "take ndjson for a stream"),
        ("--stream --format parquet", "parquet goes to files: give --output DIR"),
        ("--stream --output out --parts", "a stream always writes folders of files"),
        ("--stream --strict", "a stream counts what is malformed and goes on"),
    ],
)
def test_flags_that_make_no_sense(gsql: Path, trace: Path, flags: str, message: str) -> None:
    called = call("run", gsql, "--source", f"eth0=pcap:{trace}", *flags.split())
    assert called.code == 2
    assert message in " ".join(called.err.replace("│", " ").split())


def test_settings_of_streams_are_read_with_their_units(gsql: Path, trace: Path) -> None:
    config = gsql.with_name("t.toml")
    config.write_text('heartbeat = "soon"\n')
    called = call("run", gsql, "--stream", "--source", f"eth0=pcap:{trace}", "--config", config)
    assert called.code == 1
    assert "setting 'heartbeat': " in called.err
    assert "'soon' is no duration" in called.err


def test_a_port_or_a_checkpoint_that_is_taken(gsql: Path, trace: Path, tmp_path: Path) -> None:
    flags = ("run", gsql, "--stream", "--source", f"eth0=pcap:{trace}", "--checkpoint", tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        called = call(*flags, "--port", str(port))
    assert called.code == 1
    assert f"error: cannot listen on port {port} of 127.0.0.1" in called.err
    with announced(Run(os.getppid(), 1, "other.gsql", str(tmp_path))):
        called = call(*flags)
    assert called.code == 1
    assert f"process {os.getppid()} is running on checkpoint" in called.err


def test_the_second_signal_stops_at_once() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Stopping() as stopping:
        stopping.install()
        os.kill(os.getpid(), signal.SIGTERM)
        stopping.sleep(60)
        assert stopping.asked
        with pytest.raises(AtOnce):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is before


# ---- rows on stdout ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("queries", "expected"),
    [
        (("a",), "n\n1\n2\n1\n2\n"),
        (("a", "b"), "# query a\nn\n1\n2\n# query a\nn\n1\n2\n"),
    ],
)
def test_rows_as_csv_have_one_header_or_one_a_block(
    queries: tuple[str, ...], expected: str
) -> None:
    printer = RowPrinter("csv", named=len(queries) > 1)
    fields = (Field("n", Type.UINT),)
    table = pa.table({"n": pa.array([1, 2], pa.int64())})
    raw = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(raw, write_through=True)):
        printer.show("a", 0, fields, table)
        printer.show("a", 1, fields, table)
        assert raw.getvalue().decode() == expected


@pytest.mark.spark
def test_rows_come_to_stdout_as_windows_close(gsql: Path, trace: Path, spark: SparkSession) -> None:
    flags = ("--stream", "--source", f"eth0=pcap:{trace}", "--speed", "max", "--until-idle")
    called = call("run", gsql, *flags, "--format", "ndjson")
    assert called.code == 0, called.err
    rows = [json.loads(line) for line in called.out.splitlines()]
    assert {tuple(row) for row in rows if row["query"] == "total"} == {("query", "tb", "packets")}
    for query in ("talkers", "total"):
        assert sum(row["packets"] for row in rows if row["query"] == query) == PACKETS
    assert "note: nothing survives this run" in called.err
    assert "status: http://127.0.0.1:" in called.err
    assert "all was read: 1,500 tuples read" in called.err
    called = call("run", gsql, *flags, "--rows", "1", "--quiet")
    assert called.code == 0, called.err
    assert "talkers, batch 0" in called.out
    assert " more; " in called.out


# ---- a process -----------------------------------------------------------------------------------


class Process:
    """`terascope run` as somebody starts it."""

    def __init__(self, *arguments: str | Path) -> None:
        words = [sys.executable, "-m", "terascope", *map(str, arguments)]
        self.err: list[str] = []
        self._process = subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **ENVIRONMENT},
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            self.err += lines

    def ask_to_stop(self, number: signal.Signals = signal.SIGINT) -> None:
        self._process.send_signal(number)

    @property
    def jvm(self) -> int:
        """The process of its Spark."""
        own = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        pending = own.read_text().split()
        while pending:
            child = Path("/proc") / pending.pop()
            if child.joinpath("comm").read_text().strip() == "java":
                return int(child.name)
            pending += child.joinpath("task", child.name, "children").read_text().split()
        raise AssertionError("it has no JVM")

    def end(self) -> int:
        code = self._process.wait(240)
        self._reader.join()
        return code

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def called_when(self, is_it: Callable[[Called], bool], *arguments: str) -> Called:
        """A command about the run, given again until it says what is waited for."""
        while True:
            called = call(*arguments)
            if is_it(called):
                return called
            try:
                self._process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError("".join(self.err))


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    started: list[Process] = []
    yield started
    for process in started:
        process.kill()


def page(port: int, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    answer = connection.getresponse()
    try:
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.spark
@pytest.mark.soak  # test_cli_operating.py has the commands, tests/session/ the stop
@pytest.mark.timeout(600)  # Spark starts three times; on a busy machine that takes its time
def test_a_run_is_watched_loses_its_jvm_is_terminated_and_goes_on(
    gsql: Path, trace: Path, tmp_path: Path, processes: list[Process]
) -> None:
    captures, output, state = tmp_path / "captures", tmp_path / "out", tmp_path / "state"
    captures.mkdir()
    content = trace.read_bytes()
    growing = captures / "a.pcap"
    growing.write_bytes(content[: len(content) // 2])
    flags = (
        "run", gsql, "--stream", "--source", f"eth0=pcap:{captures}", "--heartbeat", "off",
        "--trigger", "200ms", "--output", output, "--checkpoint", state, "--master", "local[2]",
    )  # fmt: skip

    first = Process(*flags)
    processes.append(first)
    status = first.called_when(
        lambda c: c.code == 0 and json.loads(c.out)["run"]["batch"] >= 0, "status", "--json"
    )
    told = json.loads(status.out)
    (source,) = told["sources"]
    assert 0 < source["tuples"] < PACKETS
    assert source["watermark_ns"] > 10**18
    talkers = next(q for q in told["queries"] if q["name"] == "talkers")
    assert talkers["rows"] > 0
    assert talkers["pending_rows"] > 0
    assert talkers["closed_until_ns"] <= source["watermark_ns"]
    assert told["low"][0]["tuples_in"] == source["tuples"]
    assert told["run"]["driver_memory_bytes"] > 10**8
    shown = call("status").out
    assert shown.startswith("set.gsql  running")
    why = call("why", "talkers")
    assert why.code == 0
    assert why.out.startswith("talkers is closed until ")
    assert "eth0" in why.out
    tailed = call("tail", "talkers", "--from-start", "--no-follow", "--format", "csv")
    assert len(tailed.out.splitlines()) == 1 + talkers["rows"]
    port = json.loads((state / "terascope" / "run.json").read_text())["port"]
    code, metrics = page(port, "/metrics")
    assert code == 200
    assert f'terascope_source_tuples_total{{source="eth0"}} {float(source["tuples"])}' in metrics
    assert page(port, "/health")[0] in (200, 503)  # without heartbeats silence looks like death

    restarts = 1  # tests/spark/test_killed_jvm.py kills one, too, in the middle of a batch
    os.kill(first.jvm, signal.SIGKILL)
    growing.write_bytes(content[: len(content) * 3 // 4])
    first.called_when(lambda c: has_gone_on(c, source["tuples"], restarts), "status", "--json")
    growing.write_bytes(content)
    first.ask_to_stop(signal.SIGTERM)
    assert first.end() == 0, first.err
    assert first.err[-1] == (
        f"to go on from here, give the same command again (checkpoint {state})\n"
    )
    failures = [line for line in first.err if line.startswith("note: the stream failed")]
    assert len(failures) == restarts
    assert all("Spark's JVM has ended" in line for line in failures)
    assert not any("Traceback" in line for line in first.err), first.err
    assert call("status").code == 1

    second = Process(*flags, "--until-idle")
    processes.append(second)
    assert second.end() == 0, second.err
    assert second.err[-1].startswith("all was read: 1,500 tuples read")
    out = call("tail", "talkers", "--from-start", "--format", "csv", "--checkpoint", str(state)).out
    assert out.splitlines()[0] == "tb,srcIP,packets"
    interfaces = {"eth0": Interface("eth0", "pcap", str(trace))}
    plan = compile_set(Source(SET), Bindings(interfaces)).optimized
    answers = delivered(plan, evaluate(plan, ConnectorSources(interfaces)))
    for name, answer in answers.items():
        told_rows = Subscription(output / name, follow=False, from_start=True).rows()
        found = Counter(tuple(row.values()) for row in told_rows)
        assert found
        assert found == Counter(map(tuple, readable(answer).rows)), "nothing is lost or repeated"


def has_gone_on(called: Called, tuples: int, restarts: int) -> bool:
    """Whether a run has read more than so many tuples, after so many restarts."""
    if called.code:
        return False
    told = json.loads(called.out)
    return bool(told["run"]["restarts"] == restarts and told["sources"][0]["tuples"] > tuples)
