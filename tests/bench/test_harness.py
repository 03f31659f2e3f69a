from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from bench.experiment import BenchError, Settings
from bench.harness import Report, Rules, made_once, run_experiment
from bench.memory import MemoryWatch, Process
from bench.picture import write_picture
from bench.report import as_json, show, write_csv
from tests.bench.tiny import SameCount, Tiny, TinyExperiment

pytestmark = pytest.mark.bench


def run(tmp_path: Path, experiment: TinyExperiment, **rules: object) -> tuple[Report, list[str]]:
    told: list[str] = []
    settings = Settings(scale=0.5, cores=1, data=tmp_path)
    report = run_experiment(
        experiment,
        settings,
        Rules(**rules),  # type: ignore[arg-type]
        tmp_path / "work",
        told.append,
    )
    return report, told


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    return tmp_path / "diary.txt"


def entries(diary: Path) -> list[tuple[str, str]]:
    lines = [line.split() for line in diary.read_text(encoding="utf-8").splitlines()]
    return [(name, what) for name, what, _ in lines]


def processes(diary: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in diary.read_text(encoding="utf-8").splitlines():
        name, _, process = line.split()
        found.setdefault(name, set()).add(process)
    return found


def test_contenders_take_turns_in_processes_of_their_own(tmp_path: Path, diary: Path) -> None:
    check = SameCount()
    experiment = TinyExperiment((Tiny("a", diary), Tiny("b", diary, rows=(1, 2))), check)
    report, _ = run(tmp_path, experiment, runs=2)
    runs = [(name, what) for name, what in entries(diary) if what != "close"]
    assert runs == [("a", "warm"), ("b", "warm"), *[("a", "run"), ("b", "run")] * 3]
    assert sorted(entries(diary))[0] == ("a", "close")
    assert [len(ids) for ids in processes(diary).values()] == [1, 1]
    assert processes(diary)["a"] != processes(diary)["b"]
    right, wrong = report.outcomes
    assert len(right.seconds) == len(right.figures) == 2, "the warm run does not count"
    assert right.rows == 3
    assert right.checked
    assert wrong.rows == 2
    assert not wrong.checked
    assert check.looked == ["a", "b"], "results are looked at once"
    assert right.figure("cores") == 1
    assert report.absent == {"abacus": "has no plug"}
    assert not (tmp_path / "work" / "tiny").exists(), "what contenders wrote is removed"


def test_a_sweep_finishes_one_contender_before_the_next(tmp_path: Path, diary: Path) -> None:
    experiment = TinyExperiment((Tiny("a", diary), Tiny("b", diary)), alternating=False)
    run(tmp_path, experiment, runs=1)
    assert entries(diary)[:4] == [("a", "warm"), ("a", "run"), ("a", "run"), ("a", "close")]
    assert entries(diary)[4:] == [("b", "warm"), ("b", "run"), ("b", "run"), ("b", "close")]


def test_patience(tmp_path: Path, diary: Path) -> None:
    """A contender that is slower than the patience is run once, and that run counts."""
    report, told = run(tmp_path, TinyExperiment((Tiny("a", diary),)), runs=5, patience=0.0)
    assert len(report.outcomes[0].seconds) == 1
    assert report.outcomes[0].checked
    assert any("counted at once" in line for line in told)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"fails": True}, "failed: ValueError: no luck today"),
        ({"dies": True}, "failed: its process ended with code 3"),
    ],
)
def test_one_failure_does_not_stop_the_others(
    tmp_path: Path, diary: Path, bad: dict[str, bool], why: str
) -> None:
    experiment = TinyExperiment((Tiny("a", diary, **bad), Tiny("b", diary)))  # type: ignore[arg-type]
    report, _ = run(tmp_path, experiment, runs=1)
    failed, fine = report.outcomes
    assert failed.remark.startswith(why)
    assert failed.seconds == []
    assert not failed.checked
    assert fine.checked


def test_memory_of_the_process_is_seen(tmp_path: Path, diary: Path) -> None:
    experiment = TinyExperiment((Tiny("a", diary), Tiny("b", diary, hoards_mb=300)))
    report, _ = run(tmp_path, experiment, runs=2)
    small, large = (outcome.peak_mb for outcome in report.outcomes)
    if small is None or large is None:
        pytest.skip("memory is measured through /proc, which is not here")
    assert 250 < large - small < 350


