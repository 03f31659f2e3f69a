"""Scenarios: flows added to the quiet traffic while something is going on.

In: a `Cast` (scenario, who plays which part) and a range of slots. Out: FLOW records.
SYN floods are those of the dissertation, section 5.6.3: many SYNs with spoofed sources that nobody
answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from terascope.traffic import flows as kinds
from terascope.traffic.addresses import number_of, outside_addresses, texts
from terascope.traffic.flows import SLOTS_PER_SECOND, flow_table, set_hops, start_times
from terascope.traffic.population import Population
from terascope.traffic.profile import Profile, Scenario
from terascope.traffic.randomness import Array, generator

_PACKETS_PER_FLOW = {"syn_flood": 1.0, "port_scan": 2.0, "amplification": 8.0, "flash_crowd": 14.0}
REFLECTORS = 600


@dataclass(frozen=True)
class CastScenario:
    """A scenario with its parts given out."""

    scenario: Scenario
    order: int
    victim: int
    version: int
    victim_text: str
    attacker: int
    attacker_text: str | None
    start: float
    end: float

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
    victim_text, attacker_text = texts(parties, np.array([version, version]), custom)
    start, end = profile.interval(scenario)
    single = scenario.name == "port_scan"
    return CastScenario(
        scenario,
        order,
        victim,
        version,
        victim_text,
        attacker,
        attacker_text if single else None,
        start,
        end,
    )


def scenario_flows(profile: Profile, cast: CastScenario, first_slot: int, slots: int) -> Array:
    """What a scenario adds in the slots."""
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
    starts = np.clip(starts, *_interval_ns(profile, cast))
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


def _interval_ns(profile: Profile, cast: CastScenario) -> tuple[int, int]:
    origin = kinds.start_ns(profile)
    return origin + round(cast.start * 1e9), origin + max(round(cast.end * 1e9) - 1, 0)


def _flood(flows: Array, numbers: Array, cast: CastScenario) -> None:
    """Every SYN from another, spoofed source; nobody answers."""
    flows["client"] = outside_addresses(numbers, cast.attacker)
    flows["server_port"] = 80
    flows["behaviour"] = kinds.LONE_SYN


def _scan(profile: Profile, flows: Array, random: np.random.Generator, cast: CastScenario) -> None:
    """One attacker walks over the ports of one target; few are open, few filtered."""
    flows["client"] = cast.attacker
    # 40503 is odd and so visits all 65536 numbers; the time since the start tells how far the scan
    # has come.
    step = (flows["start"] - kinds.start_ns(profile)) // 1000
    flows["server_port"] = 1 + (step * 40503) % 65535
    luck = random.random(len(flows))
    flows["behaviour"] = np.where(
        luck < 0.95, kinds.REFUSED, np.where(luck < 0.98, kinds.PROBED, kinds.LONE_SYN)
    )


def _amplify(flows: Array, random: np.random.Generator, cast: CastScenario) -> None:
    """Reflectors send large DNS answers to the victim, who never asked."""
    reflectors = outside_addresses(random.integers(0, REFLECTORS, len(flows)), cast.attacker)
    flows["server"] = reflectors
    flows["client"] = cast.victim
    flows["server_port"] = 53
    flows["protocol"] = kinds.UDP
    flows["behaviour"] = kinds.REFLECTED
    flows["size"] = 1 + random.poisson(_PACKETS_PER_FLOW["amplification"] - 1, len(flows))


def _crowd(flows: Array, numbers: Array, random: np.random.Generator, cast: CastScenario) -> None:
    """Many real clients, each with complete connections to the one server."""
    flows["client"] = outside_addresses(numbers // 3, cast.attacker)
    flows["server_port"] = np.where(random.random(len(flows)) < 0.5, 80, 443)
    flows["size"] = 8 + random.poisson(6, len(flows))
    flows["upload"] = 0
