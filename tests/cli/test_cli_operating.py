"""`terascope status | why | tail | set` over a run that is faked: a real server, and real files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from terascope.operate import control_requests
from terascope.operate.control_requests import send_request
from terascope.operate.server import StatusServer
from terascope.operate.status import Hold, QueryStatus, Status
from terascope.plan.rel import Field
from terascope.streaming.state.runs import Declared, Run, announced
from terascope.types import Type, parse_ip
from tests.cli.calls import call
from tests.operate.statuses import ETH0, ETH1, STATUS, run_status
from tests.stream.written_streams import WrittenStream

FIELDS = (Field("tb", Type.UINT), Field("srcIP", Type.IP), Field("share", Type.FLOAT))


@dataclass
class Faked:
    """A run that is none."""

    run: Run
    server: StatusServer
    stream: WrittenStream

    @property
    def control(self) -> Path:
        return Path(self.run.checkpoint) / "terascope" / "control"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))


@pytest.fixture
def faked(tmp_path: Path) -> Iterator[Faked]:
    stream = WrittenStream(tmp_path / "results" / "talkers", "parquet", FIELDS)
    stream.header()
    with StatusServer() as server:
        run = Run(
            os.getpid(),
            server.port,
            "flows.gsql",
            str(tmp_path / "state"),
            str(tmp_path / "results"),
            streams={"talkers": str(stream.folder)},
            parameters={
                "threshold": Declared("UINT", "100"),
                "victim": Declared("IP", "10.0.0.1"),
            },
        )
        server.publish(STATUS)
        with announced(run) as known:
            yield Faked(known, server, stream)


def write_rows(stream: WrittenStream, batches: int = 3, each: int = 2) -> None:
    for number in range(batches):
        rows: list[tuple[object, ...]] = [
            (number * each + i, parse_ip(f"10.0.0.{i}"), 0.25) for i in range(each)
        ]
        stream.add(number, rows)


# ---- status --------------------------------------------------------------------------------------


def test_status_shows_sources_and_queries(faked: Faked) -> None:
    called = call("status")
    assert called.code == 0, called.err
    lines = [line.rstrip() for line in called.out.splitlines()]
    assert lines[0] == "flows.gsql  running  up 20 min  batch 1,204 in 0.31 s"
    assert lines[2] == "eth1 is stalled: no file of the folder has grown for 35 s"
    assert lines[8].split() == ["eth0", "12,346", "2023-11-14", "22:34:09", "0", "B", "3", "0"]
    assert lines[13].split()[:2] == ["talkers", "1,204"]
    assert lines[13].split()[-1] == "eth1"
    assert called.err == ""
    assert call("status", "--checkpoint", faked.run.checkpoint).out == called.out


def test_status_as_json_is_everything(faked: Faked) -> None:
    called = call("status", "--json")
    assert Status.from_json(called.out) == STATUS
    assert called.out.count("\n") == 1


def test_watching_ends_with_the_run(faked: Faked) -> None:
    over = replace(STATUS, run=replace(run_status(), state="stopped"))
    faked.server.publish(over)
    called = call("status", "--watch")
    assert called.code == 0, called.err
    assert called.out.startswith("stopped: batch 1,204 in 0.31 s, ")
    assert call("status", "--watch", "--json").code == 2


def test_no_run_or_several_is_told(tmp_path: Path, faked: Faked) -> None:
    other = replace(faked.run, checkpoint=str(tmp_path / "other"), set_name="other.gsql")
    with announced(other):
        called = call("status")
        assert called.code == 1
        assert "error: 2 sets are running; say which one:" in called.err
        assert f"--checkpoint {other.checkpoint}   other.gsql" in called.err
    called = call("status", "--checkpoint", tmp_path / "nowhere")
    assert called.code == 1
    assert "is no checkpoint of a run" in called.err


def test_no_run_at_all() -> None:
    for command in (("status",), ("why", "talkers"), ("tail", "talkers"), ("set", "a=1")):
        called = call(*command)
        assert called.code == 1
        assert called.err.startswith("error: no set is running; start one with terascope run")


# ---- why -----------------------------------------------------------------------------------------


def test_why_names_the_input_and_what_to_do(faked: Faked) -> None:
    called = call("why", "talkers")
    assert called.code == 0, called.err
    assert [line.rstrip() for line in called.out.splitlines()] == [
        "talkers is closed until 2023-11-14 22:33:30, 40 s behind the present",
        "late: 3 tuples of eth0 came too late (talkers 3): give a --skew that is 4.0 s longer, or"
        " more: the clock had closed their window",
        "",
        "input   watermark             behind   why",
        "─" * 91,
        "eth1    2023-11-14 22:33:35     35 s"
        "   is stalled: no file of the folder has grown for 35 s",
        "eth0    2023-11-14 22:34:09    1.0 s   has no later watermark",
        "",
        "eth1 is stalled: no file of the folder has grown for 35 s",
        "what to do: see to eth1; the window closes as soon as it gives tuples or heartbeats",
    ]


def test_why_follows_streams_to_their_sources(faked: Faked) -> None:
    silent = replace(ETH0, silent_seconds=60.0, clock=False)
    heavy = QueryStatus("heavy", closed_until="100", holds=(Hold("flows", "100", 60.0),))
    flows = QueryStatus("flows", visible=False, holds=(Hold("eth0", None, None),))
    faked.server.publish(replace(STATUS, sources=(silent, ETH1), queries=(heavy, flows)))
    out = call("why", "heavy").out
    assert "heavy is closed until 100\n" in out
    assert "terascope why" not in out  # it is done already
    assert "flows has closed no window yet" in out
    assert out.splitlines()[-1].startswith("what to do: declare clock() on the time column")


def test_why_of_a_query_that_is_well_or_slow_or_not_there(faked: Faked) -> None:
    assert "nothing holds it back" in call("why", "scanners").out
    slow = QueryStatus("slow", closed_until="100", lag_seconds=90.0, open_slices=9, flushing=True)
    faked.server.publish(replace(STATUS, queries=(slow,)))
    assert "slow: 9 slices are complete and not written yet" in call("why", "slow").out
    called = call("why", "moon")
    assert called.code == 1
    assert "flows.gsql has no query 'moon'; it has: slow" in called.err


# ---- tail ----------------------------------------------------------------------------------------


def test_tail_shows_the_last_rows(faked: Faked) -> None:
    write_rows(faked.stream)
    called = call("tail", "talkers", "--rows", "3", "--no-follow")
    assert called.code == 0, called.err
    assert [line.rstrip() for line in called.out.splitlines()] == [
        "talkers, batch 1",
        "tb   srcIP      share",
        "─────────────────────",
        " 3   10.0.0.1    0.25",
        "1 row",
        "",
        "talkers, batch 2",
        "tb   srcIP      share",
        "─────────────────────",
        " 4   10.0.0.0    0.25",
        " 5   10.0.0.1    0.25",
        "2 rows",
        "",
    ]


def test_tail_as_csv_and_ndjson(faked: Faked) -> None:
    write_rows(faked.stream, batches=2)
    flags = ("--from-start", "--no-follow", "--format")
    assert call("tail", "talkers", *flags, "csv").out == (
        "tb,srcIP,share\n0,10.0.0.0,0.25\n1,10.0.0.1,0.25\n2,10.0.0.0,0.25\n3,10.0.0.1,0.25\n"
    )
    lines = call("tail", "talkers", *flags, "ndjson").out.splitlines()
    assert [json.loads(line) for line in lines][3] == {"tb": 3, "srcIP": "10.0.0.1", "share": 0.25}
    assert call("tail", "talkers", "--no-follow", "--rows", "0", "-f", "csv").out == ""


def test_tail_names_new_columns(faked: Faked) -> None:
    write_rows(faked.stream, batches=1, each=1)
    faked.stream.fields = (Field("n", Type.INT),)
    faked.stream.header()
    faked.stream.add(1, [(7,)])
    out = call("tail", "talkers", "--from-start", "--no-follow", "-f", "csv").out
    assert out == "tb,srcIP,share\n0,10.0.0.0,0.25\nn\n7\n"


def test_tail_of_a_run_that_is_over_ends_by_itself(faked: Faked, tmp_path: Path) -> None:
    write_rows(faked.stream, batches=1)
    over = replace(faked.run, born="0", pid=2**22 + 1, checkpoint=str(tmp_path / "old"))
    path = tmp_path / "old" / "terascope" / "run.json"
    path.parent.mkdir(parents=True)
    path.write_text(over.to_json())
    called = call("tail", "talkers", "--checkpoint", tmp_path / "old", "-f", "csv")
    assert called.out.splitlines()[1:] == ["0,10.0.0.0,0.25", "1,10.0.0.1,0.25"]


def test_tail_of_a_stream_that_is_not_there(faked: Faked) -> None:
    called = call("tail", "moon", "--no-follow")
    assert called.code == 1
    assert "flows.gsql has no stream 'moon'; it has: talkers" in called.err


# ---- set -----------------------------------------------------------------------------------------


def test_set_waits_until_the_run_has_taken_the_value(
    faked: Faked, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = replace(
        STATUS,
        run=replace(run_status(), parameter_edges={"threshold": "time 1700001300"}),
        parameters={"threshold": "250"},
    )
    requests: list[dict[str, str]] = []

    def obeyed(run: Run, name: str, value: str) -> None:
        """The request is written, and taken up as a run does before a batch."""
        send_request(run, name, value)
        requests.extend(json.loads(path.read_text()) for path in faked.control.iterdir())
        faked.server.publish(taken)

    monkeypatch.setattr(control_requests, "send_request", obeyed)
    called = call("set", "threshold=0250")
    assert called.code == 0, called.err
    assert called.out == "threshold is 0250 from time 1700001300 on\n"
    assert requests == [{"name": "threshold", "value": "0250"}]


def test_set_gives_up_with_a_message(faked: Faked) -> None:
    called = call("set", "threshold=250", "--timeout", "0")
    assert called.code == 1
    assert "has not taken threshold within 0 s; it is running" in called.err
    (order,) = faked.control.iterdir()
    assert json.loads(order.read_text()) == {"name": "threshold", "value": "250"}


@pytest.mark.parametrize(
    ("assignment", "code", "message"),
    [
        ("moon=1", 1, "flows.gsql has no parameter 'moon'; it has: threshold (UINT), victim (IP)"),
        ("threshold=many", 1, "'many' is not a value of type UINT, which threshold has"),
        ("victim=10.0.0", 1, "'10.0.0' is not a value of type IP, which victim has"),
        ("threshold", 2, "'threshold' is not NAME=VALUE"),
    ],
)
def test_set_checks_before_it_requests(
    faked: Faked, assignment: str, code: int, message: str
) -> None:
    called = call("set", assignment)
    assert called.code == code
    assert message in called.err
    assert not list(faked.control.iterdir())


def test_set_to_what_it_is_requests_nothing(faked: Faked) -> None:
    assert call("set", "threshold=100").out == "threshold is 100 already\n"
    assert not list(faked.control.iterdir())
