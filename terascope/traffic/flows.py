"""Flows: one row for each conversation, before it becomes packets.

In: a profile, a population and a range of time slots. Out: a table of FLOW records, the quiet
traffic that starts in them. Flows start at a steady rate with a daily swing and bursts on top: a
`Rate` says for any tenth of a second of the trace how many times the mean rate it has.
A flow's size is Pareto with shape 1/exponent, which makes the 4-tuples' rank-frequency curve Zipf
with that exponent (paper 4, section VI).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from terascope.traffic.population import Population
from terascope.traffic.profile import Profile
from terascope.traffic.randomness import Array, generator, hash_numbers

SLOTS_PER_SECOND = 10
SLOT_NS = 1_000_000_000 // SLOTS_PER_SECOND
_PEAK_OF_DAY = 14 * 3600.0
_MOST_SAMPLES = 200_000


@dataclass(frozen=True)
class Rate:
    """The shape of the rate, with a mean of one over the trace."""

    profile: Profile
    scale: float

    def factors(self, slots: Array) -> Array:
        """The rate in each slot (counted from the start of the trace, may be negative)."""
        return np.asarray(self.scale * _shape(self.profile, slots))


def rate_of(profile: Profile) -> Rate:
    slots = max(1, round(profile.seconds * SLOTS_PER_SECOND))
    sampled = np.unique(np.linspace(0, slots - 1, min(slots, _MOST_SAMPLES)).astype(np.int64))
    return Rate(profile, 1.0 / max(1e-9, float(_shape(profile, sampled).mean())))


def _shape(profile: Profile, slots: Array) -> Array:
    # Two time scales: seconds that are busy, and tenths that are busy within them.
    spread = profile.burstiness / np.sqrt(2.0)
    seconds = slots // SLOTS_PER_SECOND
    noise = _normal(slots, profile.seed) + _normal(seconds, profile.seed ^ 0x5ECD)
    return np.asarray(_daily(profile, slots / SLOTS_PER_SECOND) * np.exp(spread * noise))


def _daily(profile: Profile, seconds: Array) -> Array:
    phase = (profile.start_time + seconds - _PEAK_OF_DAY) / profile.diurnal_period
    return np.asarray(1.0 + profile.diurnal_amplitude * np.cos(2 * np.pi * phase))


def _normal(numbers: Array, seed: int) -> Array:
    """A standard normal value for each number, by Box and Muller from its hash."""
    bits = hash_numbers(numbers + (1 << 40), seed)
    first = ((bits >> np.uint64(40)).astype(np.float64) + 0.5) / 2.0**24
    second = (bits & np.uint64(0xFFFFFF)).astype(np.float64) / 2.0**24
    return np.asarray(np.sqrt(-2.0 * np.log(first)) * np.cos(2 * np.pi * second))


COMPLETE, RESET, REFUSED, UNANSWERED, PROBED, DNS, STREAM, PING, LONE_SYN, REFLECTED = range(10)
"""What the two ends of a flow do."""
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
    flows["seed"] = hash_numbers(numbers, profile.seed ^ int(hash_purpose(purpose)))
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


def hash_purpose(purpose: str) -> np.uint64:
    """Keeps flows of the same number but of different purpose apart."""
    return np.uint64(int.from_bytes(purpose.encode()[:7], "little"))


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
