"""Flows: one row for each conversation, before it becomes packets.

In: a profile, a population and a range of time slots. Out: a table of FLOW records, the quiet
traffic that starts in them, or what a scenario adds to it. Flows start at a steady rate with a
daily swing and bursts on top: `rate_factors` says for any tenth of a second of the trace how many
times the mean rate it has.
A flow's size is Pareto with shape 1/exponent, which makes the 4-tuples' rank-frequency curve Zipf
with that exponent (paper 4, section VI).
SYN floods are those of the dissertation, section 5.6.3: many SYNs with spoofed sources that nobody
answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from terascope.traffic.population import (
    Population,
    address_texts,
    number_of,
    outside_addresses,
)
from terascope.traffic.profile import Profile, Scenario
from terascope.traffic.randomness import Array, generator, hash_numbers

SLOTS_PER_SECOND = 10
SLOT_NS = 1_000_000_000 // SLOTS_PER_SECOND
_PEAK_OF_DAY = 14 * 3600.0
_MOST_SAMPLES = 200_000


def mean_factor(profile: Profile) -> float:
    """The mean of `rate_factors` over the trace."""
    slots = max(1, round(profile.seconds * SLOTS_PER_SECOND))
    sampled = np.unique(np.linspace(0, slots - 1, min(slots, _MOST_SAMPLES)).astype(np.int64))
    return max(1e-9, float(rate_factors(profile, sampled).mean()))


def rate_factors(profile: Profile, slots: Array) -> Array:
    """The rate in each slot, up to a constant factor. Slots are counted from the start of the
    trace, and may be negative.
    """
    # Two time scales: seconds that are busy, and tenths that are busy within them.
    spread = profile.burstiness / np.sqrt(2.0)
    seconds = slots // SLOTS_PER_SECOND
    noise = _normal(slots, profile.seed) + _normal(seconds, profile.seed ^ 0x5ECD)
    time = profile.start_time + slots / SLOTS_PER_SECOND
    phase = (time - _PEAK_OF_DAY) / profile.diurnal_period
    daily = 1.0 + profile.diurnal_amplitude * np.cos(2 * np.pi * phase)
    return np.asarray(daily * np.exp(spread * noise))


def _normal(numbers: Array, seed: int) -> Array:
    """A standard normal value for each number, by Box and Muller from its hash."""
    bits = hash_numbers(numbers + (1 << 40), seed)
    first = ((bits >> np.uint64(40)).astype(np.float64) + 0.5) / 2.0**24
    second = (bits & np.uint64(0xFFFFFF)).astype(np.float64) / 2.0**24
    return np.asarray(np.sqrt(-2.0 * np.log(first)) * np.cos(2 * np.pi * second))


COMPLETE, RESET, REFUSED, UNANSWERED, PROBED, DNS, STREAM, PING, LONE_SYN, REFLECTED = range(10)
"""The behaviours of the two ends of a flow."""
TCP, UDP, ICMP, ICMPV6 = 6, 17, 1, 58

FLOW: Final = np.dtype(
    [
        ("start", "i8"),
        ("seed", "u8"),
        ("server_delay", "i8"),  # ns from the tap to the server and back
        ("client_delay", "i8"),
        ("client", "u4"),
        ("server", "u4"),
        ("size", "i4"),  # packets to aim at, both directions
        ("spacing", "i4"),  # ns between packets of a burst
        ("segment", "u2"),  # bytes of a full data packet
        ("client_port", "u2"),
        ("server_port", "u2"),
        ("behaviour", "u1"),
        ("version", "u1"),
        ("protocol", "u1"),
        ("tos", "u1"),
        ("client_ttl", "u1"),
        ("server_ttl", "u1"),
        ("upload", "u1"),
        ("link", "u1"),
    ],
    align=True,
)

LONGEST_FLOW = 200_000
_GOLDEN_RATIO = 0.6180339887498949
_FIRST_PORT = 32768
_PORT_COUNT = 28232
_PORT_STRIDE = 40503
_SEGMENTS = np.array([1460, 1460, 1440, 1400, 1360, 1220, 904, 536, 400, 300], dtype=np.uint16)
_TCP_PORTS = np.array([443, 443, 443, 443, 443, 993, 8443, 22, 5432, 9092], dtype=np.uint16)
_STREAM_PORTS = np.array([5004, 5006, 27015, 27016], dtype=np.uint16)


def flow_table(profile: Profile, numbers: Array, starts: Array, purpose: str, step: int) -> Array:
    """Flows with these serial numbers and start times: complete TCP, ready to be changed."""
    count = len(numbers)
    random = generator(profile.seed, f"{purpose} flows", step)
    flows = np.zeros(count, dtype=FLOW)
    flows["start"] = starts
    # Flows of the same number but of different purpose have different seeds.
    salt = int.from_bytes(purpose.encode()[:7], "little")
    flows["seed"] = hash_numbers(numbers, profile.seed ^ salt)
    delay = np.exp(np.log(0.025) + 0.9 * random.standard_normal(count))
    flows["server_delay"] = np.clip(delay, 0.001, 0.2) * 1e9
    flows["client_delay"] = random.uniform(0.0002, 0.004, count) * 1e9
    flows["spacing"] = random.uniform(8_000, 160_000, count)
    flows["segment"] = _SEGMENTS[random.integers(0, len(_SEGMENTS), count)]
    # A stride coprime to the number of ports: a client uses a port again only after all others.
    flows["client_port"] = _FIRST_PORT + (numbers * _PORT_STRIDE + profile.seed) % _PORT_COUNT
    flows["server_port"] = 443
    flows["version"] = 4
    flows["protocol"] = TCP
    flows["upload"] = random.random(count) < 0.25
    flows["link"] = flows["seed"] % np.uint64(profile.links)
    flows["size"] = 10
    return flows


def set_hops(flows: Array) -> None:
    """A TTL per address: 64 or 128 at its origin, less the hops to the tap."""
    for end in ("client", "server"):
        bits = hash_numbers(flows[end], 77)
        origin = np.where(bits & np.uint64(256), 128, 64)
        flows[f"{end}_ttl"] = origin - (bits % np.uint64(17)).astype(np.int64) - 1


def pareto_sizes(profile: Profile, draws: Array) -> Array:
    """Flow sizes for draws in (0, 1], with the profile's mean and tail."""
    smallest = profile.mean_flow * (1.0 - profile.tuple_exponent)
    sizes = smallest * draws**-profile.tuple_exponent
    return np.asarray(np.clip(np.rint(sizes), 2, LONGEST_FLOW))