def test_only_some_contenders(tmp_path: Path, diary: Path) -> None:
    experiment = TinyExperiment(
        (Tiny("a", diary), Tiny("b", diary), Tiny("c", diary, needs=("no-such-package",)))
    )
    report, _ = run(tmp_path, experiment, runs=1, only=("b",))
    assert [outcome.contender for outcome in report.outcomes] == ["b"]
    assert report.absent == {}
    report, _ = run(tmp_path, experiment, runs=1, only=("a", "c", "abacus"))
    assert report.absent == {"abacus": "has no plug", "c": "not installed: no-such-package"}
    with pytest.raises(BenchError, match="no contender 'x'; there are a, b, c, abacus"):
        run(tmp_path, experiment, only=("x",))
    with pytest.raises(BenchError, match="no contender can take part"):
        run(tmp_path, experiment, only=("c",))


def test_reports(tmp_path: Path, diary: Path) -> None:
    experiment = TinyExperiment((Tiny("terascope", diary), Tiny("b", diary, fails=True)))
    report, _ = run(tmp_path, experiment, runs=2)

    measured = json.loads(as_json(report.outcomes))
    assert [sorted(each) for each in measured] == [
        ["checked", "contender", "peak_mb", "rows", "seconds"]
    ] * 2
    assert "\n" not in as_json(report.outcomes)
    assert measured[0]["contender"] == "terascope"
    assert len(measured[0]["seconds"]) == 2
    assert measured[0]["rows"] == 3
    assert measured[0]["checked"]
    assert measured[1]["seconds"] == []
    assert measured[1]["rows"] is None

    write_csv(report, tmp_path / "tiny.csv")
    lines = (tmp_path / "tiny.csv").read_text(encoding="utf-8").splitlines()
    head = [line for line in lines if line.startswith("# ")]
    assert any("cores" in line for line in head)
    assert any("pyspark" in line for line in head)
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert [(r["contender"], r["run"]) for r in rows] == [
        ("terascope", "1"), ("terascope", "2"), ("b", ""), ("abacus", ""),
    ]  # fmt: skip
    assert float(rows[0]["seconds"]) > 0
    assert rows[3]["remark"] == "left out: has no plug"
    assert rows[2]["remark"] == "failed: ValueError: no luck today"

    write_picture(report, tmp_path / "tiny.png")
    assert (tmp_path / "tiny.png").read_bytes().startswith(b"\x89PNG")

    shown = io.StringIO()
    show(report, Console(width=200, file=shown))
    text = shown.getvalue()
    assert "three numbers" in text
    assert "has no plug" in text
    assert "scale 0.5" in text


def test_data_are_made_once_and_never_half(tmp_path: Path) -> None:
    made: list[Path] = []

    def make(path: Path) -> None:
        made.append(path)
        path.write_text("x", encoding="utf-8")
        if len(made) == 1:
            raise OSError("disk full")

    target = tmp_path / "deep" / "file"
    with pytest.raises(OSError, match="disk full"):
        made_once(target, make)
    assert not target.exists()
    assert made_once(target, make) == made_once(target, make) == target
    assert len(made) == 2


def test_workers_are_the_processes_below_that_are_no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = {1: (0, "init"), 5: (1, "python3"), 6: (5, "java"), 7: (6, "python (x) 3"), 8: (7, "sh")}
    sizes = {1: 1.0, 5: 900.0, 6: 800.0, 7: 70.0, 8: 6.0, 9: 800.0}
    tree[9] = (6, "pool thread")  # a copy of the JVM that has not become a command yet
    files = {5: "python", 6: "java", 7: "python", 8: "sh", 9: "java"}
    everybody = [Process(pid, parent, name) for pid, (parent, name) in tree.items()]
    monkeypatch.setattr("bench.memory.executable", files.get)
    monkeypatch.setattr("bench.memory.processes", lambda: everybody)
    monkeypatch.setattr("bench.memory.own_megabytes", sizes.get)
    with MemoryWatch(5) as watch:
        sizes[7] = 75.0
    assert watch.peak_mb == 900 + 800 + 75 + 6
    assert watch.worker_mb == 75
