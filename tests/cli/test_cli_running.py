"""`terascope run`, end to end over small files, by the engine that `auto` takes for them; one test
asks Spark for the same.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.cli.calls import FLOWS, Called, call, small_trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOTALS = """\
QUERY totals: SELECT count(*) AS packets, sum(len) AS bytes FROM PKT GROUP BY time/1000000;
QUERY syns: SELECT destIP, count(*) AS cnt FROM TCP WHERE flags = 2
GROUP BY time/1000000, destIP HAVING count(*) > 50;
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_trace(tmp_path_factory.mktemp("traces") / "trace.pcap")


def run(text: str, *arguments: str | Path) -> Called:
    return call("run", "-", *arguments, stdin=text)


def test_tables_on_stdout_everything_else_on_stderr(trace: Path) -> None:
    called = run(FLOWS, "-p", "threshold=3", "-s", f"eth0=pcap:{trace}", "--rows", "2")
    assert called.code == 0, called.err
    lines = [line.rstrip() for line in called.out.splitlines()]
    assert lines[0] == "flows"
    assert lines[1].split() == ["tb", "srcIP", "destIP", "packets", "bytes"]
    assert lines[5].startswith("... ")
    assert lines[5].endswith(" rows")
    assert lines[7] == "heavy"
    *_, last = called.err.splitlines()
    assert last.startswith("2 queries over eth0: 1,500 tuples, ")
    assert ", 0 malformed, " in last
    # Another test of this process may have started Spark, which then needs less.
    assert " s (engine local: about 0.1 s of work, Spark would need " in last


@pytest.mark.spark
def test_spark_gives_the_same(spark: SparkSession, trace: Path, tmp_path: Path) -> None:
    """A command finds the session that is running and uses it."""
    del spark
    flags = ("-p", "threshold=3", "-s", f"eth0=pcap:{trace}")
    for form in ("table", "csv", "json", "ndjson"):
        local = run(FLOWS, *flags, "--format", form, "--engine", "local")
        called = run(FLOWS, *flags, "--format", form, "--engine", "spark")
        assert (called.code, called.out) == (0, local.out)
    first, *_, last = called.err.splitlines()
    assert first == "starting Spark"
    assert last.endswith("(engine spark: set by --engine spark)")
    for engine in ("local", "spark"):
        run(FLOWS, *flags, "-o", tmp_path / engine, "--engine", engine)
    for path in sorted((tmp_path / "local").iterdir()):
        assert path.read_bytes() == (tmp_path / "spark" / path.name).read_bytes()


def test_a_stream_is_not_for_the_local_engine(trace: Path) -> None:
    called = run(FLOWS, "-s", f"eth0=pcap:{trace}", "--stream", "--engine", "local")
    assert called.code == 2
    assert "a stream runs in Spark" in called.err


def test_quiet_says_nothing(trace: Path) -> None:
    called = run(TOTALS, "-s", f"pcap:{trace}", "--quiet", "--format", "csv")
    assert called.code == 0
    assert called.err == ""


def test_text_formats_on_stdout_agree(trace: Path) -> None:
    source = ("-s", f"pcap:{trace}", "-q", "--format")
    told = json.loads(run(TOTALS, *source, "json").out)
    assert list(told) == ["totals", "syns"]
    assert told["totals"][0]["packets"] == 1500
    assert [row["destIP"] for row in told["syns"]] == ["10.9.9.9"]
    lines = [json.loads(line) for line in run(TOTALS, *source, "ndjson").out.splitlines()]
    assert lines == [{"query": name, **row} for name, rows in told.items() for row in rows]
    blocks = run(TOTALS, *source, "csv").out.split("\n\n")
    assert [block.split("\n")[0] for block in blocks] == ["# query totals", "# query syns"]
    only = run(TOTALS.splitlines()[0], *source, "csv").out
    assert list(csv.DictReader(io.StringIO(only))) == [
        {name: str(value) for name, value in told["totals"][0].items()}
    ]