def start_times(
    profile: Profile, counts: Array, first_slot: int, random: np.random.Generator
) -> Array:
    """Start times in order, `counts` of them in each slot from `first_slot` on."""
    slots = np.repeat(np.arange(first_slot, first_slot + len(counts)), counts)
    inside = (random.random(len(slots)) * SLOT_NS).astype(np.int64)
    return np.sort(start_ns(profile) + slots * SLOT_NS + inside)


def start_ns(profile: Profile) -> int:
    return round(profile.start_time * 1_000_000) * 1000


def quiet_flows(
    profile: Profile, population: Population, counts: Array, first_slot: int, first_number: int
) -> Array:
    """The quiet traffic: `counts` flows in each slot, numbered from `first_number` on."""
    random = generator(profile.seed, "quiet", first_slot + (1 << 20))
    starts = start_times(profile, counts, first_slot, random)
    count = len(starts)
    numbers = np.arange(first_number, first_number + count, dtype=np.int64)
    flows = flow_table(profile, numbers, starts, "quiet", first_slot + (1 << 20))
    # Multiples of the golden ratio visit every pair as often as its share says, over any stretch of
    # flows.
    place = (numbers * _GOLDEN_RATIO + profile.seed % 1009 / 1009) % 1.0
    pair = np.minimum(
        np.searchsorted(population.cumulative, place, side="right"), len(population.cumulative) - 1
    )
    flows["client"] = population.pair_host[pair]
    flows["server"] = population.pair_server[pair]
    flows["version"] = population.pair_version[pair]
    flows["size"] = pareto_sizes(profile, 1.0 - random.random(count))
    set_hops(flows)
    _choose_behaviours(profile, flows, random)
    return flows


