"""What to generate: every setting of the synthetic traffic, checked when it is made.

In: plain values (the command line's options). Out: a frozen `Profile`, or a `FlowProfile` of flow
records; equal profiles give equal bytes.
A generated source has its profile in one line, as its location.
The default Zipf exponents are those observed on Abilene flow records (paper 4, section VI).
"""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from terascope.diagnostic import SourceError
from terascope.units import scaled_number

SCENARIOS: Final = {
    "quiet": 0.0,
    "syn_flood": 0.5,
    "port_scan": 0.1,
    "amplification": 0.4,
    "flash_crowd": 1.0,
}
"""Scenario name -> default intensity: packets it adds, as a multiple of the quiet rate."""

WORDS_OF_SCENARIO: Final = {
    "victim": "victim",
    "start": "start",
    "length": "duration",
    "intensity": "intensity",
}
"""A property of a scenario, as users call it -> field of a `Scenario`."""
EXTENT, TRAFFIC, POPULARITY, RATE = "Extent", "Traffic", "Popularity", "Rate"
"""The panels of the help of `terascope generate`."""
SHARE: Final = (0, 1)
LAST_SECOND: Final = 2**32 - 1
LARGEST_SEED: Final = 2**63 - 1


class ProfileError(ValueError):
    """A setting that makes no sense, said in one line."""


def setting(
    default: Any, help: str = "", panel: str = "", within: tuple[float, float] | None = None
) -> Any:
    """A field of a profile: the help of its flag, and the range of its values."""
    return field(default=default, metadata={"help": help, "panel": panel, "within": within})


def check_ranges(profile: FlowProfile | Profile) -> None:
    """Raise a ProfileError for a setting outside of its range, or a Zipf exponent that is none."""
    for one in fields(profile):
        value = getattr(profile, one.name)
        within = one.metadata.get("within")
        if within is not None and not within[0] <= value <= within[1]:
            raise ProfileError(f"{one.name} must lie between {within[0]} and {within[1]}")
        if one.name.endswith("_exponent") and not 0 <= value < 1:
            raise ProfileError(f"{one.name} must be at least 0 and less than 1")


@dataclass(frozen=True)
class Scenario:
    """Something that happens on top of the quiet traffic."""

    name: str = "quiet"
    victim: str | None = None
    """The address under attack, or of the crowded server; one of the busier servers when None."""
    start: float | None = None
    """Seconds after the start of the trace; a third of its duration when None."""
    duration: float | None = None
    """Seconds; a third of the trace's duration when None."""
    intensity: float | None = None
    """Packets per second as a multiple of the quiet rate; see SCENARIOS when None."""

    def __post_init__(self) -> None:
        if self.name not in SCENARIOS:
            raise ProfileError(
                f"unknown scenario '{self.name}', choose one of {', '.join(SCENARIOS)}"
            )
        if self.victim is not None:
            try:
                ipaddress.ip_address(self.victim)
            except ValueError:
                raise ProfileError(f"victim '{self.victim}' is not an IP address") from None
        if self.start is not None and not self.start >= 0:
            raise ProfileError(
                "a scenario cannot start before the trace: give a start of 0 or more"
            )
        if self.duration is not None and not self.duration > 0:
            raise ProfileError("the duration of a scenario must be more than 0 seconds")
        if self.intensity is not None and not 0 < self.intensity <= 1000:
            raise ProfileError("the intensity of a scenario must be more than 0, at most 1000")

    @property
    def packet_share(self) -> float:
        """Its packet rate as a multiple of the quiet rate."""
        return SCENARIOS[self.name] if self.intensity is None else self.intensity


