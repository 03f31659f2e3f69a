"""The load of partitions in the status of a run, and in its metrics."""

from __future__ import annotations

from terascope.operate.metrics import status_families
from terascope.operate.status import RunStatus, SourceStatus, Status


def test_a_hot_partition_is_in_the_status_and_the_metrics() -> None:
    loads = {"eth0#0": 900, "eth0#1": 50, "eth0#2": 50, "eth1": 7}
    sources = tuple(SourceStatus(name, "pcap", tuples=n) for name, n in loads.items())
    status = Status(RunStatus(1, 0.0, "set", "checkpoint", None), sources)
    (found,) = status.partitions
    assert (found.name, found.count, found.hottest, found.skew) == ("eth0", 3, 0, 2.7)
    assert "partition 0 of eth0 has 2.7 times the mean load" in found.advice
    samples = [sample for family in status_families(status) for sample in family.samples]
    skew = [s.value for s in samples if s.name == "terascope_partitions_skew"]
    assert skew == [2.7]
    read = [s for s in samples if s.name == "terascope_source_tuples_total"]
    assert {s.labels["source"]: s.value for s in read} == loads