def test_output_files_have_manifests(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    called = run(TOTALS, "-s", f"eth0=pcap:{trace}", "-o", out)
    assert called.code == 0, called.err
    assert called.out == ""
    assert f"{out / 'totals.csv'}: 1 row\n" in called.err
    assert (out / "totals.csv").read_text().startswith("packets,bytes\n1500,")
    manifest = json.loads((out / "syns.manifest.json").read_text())
    assert manifest["rows"] == 1
    assert manifest["malformed"] == {}
    called = run(TOTALS, "-s", f"eth0=pcap:{trace}", "-o", out, "--format", "parquet", "-q")
    assert (called.code, called.out, called.err) == (0, "", "")
    assert pq.read_table(out / "syns.parquet").column("destIP").to_pylist() == ["10.9.9.9"]


@pytest.mark.parametrize("damage", ["truncated", "garbage"])
def test_bad_captures_are_counted_and_the_good_packets_used(
    damage: str, trace: Path, tmp_path: Path
) -> None:
    whole = trace.read_bytes()
    bytes_of = {
        "truncated": whole[:-20],
        "garbage": whole[:24] + bytes(range(256)) * 40,
    }
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(bytes_of[damage])
    sources = ("-s", f"bad=pcap:{bad}", "-s", f"good=pcap:{trace}")
    called = run(TOTALS, *sources, "--format", "json")
    assert called.code == 0, called.err
    good = 1499 if damage == "truncated" else 0
    assert json.loads(called.out)["totals"][0]["packets"] == 1500 + good
    assert "\nmalformed: " in called.err
    out = tmp_path / "out"
    strict = run(TOTALS, *sources, "--strict", "-o", out)
    assert strict.code == 1
    assert strict.err.splitlines()[-1].startswith("error: malformed input: ")
    assert not out.exists()


NO_CAPTURES = {
    "text": (b"this is no capture\n" * 10, "not a capture file"),
    "nothing": (b"", "empty file"),
}


@pytest.mark.parametrize(("content", "why"), NO_CAPTURES.values(), ids=NO_CAPTURES)
@pytest.mark.parametrize("flags", [(), ("--stream", "--speed", "max")], ids=["batch", "replay"])
def test_a_named_file_that_is_no_capture_is_an_error_before_anything_starts(
    content: bytes, why: str, flags: tuple[str, ...], trace: Path, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.pcap"
    wrong.write_bytes(content)
    called = run(TOTALS, "-s", f"bad=pcap:{wrong}", "-s", f"good=pcap:{trace}", *flags)
    assert (called.code, called.out) == (1, "")
    assert called.err.splitlines()[-1].startswith(f"error: '{wrong}' cannot be used: {why}")
    assert "Spark" not in called.err


@pytest.mark.parametrize("flags", [(), ("--stream", "--speed", "max")], ids=["batch", "replay"])
def test_files_of_a_folder_that_are_no_captures_are_counted_and_named(
    flags: tuple[str, ...], trace: Path, tmp_path: Path
) -> None:
    for name, (content, _) in NO_CAPTURES.items():
        (tmp_path / f"{name}.pcap").write_bytes(content)
    (tmp_path / "right.pcap").write_bytes(trace.read_bytes())
    called = run(TOTALS, "-s", f"pcap:{tmp_path}", *flags, "--format", "ndjson")
    assert called.code == 0, called.err
    rows = [json.loads(line) for line in called.out.splitlines()]
    assert sum(row["packets"] for row in rows if row["query"] == "totals") == 1500
    for name, (_, why) in NO_CAPTURES.items():
        assert f"{name}.pcap': {why}" in called.err


def test_files_of_a_folder_that_are_no_captures_stop_a_strict_run(tmp_path: Path) -> None:
    (tmp_path / "wrong.pcap").write_text("this is no capture\n" * 10)
    assert run(TOTALS, "-s", f"pcap:{tmp_path}", "--strict").code == 1


def test_tables_of_text_are_read_with_their_options(tmp_path: Path) -> None:
    log = tmp_path / "log.csv.gz"
    rows = "at;host;size\n1;a;10\n2;b;x\n61;a;30\n"
    log.write_bytes(gzip.compress(rows.encode()))
    text = """
        PROTOCOL log (at UINT increasing clock(s), host STRING, size UINT);
        QUERY q: SELECT tb, count(*) AS cnt, sum(size) AS total FROM log.log GROUP BY at/60 AS tb;
    """
    source = ("-s", f"log=csv:{log}", "--source-option", "log.delimiter=;")
    called = run(text, *source, "--format", "ndjson")
    assert called.code == 0, called.err
    assert [json.loads(line) for line in called.out.splitlines()] == [
        {"query": "q", "tb": 0, "cnt": 1, "total": 10},
        {"query": "q", "tb": 1, "cnt": 1, "total": 30},
    ]
    assert "\nmalformed: 1 " in called.err


def test_several_interfaces_make_a_set(trace: Path) -> None:
    text = "SELECT interface, count(*) AS cnt FROM [both].PKT GROUP BY time/1000000, interface;"
    sources = ("-s", f"a=pcap:{trace}", "-s", f"b=pcap:{trace}", "--set", "both=a,b")
    called = run(text, *sources, "--format", "csv", "-q")
    assert called.out == "interface,cnt\na,1500\nb,1500\n"


def test_functions_come_from_a_file(trace: Path, tmp_path: Path) -> None:
    functions = tmp_path / "mine.py"
    functions.write_text(
        "from terascope import scalar\n\n\n"
        "@scalar(takes=('UINT',), returns='UINT')\ndef halved(x):\n    return x // 2\n\n\n"
        "@scalar(takes=('UINT',), returns='UINT')\ndef broken(x):\n    return 1 // 0\n"
    )
    source = ("-s", f"pcap:{trace}", "--functions", functions, "-q", "--format", "csv")
    text = "SELECT max(len) AS a, max(halved(len)) AS b FROM PKT GROUP BY time/1000000"
    most, half = run(text, *source).out.splitlines()[1].split(",")
    assert int(half) == int(most) // 2
    called = run("SELECT time, broken(len) AS x FROM PKT", *source)
    assert called.code == 1
    assert called.out == ""
    assert (
        called.err
        == "error: function broken: ZeroDivisionError: integer division or modulo by zero\n"
    )


def test_a_value_without_an_answer_is_one_line(trace: Path, tmp_path: Path) -> None:
    text = "QUERY x: SELECT time, len * 9223372036854775807 AS y FROM PKT"
    out = tmp_path / "out"
    for target in (("--format", "csv"), ("-o", str(out))):
        called = run(text, "-s", f"pcap:{trace}", "-q", *target)
        assert called.code == 1
        assert called.out == ""
        assert called.err.startswith("error: integer overflow")
        assert called.err.count("\n") == 1
    assert not out.exists()