def _choose_behaviours(profile: Profile, flows: Array, random: np.random.Generator) -> None:
    count = len(flows)
    kind, detail, service = random.random(count), random.random(count), random.random(count)
    is_udp = kind < profile.udp_share
    is_icmp = ~is_udp & (kind < profile.udp_share + profile.icmp_share)
    is_tcp = ~is_udp & ~is_icmp
    is_dns = is_udp & (detail < profile.dns_share)

    flows["protocol"][is_udp] = UDP
    flows["behaviour"][is_udp] = STREAM
    flows["server_port"][is_udp] = _STREAM_PORTS[(service[is_udp] * 4).astype(np.int64)]
    flows["tos"][is_udp] = 0xB8
    flows["segment"][is_udp] = np.minimum(flows["segment"][is_udp], 1200)
    flows["behaviour"][is_dns] = DNS
    flows["server_port"][is_dns] = 53
    flows["tos"][is_dns] = 0

    flows["behaviour"][is_icmp] = PING
    flows["protocol"][is_icmp] = np.where(flows["version"][is_icmp] == 6, ICMPV6, ICMP)

    http = is_tcp & (service < profile.http_share)
    other = (service * 1e6).astype(np.int64) % len(_TCP_PORTS)
    flows["server_port"][is_tcp] = _TCP_PORTS[other[is_tcp]]
    flows["server_port"][http] = np.where(other[http] == 9, 8080, 80)
    ends_badly = is_tcp & (detail < profile.rst_rate)
    flows["behaviour"][ends_badly] = RESET
    flows["behaviour"][is_tcp & (detail < profile.rst_rate / 4)] = REFUSED
    silent = is_tcp & (detail >= 1.0 - profile.unanswered_rate)
    flows["behaviour"][silent] = UNANSWERED


# ---- scenarios -----------------------------------------------------------------------------------

_PACKETS_PER_FLOW = {"syn_flood": 1.0, "port_scan": 2.0, "amplification": 8.0, "flash_crowd": 14.0}
REFLECTORS = 600


@dataclass(frozen=True)
class ScenarioReport:
    """The victim and the time of a scenario, to check answers against."""

    name: str
    victim: str
    attacker: str | None
    start: float
    end: float
    """Seconds since 1970."""


@dataclass(frozen=True)
class CastScenario:
    """A scenario with its parts given out."""

    scenario: Scenario
    order: int
    victim: int
    version: int
    attacker: int
    start: float
    end: float
    report: ScenarioReport

    @property
    def purpose(self) -> str:
        return f"{self.order}-{self.scenario.name}"


def cast_scenarios(
    profile: Profile, population: Population, custom: Array
) -> tuple[CastScenario, ...]:
    return tuple(
        _cast(profile, population, scenario, order, custom)
        for order, scenario in enumerate(profile.active_scenarios)
    )


