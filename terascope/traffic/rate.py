"""When flows start: a daily swing and bursts on top of a steady rate.

In: a profile. Out: for any tenth of a second of the trace, how many times the mean rate it has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from terascope.traffic.profile import Profile
from terascope.traffic.randomness import Array, hash_numbers

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
