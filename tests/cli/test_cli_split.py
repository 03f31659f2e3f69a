from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calls import FLOWS, call, small_trace

WITHOUT_SPARK = ("--engine", "local")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_trace(tmp_path_factory.mktemp("trace") / "t.pcap")


def test_a_split_says_what_it_did(trace: Path, tmp_path: Path) -> None:
    done = call(
        "split", f"eth0=pcap:{trace}", "--by", "srcIP & 0xFFFFFFF0, destIP", "--into", "3",
        "--hosts", "a,b,c", tmp_path / "p",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "3 partitions by srcIP & 0xFFFFFFF0, destIP" in done.out
    told = json.loads((tmp_path / "p/partitions.json").read_text())
    assert [one["host"] for one in told["partitions"]] == ["a", "b", "c"]
    assert sum(one["tuples"] for one in told["partitions"]) > 1000


def test_queries_over_partitions(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "q.gsql").write_text(FLOWS)
    assert call("split", f"pcap:{trace}", "--by", "srcIP", "--into", "4", tmp_path / "p").code == 0
    words = ("--param", "threshold=1", "--format", "csv", *WITHOUT_SPARK)
    whole = call("run", tmp_path / "q.gsql", "--source", f"eth0=pcap:{trace}", *words)
    parts = call("run", tmp_path / "q.gsql", "--source", f"eth0=pcap:{tmp_path / 'p'}", *words)
    assert whole.code == 0, whole.err
    assert parts.code == 0, parts.err
    assert sorted(parts.out.splitlines()) == sorted(whole.out.splitlines())


def test_in_turn_and_auto(trace: Path, tmp_path: Path) -> None:
    by_turn = call("split", f"pcap:{trace}", "--by", "round-robin", "--into", "2", tmp_path / "r")
    assert by_turn.code == 0, by_turn.err
    assert json.loads((tmp_path / "r/partitions.json").read_text())["by"] == ""
    (tmp_path / "q.gsql").write_text(FLOWS)
    found = call(
        "split", f"eth0=pcap:{trace}", "--by", "auto", "--queries", tmp_path / "q.gsql",
        "--into", "2", "--param", "threshold=1", tmp_path / "a",
    )  # fmt: skip
    assert found.code == 0, found.err
    assert "srcIP" in json.loads((tmp_path / "a/partitions.json").read_text())["by"]


def test_follow_until_idle(trace: Path, tmp_path: Path) -> None:
    words = ("split", f"pcap:{trace}", "--by", "srcIP", "--into", "2", "--follow", "--until-idle")
    for _ in range(2):  # the second one has nothing to do
        done = call(*words, tmp_path / "p")
        assert done.code == 0, done.err
        told = json.loads((tmp_path / "p/partitions.json").read_text())
        assert sum(one["tuples"] for one in told["partitions"]) > 1000


@pytest.mark.parametrize(
    ("by", "mistake"),
    [
        ("srcIP +", "expected an expression after '+', found the end of the set"),
        ("nothing", "no column 'nothing'"),
        ("interface", "no value of the tuple itself"),
        ("1 + 1", "the same for all tuples"),
        ("", "an expression at least"),
    ],
)
def test_a_set_that_is_wrong(trace: Path, tmp_path: Path, by: str, mistake: str) -> None:
    done = call("split", f"pcap:{trace}", "--by", by, "--into", "2", tmp_path / "p")
    assert done.code == 1
    assert mistake in done.err
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("flags", "mistake"),
    [
        (("--into", "0"), "at least one partition"),
        (("--queries", "q.gsql"), "only --by auto"),
        (("--until-idle",), "without --follow"),
        (("--edge", "60 s"), "only with --rebalance"),
        (("--follow", "--rebalance"), "give one"),
        (("--rebalance", "--edge", "half"), "no duration"),
        (("--source-option", "delimiter"), "is not KEY=VALUE"),
    ],
)
def test_flags_that_make_no_sense(
    trace: Path, tmp_path: Path, flags: tuple[str, ...], mistake: str
) -> None:
    into = () if "--into" in flags else ("--into", "2")
    done = call("split", f"pcap:{trace}", "--by", "srcIP", *into, *flags, tmp_path / "p")
    assert done.code == 2
    assert mistake in " ".join(done.err.replace("│", " ").split())


def test_what_is_told_of_odd_sources(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("k,v\n1,2\n3\n")
    done = call("split", f"csv:{tmp_path / 'log.csv'}", "--by", "k", "--into", "2", tmp_path / "p")
    assert done.code == 0, done.err
    assert "in no partition: 1 x wrong number of fields" in done.err
    again = call("split", f"csv:{tmp_path / 'log.csv'}", "--by", "k", "--into", "2", tmp_path / "p")
    assert again.code == 1
    assert "is not empty" in again.err
    (tmp_path / "none.csv").write_text("k,v\n")
    none = call("split", f"csv:{tmp_path / 'none.csv'}", "--by", "k", "--into", "2", tmp_path / "n")
    assert none.code == 0, none.err
    assert "has no tuples" in none.err


def test_partitions_are_not_split_again(trace: Path, tmp_path: Path) -> None:
    done = call("split", f"pcap:{trace}", "--by", "srcIP", "--into", "2", tmp_path / "p")
    assert done.code == 0, done.err
    again = call("split", f"pcap:{tmp_path / 'p'}", "--by", "len", "--into", "2", tmp_path / "q")
    assert again.code == 2
    assert "has partitions already, split by srcIP: split its source again" in " ".join(
        again.err.replace("│", " ").split()
    )
