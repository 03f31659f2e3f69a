"""All packets of a trace, in order of time, a chunk at a time.

In: a profile. Out: a `TrafficStream`: chunks of PACKET records in order of time, and the casts of
the scenarios. Memory is bounded: a flow is expanded when it starts, and its packets are kept in the
bucket of their chunk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from terascope.traffic.conversations import PACKET, expand
from terascope.traffic.flows import (
    SLOT_NS,
    SLOTS_PER_SECOND,
    pareto_sizes,
    quiet_flows,
    rate_of,
    start_ns,
)
from terascope.traffic.population import Population, populate
from terascope.traffic.profile import Profile
from terascope.traffic.randomness import Array, generator
from terascope.traffic.scenarios import CastScenario, cast_scenarios, scenario_flows

_CHUNK_PACKETS = 400_000
_PILOT_FLOWS = 4096
_LEAD_SECONDS = 4.0
"""Flows start this long before the trace, so that it does not open with handshakes only."""


@dataclass(frozen=True)
class TrafficStream:
    """A trace about to be drawn."""

    profile: Profile
    population: Population
    casts: tuple[CastScenario, ...]
    custom: Array
    """Addresses given by the user, see `addresses`."""
    flows_per_second: float

    def chunks(self) -> Iterator[Array]:
        """Sorted packets; chunk after chunk, never going back in time."""
        remaining = self.profile.packets
        for chunk in self._timed_chunks():
            if remaining is None:
                yield chunk
                continue
            yield chunk[:remaining]
            remaining -= len(chunk)
            if remaining <= 0:
                return

    def _timed_chunks(self) -> Iterator[Array]:
        profile = self.profile
        rate = rate_of(profile)
        # By the quiet rate, so that a mild scenario leaves the quiet traffic as it is without it.
        busiest = sum(cast.scenario.packet_share for cast in self.casts) / 4
        rate_per_slot = profile.quiet_rate * max(1.0, busiest) / SLOTS_PER_SECOND
        slots = int(np.clip(_CHUNK_PACKETS / rate_per_slot, 1, 36000))
        span = slots * SLOT_NS
        lead = round(min(_LEAD_SECONDS, profile.seconds / 4) * SLOTS_PER_SECOND)
        slot = -lead
        origin = start_ns(profile) + slot * SLOT_NS
        first = start_ns(profile)
        last = first + round(profile.seconds * 1e9) if profile.packets is None else 2**62
        buckets: dict[int, list[Array]] = defaultdict(list)
        flows_so_far = 0
        bucket = 0
        while origin + bucket * span < last:
            wanted = rate.factors(np.arange(slot, slot + slots)) * self.flows_per_second
            counts = generator(profile.seed, "arrivals", bucket).poisson(wanted / SLOTS_PER_SECOND)
            flows = quiet_flows(profile, self.population, counts, slot, flows_so_far)
            flows_so_far += len(flows)
            parts = [scenario_flows(profile, cast, slot, slots) for cast in self.casts]
            packets = expand(np.concatenate([flows, *parts]), profile.retransmission_rate)
            _fill_buckets(buckets, packets, origin, span, first, last)
            waiting = buckets.pop(bucket, [])
            if waiting:
                yield _in_order(np.concatenate(waiting))
            bucket += 1
            slot += slots


def _in_order(packets: Array) -> Array:
    # Stable, so that packets of the same nanosecond stand in the order they were made.
    order = np.argsort(packets["time"], kind="stable")
    # As rows of plain integers: numpy moves those several times faster than records.
    rows = packets.view(np.int64).reshape(len(packets), -1)
    return np.take(rows, order, axis=0).reshape(-1).view(PACKET)


def _fill_buckets(
    buckets: dict[int, list[Array]], packets: Array, origin: int, span: int, first: int, last: int
) -> None:
    """Put packets where they wait for their chunk; those outside [first, last) are not seen."""
    packets = _in_order(packets)
    low, high = np.searchsorted(packets["time"], [first, last])
    packets = packets[low:high]
    if not len(packets):
        return
    low_bucket = (int(packets["time"][0]) - origin) // span
    high_bucket = (int(packets["time"][-1]) - origin) // span
    edges = origin + np.arange(low_bucket, high_bucket + 2) * span
    cuts = np.searchsorted(packets["time"], edges)
    for index, bucket in enumerate(range(low_bucket, high_bucket + 1)):
        piece = packets[cuts[index] : cuts[index + 1]]
        if len(piece):
            buckets[bucket].append(piece.copy())  # a view would keep the whole chunk alive


def open_stream(profile: Profile) -> TrafficStream:
    packets_per_flow = _mean_packets(profile)
    flows_per_second = profile.quiet_rate / packets_per_flow
    population = populate(profile, flows_per_second * profile.seconds)
    custom = np.zeros((256, 16), dtype=np.uint8)
    casts = cast_scenarios(profile, population, custom)
    return TrafficStream(profile, population, casts, custom, flows_per_second)


def _mean_packets(profile: Profile) -> float:
    """Packets a flow really has, measured on a pilot: handshakes and losses add to the setting."""
    pilot = replace(profile, scenarios=(), hosts=16, servers=4)
    flows = quiet_flows(pilot, populate(pilot, 64.0), np.array([_PILOT_FLOWS]), 0, 0)
    even = (np.arange(_PILOT_FLOWS) + 0.5) / _PILOT_FLOWS
    flows["size"] = pareto_sizes(profile, generator(profile.seed, "pilot").permutation(even))
    return len(expand(flows, profile.retransmission_rate)) / _PILOT_FLOWS
