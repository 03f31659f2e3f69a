"""The plan figures of paper 2 and of chapter 6 of the dissertation, as golden files.

Each file in `figures` has a query set whose sources are partitioned as its comments say, and behind
it the plan before any transformation ("agnostic"), after all of them ("distributed"), and the
operators of the Job. `pytest tests/partitioning --bless` rewrites these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from terascope.connectors.base import partition_name
from terascope.connectors.registry import Interface, Partition
from terascope.diagnostic import Source
from terascope.partitioning.distribute import agnostic_plan, distribute
from terascope.partitioning.sets import PartitionSet, parse_set
from terascope.physical.planner import plan_job
from terascope.pipeline import Bindings, compile_set
from tests.settings import config_with

FIGURES = Path(__file__).with_name("figures")
CAPTURE = Path(__file__).parents[2] / "docs" / "examples" / "tiny.pcap"
DECLARED = re.compile(
    r"^-- partitions (\w+): (\d+)(?: on (\d+) hosts)?(?: by (.+))?$", re.MULTILINE
)
MARK = "---- "
SECTIONS = ("agnostic", "distributed", "job")
SETTINGS = config_with(kernels="numpy", share_sample="always", share_trees="operations")


def interfaces_of(text: str) -> dict[str, Interface]:
    """The partitions that the comments of a file declare."""
    found: dict[str, Interface] = {}
    for source, count, hosts, by in DECLARED.findall(text):
        for n in range(int(count)):
            name = partition_name(source, n)
            host = f"host{n * int(hosts) // int(count)}" if hosts else ""
            partition = Partition(n, int(count), by, host=host)
            found[name] = Interface(name, "pcap", str(CAPTURE), partition=partition)
    return found


def sections(script: str) -> Iterator[str]:
    interfaces = interfaces_of(script)
    plan = compile_set(Source(script), Bindings(interfaces)).optimized
    streams = {stream.name: stream.rel for stream in plan}
    partitions: dict[str, dict[int, str]] = {}
    placement: dict[str, PartitionSet] = {}
    for one in interfaces.values():
        assert one.partition is not None
        source = one.name.partition("#")[0]
        partitions.setdefault(source, {})[one.partition.number] = one.partition.host
        by = one.partition.by
        placement[source] = parse_set(by, one.columns) if by else PartitionSet(())
    outputs = [stream.name for stream in plan.visible]
    made = distribute(streams, partitions, placement, outputs)
    yield "agnostic"
    yield from agnostic_plan(streams, partitions).lines()
    yield "distributed"
    yield from made.lines()
    yield from (f"{name} is not in the partitions: {why}" for name, why in made.reasons.items())
    yield "job"
    for operator in plan_job(plan, interfaces, config=SETTINGS, destination="files").operators:
        inputs = f" of {', '.join(operator.inputs)}" if operator.inputs else ""
        yield f"{operator.name}{inputs}: {', '.join(operator.places)}"


@pytest.mark.parametrize("path", sorted(FIGURES.glob("*.gsql")), ids=lambda path: path.stem)
def test_figure(path: Path, request: pytest.FixtureRequest) -> None:
    script = path.read_text(encoding="utf-8").partition(f"\n{MARK}")[0].rstrip() + "\n"
    made = [f"{MARK}{line}" if line in SECTIONS else line for line in sections(script)]
    text = f"{script}{chr(10).join(made)}\n"
    if request.config.getoption("--bless"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
