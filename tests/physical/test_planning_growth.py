"""The time to plan a set grows with the number of its queries, and not with that of their pairs."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import pytest

from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, compile_set
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate
from tests.settings import config_with

FEW, MANY = 25, 200
KEYS = ("srcIP", "destIP", "srcPort", "destPort", "protocol")


def of_other_ports(i: int) -> str:
    return f"SELECT tb, srcIP, COUNT(*) FROM TCP WHERE destPort = {i} GROUP BY time/60 AS tb, srcIP"


def of_overlapping_tuples(i: int) -> str:
    return f"SELECT tb, srcIP, SUM(len) FROM TCP WHERE len > {i} GROUP BY time/60 AS tb, srcIP"


def of_other_keys(i: int) -> str:
    keys = f"{KEYS[i % 5]} AS a, {KEYS[i // 5 % 5]} AS b, len % {1 + i // 25} AS c"
    return f"SELECT tb, a, b, c, COUNT(*) FROM TCP GROUP BY time/60 AS tb, {keys}"


def of_other_windows(i: int) -> str:
    window = f"[RANGE {10 + i} SLIDE {5 + i % 7}]"
    return f"SELECT srcIP, COUNT(*) FROM TCP {window} GROUP BY srcIP"


def of_other_epochs(i: int) -> str:
    return f"SELECT tb, srcIP, COUNT(*) FROM TCP GROUP BY time/{60 + i} AS tb, srcIP"


@pytest.fixture(scope="module")
def bindings(tmp_path_factory: pytest.TempPathFactory) -> Bindings:
    path = tmp_path_factory.mktemp("planning") / "trace.pcap"
    generate(Profile(duration=60.0, rate=200.0), path)
    interface = parse_interface(f"eth0=pcap:{path}")
    return Bindings({interface.name: interface}, config=config_with(share_sample="always"))


@pytest.mark.parametrize(
    "query",
    [of_other_ports, of_overlapping_tuples, of_other_keys, of_other_windows, of_other_epochs],
)
def test_eight_times_the_queries_take_eight_times_as_long(
    query: Callable[[int], str], bindings: Bindings
) -> None:
    few, many = (planning_seconds(query, number, bindings) for number in (FEW, MANY))
    assert many < 1.5 * MANY / FEW * few  # a square would be eight times as much
    assert many < 0.0125 * MANY + 3  # so that 500 take five seconds, and a busy machine is no alarm


def planning_seconds(query: Callable[[int], str], number: int, bindings: Bindings) -> float:
    """Processor time from the text to the job."""
    text = "\n".join(f"QUERY q{i}: {query(i)};" for i in range(number))
    started = process_time()
    job = compile_set(Source(text, "similar.gsql"), bindings).job()
    assert len(job.outputs) == number
    return process_time() - started
