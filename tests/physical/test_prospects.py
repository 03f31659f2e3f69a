"""A source is sampled only where what could be saved pays for the sample."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.explain import explain
from terascope.physical.settings import APART
from terascope.physical.statistics import measured, sampling
from terascope.physical.statistics.prospects import prospect_of
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate
from tests.settings import Changes, config_with

OFF: Changes = {**APART, "share_windows": "unshared"}
SAMPLED: Changes = {"share_sample": "always"}
KEYS = ["srcIP, destIP, srcPort, destPort", "srcIP, destIP", "srcIP, destPort", "srcIP"]
TREE = "\n".join(
    f"QUERY q{i}: SELECT tb, {k}, COUNT(*) AS n FROM TCP GROUP BY time/60 AS tb, {k};"
    for i, k in enumerate(KEYS)
)
EPOCHS = "".join(
    f"QUERY e{n}: SELECT tb, destIP, SUM(len) AS n FROM TCP GROUP BY time/{n} AS tb, destIP;"
    for n in (10, 20, 60)
)
SLIDING = "".join(
    f"QUERY w{n}: SELECT srcIP, COUNT(*) AS n FROM TCP [RANGE {n} SLIDE 15] GROUP BY srcIP;"
    for n in (30, 45, 60)
)
PACKETS = 20_000


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prospects") / "trace.pcap"
    generate(Profile(packets=PACKETS, seed=3), path)
    return path


def bound(text: str, capture: Path, sharing: Changes | None = None) -> Compiled:
    low = config_with(**sharing or {})
    bindings = Bindings({"eth0": Interface("eth0", "pcap", str(capture))}, config=low)
    return compile_set(Source(text, "set.gsql"), bindings)


def nothing_is_read(*_: object) -> sampling.SampledTuples:
    raise AssertionError("a sample was read")


def test_a_small_source_is_not_sampled_and_explain_says_so(
    capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "read_some", nothing_is_read)
    compiled = bound(TREE + EPOCHS, capture)
    job, off = compiled.job(), bound(TREE + EPOCHS, capture, OFF).job()
    assert replace(job, prospect=None) == off
    assert "not sampled: sharing would hardly save more than 0.1 s" in explain(compiled, "job")
    with pytest.raises(AssertionError, match="a sample was read"):
        bound(TREE, capture, SAMPLED).job()


def test_one_aggregation_has_nothing_to_decide(capture: Path) -> None:
    assert "not sampled" not in explain(bound(TREE.splitlines()[0], capture), "job")
    assert "not sampled" not in explain(bound(TREE, capture, SAMPLED), "job")


def test_where_more_can_be_saved_the_source_is_sampled(
    capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if there were more of it."""
    monkeypatch.setattr(Interface, "estimated_tuples", lambda _: 1e9)
    compiled = bound(TREE, capture)
    assert [one.used for one in compiled.job().decisions] == [True]
    assert compiled.job().reads == bound(TREE, capture, SAMPLED).job().reads
    assert "not sampled" not in explain(compiled, "job")


def test_sliding_windows_share_without_a_sample(
    capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "read_some", nothing_is_read)
    job = bound(SLIDING, capture).job()
    assert len({o.windows.stream for o in job.low if o.windows is not None}) == 1


def test_what_can_be_saved_grows_with_tuples_and_queries_and_shrinks_with_cores(
    capture: Path,
) -> None:
    def saved(text: str, cores: int = 1) -> float:
        compiled = bound(text, capture)
        interfaces = compiled.bindings.interfaces
        return prospect_of(compiled.optimized, interfaces, cores).saves_seconds

    assert saved(TREE.splitlines()[0]) == 0.0
    assert saved(TREE, 4) == pytest.approx(saved(TREE) / 4)
    assert saved(TREE + EPOCHS) == pytest.approx(saved(TREE) * 4 / 3), "one more of a minute"
    assert saved(EPOCHS) == pytest.approx(saved(TREE) * 2 / 3), "they could share their slices"
    again = TREE.replace("QUERY q", "QUERY again").replace("COUNT(*)", "SUM(len)")
    assert saved(TREE + again) == pytest.approx(saved(TREE)), "they have one table in any case"
    assert saved(SLIDING) > saved(EPOCHS), "their slices are exchanged, too"
    over_others = TREE + "QUERY r: SELECT tb, MAX(n) AS n FROM q3 GROUP BY tb;"
    assert saved(over_others) == pytest.approx(saved(TREE)), "it takes no tuples"


@pytest.mark.parametrize("packets", [2_000, 40_000])
def test_planning_takes_no_longer_than_with_sharing_off(packets: int, tmp_path: Path) -> None:
    """Processor time, the best of some in turn; the constant is for a busy machine."""
    path = tmp_path / "trace.pcap"
    generate(Profile(packets=packets, seed=5), path)
    text = TREE + EPOCHS
    spent: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(5):
        for off in (True, False):
            compiled = bound(text, path, OFF if off else None)
            began = process_time()
            compiled.job()
            spent[off].append(process_time() - began)
    assert min(spent[False]) < 1.25 * min(spent[True]) + 0.01
