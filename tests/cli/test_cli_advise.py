"""`terascope advise`: text, JSON, pictures, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calls import call, small_trace
from tests.partitioning.query_sets import FLOW_PAIRS, SUBNETS_AND_DELAYS

DATA = Path(__file__).parent / "advice"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("advise")
    small_trace(folder / "t.pcap")
    (folder / "pairs.gsql").write_text(FLOW_PAIRS)
    (folder / "delays.gsql").write_text(SUBNETS_AND_DELAYS)
    return folder


def document(files: Path, *flags: str, name: str = "pairs") -> dict[str, Any]:
    source = f"eth0=pcap:{files / 't.pcap'}"
    called = call("advise", files / f"{name}.gsql", "--source", source, "--json", *flags)
    assert called.code == 0, called.err
    found = json.loads(called.out)
    assert isinstance(found, dict)
    return found


def test_json(files: Path) -> None:
    found = document(files, "--existing", "destIP", "--into", "4")
    assert list(found) == ["recommended", "candidates", "queries"]
    assert found["recommended"] == [
        {"source": "eth0", "set": ["srcIP"], "cost": found["candidates"][0]["cost"]}
    ]
    assert found["candidates"][0]["recommended"] is True
    assert found["candidates"][-1]["existing"] is True
    assert found["candidates"][-1]["sets"] == {"eth0": ["destIP"]}
    assert set(found["candidates"][0]) == {
        "sets", "cost", "total", "finished", "values", "skew", "recommended", "existing",
    }  # fmt: skip
    assert list(found["queries"]) == ["flows", "heavy_flows", "flow_pairs"]
    heavy = found["queries"]["heavy_flows"]
    assert heavy["in_partitions"] is True
    assert heavy["reason"] is None
    last = heavy["candidates"][-1]
    assert last["in_partitions"] is False
    assert last["reason"] == "its keys do not determine destIP"
    assert last["cost"] > heavy["cost"]


def test_flags(files: Path) -> None:
    masked = document(files, "--splitter", "masks", name="delays")
    assert masked["recommended"][0]["set"] == ["srcIP & 0xFFFFFFF0", "destIP"]
    listed = document(files, "--splitter", "destPort, destIP", name="delays")
    assert listed["recommended"][0]["set"] == ["destIP"]
    rotated = document(files, "--rotate", "10 min", name="delays")
    assert "time DIV 600" in rotated["recommended"][0]["set"]
    weighted = document(files, "--weight", "flows=100", "--weight", "flow_pairs=0")
    assert weighted["candidates"][0]["cost"] > document(files)["candidates"][0]["cost"]


@pytest.mark.parametrize("name", ["pairs", "delays"])
def test_text_without_a_source(files: Path, name: str, request: pytest.FixtureRequest) -> None:
    """Rates are declared, so that the whole text is known."""
    called = call("advise", files / f"{name}.gsql", "--existing", "destIP")
    assert called.code == 0
    text = "\n".join(line.rstrip() for line in called.out.splitlines()) + "\n"
    golden = DATA / f"{name}.txt"
    if request.config.getoption("--bless"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_text_of_a_sample(files: Path) -> None:
    source = f"eth0=pcap:{files / 't.pcap'}"
    called = call("advise", files / "pairs.gsql", "--source", source, "--into", "4")
    assert called.code == 0
    assert "eth0  partition by srcIP into 4" in called.out
    assert "measured on " in called.out
    assert f"terascope split {source} --by 'srcIP' --into 4 eth0.parts" in called.out
    assert "hash over: srcIP all bits" in called.out


@pytest.mark.parametrize("ending", ["svg", "html", "dot"])
def test_pictures(files: Path, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"plan.{ending}"
    called = call("advise", files / "pairs.gsql", "--splitter", "srcIP, destIP", "--picture", path)
    assert called.code == 0
    text = path.read_text(encoding="utf-8")
    assert "in partitions" in text or ending == "dot"
    assert "flow_pairs" in text
    if ending == "svg":
        assert "var(--" not in text.split("</style>")[0].split(".ts-pic text")[1]


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (("--picture", "plan.jpg"), 2, "does not end with .svg, .html, .dot"),
        (("--weight", "flows"), 2, "is not QUERY=NUMBER"),
        (("--weight", "flows=-1"), 2, "is no frequency"),
        (("--weight", "flows=often"), 2, "could not convert"),
        (("--rotate", "soon"), 2, "no duration"),
        (("--into", "0"), 2, "--into"),
        (("--existing", "a=b", "--existing", "c=d"), 2, "names no source"),
        (("--existing", "nothing"), 1, "no column 'nothing'"),
        (("--splitter", "len"), 1, "no partitioning that the splitter can do (len)"),
        (("--weight", "nobody=1"), 1, "which is no query of the set"),
        (("--rotate", "10 min"), 1, "'flow_pairs' cannot be computed from partitions that rotate"),
        (("--layout", "out"), 1, "'TCP' is not bound"),
    ],
)
def test_mistakes(files: Path, flags: tuple[str, ...], code: int, said: str) -> None:
    text = FLOW_PAIRS.replace("COUNT(*) AS cnt", "COUNT(*) AS cnt, MAX(len) AS longest")
    (files / "len.gsql").write_text(text)
    called = call("advise", files / "len.gsql", *flags)
    assert called.code == code
    assert said in " ".join((called.err + called.out).split())