@dataclass(frozen=True)
class Profile:
    """The settings of one trace. Give at most two of packets, rate and duration.

    With `packets` the trace has exactly that many; otherwise it lasts exactly `duration` seconds.
    """

    packets: int | None = None
    rate: float | None = setting(
        None, "Packets per second of the quiet traffic; 10000 by default.", EXTENT
    )
    duration: float | None = setting(None, "Seconds; 60 by default.", EXTENT)
    start_time: float = setting(
        1.7e9, "Time of the first packet, seconds since 1970.", EXTENT, (0, LAST_SECOND)
    )
    seed: int = setting(1, "The same seed, the same bytes.", EXTENT, (0, LARGEST_SEED))
    scenarios: tuple[Scenario, ...] = ()
    links: int = setting(1, "Monitored links, a file each: FILE-0, FILE-1, ...", EXTENT, (1, 64))
    hosts: int = setting(4000, "Clients.", TRAFFIC, (1, 2_000_000))
    servers: int = setting(400, "Servers.", TRAFFIC, (1, 100_000))
    source_exponent: float = setting(0.85, "Zipf exponent of sources.", POPULARITY)
    pair_exponent: float = setting(0.67, "Zipf exponent of address pairs.", POPULARITY)
    tuple_exponent: float = setting(0.48, "Zipf exponent of 4-tuples.", POPULARITY)
    mean_flow: float = setting(20.0, "Packets per flow, both directions.", TRAFFIC, (2, 1_000_000))
    udp_share: float = setting(0.15, "Share of the flows.", TRAFFIC, SHARE)
    dns_share: float = setting(0.7, "Share of the UDP flows.", TRAFFIC, SHARE)
    icmp_share: float = setting(0.01, "Share of the flows.", TRAFFIC, SHARE)
    http_share: float = setting(0.35, "Share of the TCP flows.", TRAFFIC, SHARE)
    ipv6_share: float = setting(0.1, "Share of the flows.", TRAFFIC, SHARE)
    retransmission_rate: float = setting(0.01, "Share of the TCP data packets.", TRAFFIC, SHARE)
    rst_rate: float = setting(0.03, "Share of the TCP flows that end in RST.", TRAFFIC, SHARE)
    unanswered_rate: float = setting(
        0.005, "Share of the TCP flows nobody answers.", TRAFFIC, SHARE
    )
    diurnal_amplitude: float = setting(0.3, "How much day and night differ, 0 to 1.", RATE, SHARE)
    diurnal_period: float = setting(86400.0, "Seconds of a day.", RATE)
    burstiness: float = setting(
        0.3, "Deviation of the logarithm of the rate in 0.1 s.", RATE, (0, 3)
    )
    snaplen: int = setting(65535, "Bytes captured of a packet at most.", EXTENT, (54, 65535))

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise ProfileError(f"{one.name} must be a finite number")
        self._check_extent()
        check_ranges(self)
        for share, other in (("udp_share", "icmp_share"), ("rst_rate", "unanswered_rate")):
            if getattr(self, share) + getattr(self, other) > 1:
                raise ProfileError(f"{share} and {other} must not exceed 1 together")
        if self.diurnal_period <= 0:
            raise ProfileError("diurnal_period must be more than 0 seconds")

    def _check_extent(self) -> None:
        if None not in (self.packets, self.rate, self.duration):
            raise ProfileError("give at most two of packets, rate and duration")
        for name in ("packets", "rate", "duration"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ProfileError(f"{name} must be more than 0")
        if self.start_time + self.seconds >= 2**32:
            raise ProfileError("the trace would end after 2106, the last year a pcap file can hold")

    @property
    def active_scenarios(self) -> tuple[Scenario, ...]:
        return tuple(s for s in self.scenarios if s.name != "quiet")

    def interval(self, scenario: Scenario) -> tuple[float, float]:
        """Start and end of a scenario, in seconds after the start of the trace."""
        start = self.seconds / 3 if scenario.start is None else scenario.start
        length = self.seconds / 3 if scenario.duration is None else scenario.duration
        return start, start + length

    @property
    def seconds(self) -> float:
        """The length of the trace; an estimate when the number of packets is given."""
        if self.duration is not None:
            return self.duration
        if self.packets is not None:
            return self.packets / (self.rate or 10_000.0)
        return 60.0

    @property
    def quiet_rate(self) -> float:
        """Packets per second of the quiet traffic."""
        if self.rate is not None:
            return self.rate
        if self.packets is None:
            return 10_000.0
        return self.packets / self._quiet_seconds

    @property
    def expected_packets(self) -> int:
        """All packets, quiet and scenario: exact when given, else what to expect."""
        if self.packets is not None:
            return self.packets
        return max(1, round(self.quiet_rate * self._quiet_seconds))

    @property
    def _quiet_seconds(self) -> float:
        """Seconds of quiet traffic with as many packets as the whole trace."""
        total = self.seconds
        for scenario in self.active_scenarios:
            start, end = self.interval(scenario)
            total += scenario.packet_share * max(0.0, min(end, self.seconds) - start)
        return total


# ---- flow records --------------------------------------------------------------------------------

EPOCH_EDGE: Final = 1_699_999_800
"""A full five minutes, so that an hour of records has twelve epochs."""
RECORDS_PER_TUPLE: Final = 8
TUPLES_PER_PAIR: Final = 4
PAIRS_PER_ADDRESS: Final = 8
MOST_TUPLES: Final = 8_000_000


@dataclass(frozen=True)
class FlowProfile:
    """The settings of one file of flow records."""

    records: int = setting(1_000_000, within=(1, 2**40))
    duration: int = setting(3600, within=(1, 2**31))
    """Seconds from the first record to the last."""
    start_time: int = setting(EPOCH_EDGE, within=(0, LAST_SECOND))
    seed: int = setting(1, within=(0, LARGEST_SEED))
    source_exponent: float = 0.85
    pair_exponent: float = 0.67
    tuple_exponent: float = 0.48

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.start_time + self.duration >= 2**32:
            raise ProfileError("the records would end after 2106")

    @property
    def tuples(self) -> int:
        """Different 4-tuples to draw from."""
        return max(64, min(MOST_TUPLES, self.records // RECORDS_PER_TUPLE))

    @property
    def pairs(self) -> int:
        return self.tuples // TUPLES_PER_PAIR

    @property
    def addresses(self) -> int:
        return max(16, self.pairs // PAIRS_PER_ADDRESS)


# ---- a profile in one line -----------------------------------------------------------------------

ENDLESS_SECONDS: Final = 30 * 86_400.0
"""The planned length of a source without an end: its rate is even over this time."""
ENDLESS_START, ENDLESS_LENGTH = 10.0, 20.0
"""The default start and length of a scenario of such a source."""

WHOLE: Final = frozenset({"packets", "seed", "links", "hosts", "servers", "snaplen"})


@dataclass(frozen=True)
class Wanted:
    """The settings of a generated live source."""

    base: Profile
    link: int | None
    starts: bool
    """Whether it says when the first packet is sent; else it is now."""

    def profile(self, start_time: float) -> Profile:
        """The profile, with the start it has by itself or this one."""
        return self.base if self.starts else replace(self.base, start_time=start_time)


def parse_words(location: str) -> Wanted:
    """Read the words of a location.

    Raises:
        SourceError: a word is unknown, or its value makes no sense.
    """
    settings: dict[str, Any] = {}
    scenarios: list[dict[str, Any]] = []
    link: int | None = None
    known = {field.name for field in fields(Profile)} - {"scenarios"}
    for word in filter(None, (part.strip() for part in location.split(","))):
        name, equals, value = (part.strip() for part in word.partition("="))
        name = name.replace("-", "_")
        if not equals or not value:
            raise SourceError(f"'{word}' of a generate source is not NAME=VALUE")
        if name == "scenario":
            scenarios.append({"name": value.lower().replace("-", "_")})
        elif name in WORDS_OF_SCENARIO:
            if not scenarios:
                raise SourceError(f"{name} says how a scenario goes: write scenario=NAME before")
            scenarios[-1][WORDS_OF_SCENARIO[name]] = (
                value if name == "victim" else _number(name, value)
            )
        elif name == "link":
            link = int(_number(name, value))
        elif name in known:
            settings[name] = int(_number(name, value)) if name in WHOLE else _number(name, value)
        else:
            listed = ", ".join(sorted(known | {"scenario", "link", *WORDS_OF_SCENARIO}))
            raise SourceError(f"unknown word '{name}' of a generate source; known: {listed}")
    return _wanted(settings, scenarios, link)


def _wanted(settings: dict[str, Any], scenarios: list[dict[str, Any]], link: int | None) -> Wanted:
    if "duration" not in settings and "packets" not in settings:
        settings["duration"] = ENDLESS_SECONDS
        for one in scenarios:
            one.setdefault("start", ENDLESS_START)
            one.setdefault("duration", ENDLESS_LENGTH)
    try:
        if scenarios:
            settings["scenarios"] = tuple(Scenario(**one) for one in scenarios)
        base = Profile(**({"start_time": 0.0} | settings))
    except ProfileError as mistake:
        raise SourceError(f"generate source: {mistake}") from None
    if link is not None and not 0 <= link < base.links:
        raise SourceError(f"a generate source with links={base.links} has no link={link}")
    return Wanted(base, link, "start_time" in settings)


def _number(name: str, text: str) -> float:
    """10000, 10k, 2.5M."""
    try:
        return scaled_number(text)
    except ValueError:
        raise SourceError(f"{name}={text} of a generate source is not a number") from None
