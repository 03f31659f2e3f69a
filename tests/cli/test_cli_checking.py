"""check, fmt, explain and generate, which need no Spark; usage and mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from terascope.cli.traffic import count_of
from tests.cli.calls import FLOWS, call, small_trace

COMMANDS = (
    *("check", "fmt", "explain", "stats", "run", "generate", "demo", "bench"),
    *("status", "why", "tail", "set"),
)


@pytest.fixture
def flows(tmp_path: Path) -> Path:
    path = tmp_path / "flows.gsql"
    path.write_text(FLOWS, encoding="utf-8")
    return path


# ---- help and usage ------------------------------------------------------------------------------


def test_help_names_every_command() -> None:
    called = call("--help")
    assert called.code == 0
    assert all(command in called.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command: str) -> None:
    called = call(command, "--help")
    assert called.code == 0
    assert "Examples" in called.out
    assert f"terascope {command}" in called.out


def test_version_is_said() -> None:
    assert call("--version").out.startswith("terascope ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("nonsense",),
        ("run", "FILE", "--nonsense"),
        ("run", "FILE", "--param", "threshold"),
        ("run", "FILE", "--source", "trace.pcap"),
        ("run", "FILE", "--source", "smoke:signals"),
        ("run", "FILE", "--source", "pcap:a/x.pcap", "--source", "pcap:b/x.pcap"),
        ("run", "FILE", "--set", "main"),
        ("run", "FILE", "--source", "a=pcap:x.pcap", "--set", "main=a,b"),
        ("run", "FILE", "--source", "a=csv:x.csv", "--source-option", "b.delimiter=;"),
        ("run", "FILE", "--source", "a=csv:x.csv", "--source-option", "delimiter=;"),
        ("run", "FILE", "--format", "parquet"),
        ("run", "FILE", "--format", "table", "--output", "out"),
        ("explain", "FILE", "--stage", "thoughts"),
        ("fmt", "FILE", "--write", "--check"),
        ("generate", "trace.txt"),
        ("generate", "trace.pcap", "--udp-share", "2"),
        ("generate", "trace.pcap", "--packets", "many"),
        ("generate", "trace.pcap", "--scenario", "earthquake"),
        ("generate", "trace.pcap", "--scenario", "syn_flood:colour=red"),
        ("generate", "trace.pcap", "--victim", "10.0.0.1"),
        ("demo", "--scenario", "earthquake"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...], flows: Path) -> None:
    called = call(*(str(flows) if a == "FILE" else a for a in arguments))
    assert called.code == 2, called
    assert called.out == ""
    assert "Error" in called.err


# ---- what is wrong with the input ends with 1 and one line ---------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "missing.gsql"), "error: no such query file: 'missing.gsql'"),
        (("fmt", "missing.gsql"), "error: no such query file: 'missing.gsql'"),
        (("check", "."), "error: '.' is a directory, not a query file"),
        (("run", "FLOWS"), "error: no source is bound; give one with --source"),
        (("run", "FLOWS", "--source", "pcap:no.pcap"), "no such file or directory: 'no.pcap'"),
        (("check", "FLOWS", "--source", "pcap:no*.pcap"), "no file matches 'no*.pcap'"),
        (("run", "FLOWS", "--config", "no.toml"), "no such configuration file: 'no.toml'"),
        (("run", "FLOWS", "--functions", "no.py"), "cannot read no.py: no such file"),
        (("generate", "no/such/trace.pcap"), "its directory does not exist"),
    ],
)
def test_a_missing_thing_is_one_line(
    arguments: tuple[str, ...], said: str, flows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(flows.parent)
    given = [str(flows) if a == "FLOWS" else a for a in arguments]
    if "FLOWS" in arguments:
        given += ["--param", "threshold=3"]
    called = call(*given)
    assert called.code == 1
    assert called.out == ""
    assert called.err.count("\n") == 1
    assert said in called.err


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("no/such/dir", "its parent directory does not exist"),
        ("flows.gsql", "it is a file, not a directory"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_spark_starts(
    output: str, said: str, flows: Path
) -> None:
    trace = small_trace(flows.parent / "trace.pcap", 50)
    called = call(
        "run", flows, "-p", "threshold=3", "-s", f"pcap:{trace}", "-o", flows.parent / output
    )
    assert called.code == 1
    assert said in called.err
    assert "Spark" not in called.err
    assert called.err.count("\n") == 1


def test_a_directory_without_rights_is_refused(flows: Path) -> None:
    output = flows.parent / "out"
    output.mkdir(mode=0o500)
    if os.access(output, os.W_OK):
        # Root may write anywhere, but not where the kernel takes no files.
        output = Path("/proc/self")
        if not output.is_dir():
            pytest.skip("running as root, and there is no directory root cannot write to")
    trace = small_trace(flows.parent / "trace.pcap", 50)
    called = call("run", flows, "-p", "threshold=3", "-s", f"pcap:{trace}", "-o", output)
    assert called.code == 1
    assert called.err.startswith(f"error: cannot write to '{output}': ")
    assert called.err.count("\n") == 1


def test_all_mistakes_of_a_query_are_told(tmp_path: Path) -> None:
    path = tmp_path / "wrong.gsql"
    path.write_text(
        "QUERY a: SELECT nothing FROM TCP;\n"
        "QUERY b: SELECT srcIP, count(*) FROM TCP GROUP BY srcIP;\n"
    )
    called = call("check", path)
    assert called.code == 1
    assert called.out == ""
    assert "error[unknown-column]" in called.err
    assert "error[unbounded-group-by]" in called.err
    assert f"{path}:2:" in called.err
    assert "2 mistakes in" in called.err


def test_an_unknown_interface_is_a_mistake_of_the_query(tmp_path: Path) -> None:
    trace = small_trace(tmp_path / "trace.pcap", 50)
    called = call("run", "-", "-s", f"eth0=pcap:{trace}", stdin="SELECT time FROM eth1.TCP;")
    assert called.code == 1
    assert "unknown-interface" in called.err
    assert "--source eth1=KIND:LOCATION" in called.err


# ---- check ---------------------------------------------------------------------------------------


def test_check_lists_queries_with_their_columns(flows: Path) -> None:
    called = call("check", flows, "--param", "threshold=3")
    assert called.code == 0
    assert called.err == ""
    assert called.out == (
        f"ok: 2 queries in {flows}\n"
        "  flows  tb UINT increasing, srcIP IP, destIP IP, packets ULLONG, bytes ULLONG\n"
        "  heavy  tb UINT increasing, srcIP IP, most ULLONG\n"
    )


def test_check_reads_stdin_and_warns() -> None:
    text = "DEFINE { query_name 'q'; colour 'red'; } SELECT time FROM TCP;"
    called = call("check", "-", stdin=text)
    assert called.code == 0
    assert called.out.startswith("ok: 1 query in stdin\n")
    assert "warning[unknown-hint]" in called.err


def test_checking_and_explaining_import_no_spark(flows: Path) -> None:
    program = (
        "import sys\nimport terascope\nfrom terascope.cli import app\n"
        "try:\n    app(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code\n"
        "assert 'pyspark' not in sys.modules, 'pyspark was imported'\n"
    )
    for command in (("check",), ("explain", "--stage", "job", "--format", "html")):
        arguments = [command[0], str(flows), "-p", "threshold=3", *command[1:]]
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[2],
        )
        assert done.returncode == 0, done.stderr


# ---- fmt -----------------------------------------------------------------------------------------

UGLY = "select time,srcIP from TCP -- all of them\n where destPort=80"
PRETTY = "SELECT time, srcIP\nFROM TCP  -- all of them\nWHERE destPort = 80;\n"


def test_fmt_prints_canonical_text() -> None:
    assert call("fmt", "-", stdin=UGLY).out == PRETTY


def test_fmt_writes_in_place_and_checks(tmp_path: Path) -> None:
    path = tmp_path / "q.gsql"
    path.write_text(UGLY)
    assert call("fmt", "--check", path).code == 1
    assert path.read_text() == UGLY
    assert call("fmt", "--write", path).code == 0
    assert path.read_text() == PRETTY
    assert call("fmt", "--check", path).code == 0
    assert [p.name for p in tmp_path.iterdir()] == ["q.gsql"]


def test_fmt_leaves_a_file_with_mistakes_alone(tmp_path: Path) -> None:
    wrong, right = tmp_path / "wrong.gsql", tmp_path / "right.gsql"
    wrong.write_text("SELECT FROM;")
    right.write_text(UGLY)
    called = call("fmt", "--write", wrong, right)
    assert called.code == 1
    assert "error[syntax]" in called.err
    assert wrong.read_text() == "SELECT FROM;"
    assert right.read_text() == PRETTY


# ---- explain -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["ast", "plan", "optimized", "split", "job"])
@pytest.mark.parametrize("format", ["text", "json", "dot", "html"])
def test_explain_has_every_stage_in_every_format(stage: str, format: str, flows: Path) -> None:
    called = call("explain", flows, "-p", "threshold=3", "--stage", stage, "--format", format)
    assert called.code == 0, called.err
    assert "heavy" in called.out
    if format == "json":
        assert json.loads(called.out)["stage"] == stage


def test_explain_says_what_each_rule_did(flows: Path) -> None:
    called = call("explain", flows, "-p", "threshold=3", "--verbose")
    assert "prune_columns: flows" in called.out
    assert "+     Scan TCP [time, srcIP, destIP, len]" in called.out


# ---- settings ------------------------------------------------------------------------------------


def test_a_flag_wins_over_the_configuration_file(flows: Path) -> None:
    trace = small_trace(flows.parent / "trace.pcap", 50)
    config = flows.parent / "terascope.toml"
    config.write_text(
        f'[sources]\neth0 = "pcap:{trace}"\neth1 = "pcap:no.pcap"\n[params]\nthreshold = "5"\n'
    )
    arguments: list[str | Path] = ["explain", flows, "--stage", "job", "--config", config]
    assert "no such file or directory: 'no.pcap'" in call(*arguments).err
    called = call(*arguments, "-s", f"eth1=pcap:{trace}", "-p", "threshold=7")
    assert called.code == 0, called.err
    assert "$threshold INT = 7" in called.out
    assert "eth0        pcap:" in called.out


# ---- generate ------------------------------------------------------------------------------------


def test_generate_writes_what_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "trace.pcap"
    called = call(
        "generate", path, "--packets", "0.5k", "--rate", "100",
        "--scenario", "syn-flood:victim=10.9.9.9,start=1",
    )  # fmt: skip
    assert called.code == 0, called.err
    assert "500 packets" in called.out
    assert "packets/s" in called.out
    assert "syn_flood: 10.9.9.9, 2023-11-14 22:13:21 to" in called.out
    assert path.stat().st_size > 500 * 40


def test_generate_takes_the_format_from_the_name(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    assert call("generate", path, "--packets", "200", "--links", "2").code == 0
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["trace-0.parquet", "trace-1.parquet"]
    assert sum(pq.read_metadata(tmp_path / n).num_rows for n in names) == 200


@pytest.mark.parametrize(("text", "count"), [("10", 10), ("1_000", 1000), ("2.5M", 2_500_000)])
def test_counts_may_have_a_suffix(text: str, count: int) -> None:
    assert count_of(text) == count


# ---- laws of functions ---------------------------------------------------------------------------

AGGREGATES = '''
from terascope import udaf

@udaf(takes=("INT",), returns="INT")
class largest:
    """The largest value."""
    def initialize(self): return None
    def iterate(self, state, values): return max([*values.to_pylist(), *([state] if state is not None else [])])
    def merge(self, state, other): return MERGED
    def output(self, state): return state
'''  # noqa: E501
RIGHT = "max((s for s in (state, other) if s is not None), default=None)"


def test_check_tries_the_laws_of_functions(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(AGGREGATES.replace("MERGED", RIGHT))
    called = call("check", "--functions", str(file))
    assert called.code == 0
    assert [line.split()[-1] for line in called.out.splitlines()] == ["ok"] * 5
    file.write_text(AGGREGATES.replace("MERGED", "state"))
    called = call("check", "--functions", str(file))
    assert called.code == 1
    assert "largest  any split, any order       failed  (INT): the whole of" in called.out


def test_check_needs_a_query_set_or_functions() -> None:
    called = call("check")
    assert called.code == 2
    assert "give a query set" in called.err