def _cast(
    profile: Profile, population: Population, scenario: Scenario, order: int, custom: Array
) -> CastScenario:
    random = generator(profile.seed, "cast", order)
    if scenario.victim is not None:
        victim, version = number_of(scenario.victim, custom, order)
    else:
        busy = max(1, len(population.servers) // 4)
        victim, version = int(population.servers[int(random.integers(0, busy))]), 4
    attacker = int(outside_addresses(np.array([order]), int(random.integers(0, 2**62)))[0])
    parties = np.array([victim, attacker])
    victim_text, attacker_text = address_texts(parties, np.array([version, version]), custom)
    start, end = profile.interval(scenario)
    origin = profile.start_time
    single = attacker_text if scenario.name == "port_scan" else None
    report = ScenarioReport(scenario.name, victim_text, single, origin + start, origin + end)
    return CastScenario(scenario, order, victim, version, attacker, start, end, report)


def scenario_flows(profile: Profile, cast: CastScenario, first_slot: int, slots: int) -> Array:
    """The flows that a scenario adds in the slots."""
    random = generator(profile.seed, cast.purpose, first_slot + (1 << 20))
    edges = np.arange(first_slot, first_slot + slots + 1) / SLOTS_PER_SECOND
    overlap = np.clip(
        np.minimum(edges[1:], cast.end) - np.maximum(edges[:-1], cast.start), 0.0, None
    )
    name = cast.scenario.name
    per_second = cast.scenario.packet_share * profile.quiet_rate / _PACKETS_PER_FLOW[name]
    counts = random.poisson(per_second * overlap)
    starts = start_times(profile, counts, first_slot, random)
    # Within a slot that is only partly in the interval, keep to the interval.
    origin = start_ns(profile)
    last = origin + max(round(cast.end * 1e9) - 1, 0)
    starts = np.clip(starts, origin + round(cast.start * 1e9), last)
    numbers = (first_slot + (1 << 20)) * (1 << 24) + np.arange(len(starts), dtype=np.int64)
    flows = flow_table(profile, numbers, starts, cast.purpose, first_slot + (1 << 20))
    flows["server"] = cast.victim
    flows["version"] = cast.version
    match name:
        case "syn_flood":
            _flood(flows, numbers, cast)
        case "port_scan":
            _scan(profile, flows, random, cast)
        case "amplification":
            _amplify(flows, random, cast)
        case _:
            _crowd(flows, numbers, random, cast)
    set_hops(flows)
    return flows


def _flood(flows: Array, numbers: Array, cast: CastScenario) -> None:
    """Every SYN has another, spoofed source; no SYN is answered."""
    flows["client"] = outside_addresses(numbers, cast.attacker)
    flows["server_port"] = 80
    flows["behaviour"] = LONE_SYN


def _scan(profile: Profile, flows: Array, random: np.random.Generator, cast: CastScenario) -> None:
    """One attacker walks over the ports of one target; few are open, few filtered."""
    flows["client"] = cast.attacker
    # 40503 is odd and so visits all 65536 numbers; the time since the start tells how far the scan
    # has come.
    step = (flows["start"] - start_ns(profile)) // 1000
    flows["server_port"] = 1 + (step * 40503) % 65535
    luck = random.random(len(flows))
    flows["behaviour"] = np.where(luck < 0.95, REFUSED, np.where(luck < 0.98, PROBED, LONE_SYN))


def _amplify(flows: Array, random: np.random.Generator, cast: CastScenario) -> None:
    """Reflectors send large DNS answers to the victim, who never asked."""
    reflectors = outside_addresses(random.integers(0, REFLECTORS, len(flows)), cast.attacker)
    flows["server"] = reflectors
    flows["client"] = cast.victim
    flows["server_port"] = 53
    flows["protocol"] = UDP
    flows["behaviour"] = REFLECTED
    flows["size"] = 1 + random.poisson(_PACKETS_PER_FLOW["amplification"] - 1, len(flows))


def _crowd(flows: Array, numbers: Array, random: np.random.Generator, cast: CastScenario) -> None:
    """Many real clients, each with complete connections to the one server."""
    flows["client"] = outside_addresses(numbers // 3, cast.attacker)
    flows["server_port"] = np.where(random.random(len(flows)) < 0.5, 80, 443)
    flows["size"] = 8 + random.poisson(6, len(flows))
    flows["upload"] = 0
