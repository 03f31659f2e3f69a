"""`terascope generate`: synthetic traffic with known properties."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

import typer

from terascope.cli.command import Quiet, flag, keyword
from terascope.traffic.profile import SCENARIOS, FlowProfile, Profile, ProfileError, Scenario
from terascope.units import NANOSECONDS, readable_bytes, readable_moment, scaled_number

if TYPE_CHECKING:
    from terascope.traffic.trace import ScenarioReport

T = TypeVar("T")


@dataclass(frozen=True)
class ExtentFlags:
    """How much to generate, and from when on."""

    PANEL: ClassVar = "Extent"
    packets: str | None = flag("--packets", help="Exactly so many packets; 10k, 2.5M.")
    flows: str | None = flag(
        "--flows",
        help="So many flow records, as routers export them, instead of packets; 20M. Into a"
        " .parquet file, an hour of them unless --duration says otherwise.",
    )
    rate: float | None = flag(
        "--rate", help="Packets per second of the quiet traffic; 10000 by default."
    )
    duration: float | None = flag("--duration", help="Seconds; 60 by default.")
    start_time: float = flag(
        "--start-time", default=1.7e9, help="Time of the first packet, seconds since 1970."
    )
    seed: int = flag("--seed", default=1, help="The same seed, the same bytes.")
    links: int = flag(
        "--links", default=1, help="Monitored links, a file each: FILE-0, FILE-1, ..."
    )
    snaplen: int = flag("--snaplen", default=65535, help="Bytes captured of a packet at most.")


@dataclass(frozen=True)
class ScenarioFlags:
    """What happens on top of the quiet traffic."""

    PANEL: ClassVar = "Scenarios"
    scenario: list[str] | None = flag(
        "--scenario",
        metavar="NAME[:KEY=VALUE,...]",
        help="quiet, syn_flood, port_scan, amplification or flash_crowd; keys are victim,"
        " start, duration, intensity. May be repeated.",
    )
    victim: str | None = flag(
        "--victim", metavar="ADDRESS", help="Who is attacked; a busy server by default."
    )
    start: float | None = flag(
        "--start",
        metavar="SECONDS",
        help="When it begins, after the first packet; a third of the trace by default.",
    )
    length: float | None = flag(
        "--length", metavar="SECONDS", help="How long it lasts; a third of the trace by default."
    )
    intensity: float | None = flag(
        "--intensity", help="Packets it adds, as a multiple of the quiet rate."
    )

    def scenarios(self) -> tuple[Scenario, ...]:
        """What each --scenario says; the plain flags are the defaults of all scenarios."""
        common = {
            "victim": self.victim,
            "start": self.start,
            "duration": self.length,
            "intensity": self.intensity,
        }
        if not self.scenario and any(value is not None for value in common.values()):
            raise typer.BadParameter(
                "--victim, --start, --length and --intensity say how a scenario goes: give one",
                param_hint="--scenario",
            )
        return tuple(scenario_of(text, common) for text in self.scenario or ())


TRAFFIC, POPULARITY, RATE = "Traffic", "Popularity", "Rate"
SHAPE = {
    "hosts": (TRAFFIC, "Clients."),
    "servers": (TRAFFIC, "Servers."),
    "mean_flow": (TRAFFIC, "Packets per flow, both directions."),
    "udp_share": (TRAFFIC, "Share of the flows."),
    "dns_share": (TRAFFIC, "Share of the UDP flows."),
    "icmp_share": (TRAFFIC, "Share of the flows."),
    "http_share": (TRAFFIC, "Share of the TCP flows."),
    "ipv6_share": (TRAFFIC, "Share of the flows."),
    "retransmission_rate": (TRAFFIC, "Share of the TCP data packets."),
    "rst_rate": (TRAFFIC, "Share of the TCP flows that end in RST."),
    "unanswered_rate": (TRAFFIC, "Share of the TCP flows nobody answers."),
    "source_exponent": (POPULARITY, "Zipf exponent of sources."),
    "pair_exponent": (POPULARITY, "Zipf exponent of address pairs."),
    "tuple_exponent": (POPULARITY, "Zipf exponent of 4-tuples."),
    "diurnal_amplitude": (RATE, "How much day and night differ, 0 to 1."),
    "diurnal_period": (RATE, "Seconds of a day."),
    "burstiness": (RATE, "Deviation of the logarithm of the rate in 0.1 s."),
}
"""Fields of a `Profile` that are flags of the same name, with their panel and help."""


def shape_flags() -> list[Parameter]:
    defaults = {field.name: field.default for field in fields(Profile)}
    return [
        keyword(
            name,
            Annotated[type(defaults[name]), typer.Option(help=help, rich_help_panel=panel)],
            defaults[name],
        )
        for name, (panel, help) in SHAPE.items()
    ]


def generate(
    output: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where to: .pcap, .pcap.gz or .parquet.")
    ],
    extent: ExtentFlags,
    events: ScenarioFlags,
    quiet: Quiet = False,
    **shape: Any,
) -> None:
    """Write synthetic but realistic traffic, with attacks when asked for.

    Zipf popularity, TCP flows with handshakes and retransmissions, UDP and DNS, bursts;
    reproducible by seed. Give at most two of --packets, --rate and --duration.
    """
    if extent.flows is None:
        write_packets(output, packet_profile(extent, events, shape), quiet)
    elif (extent.packets, extent.rate, events.scenario, extent.links) != (None, None, None, 1):
        raise typer.BadParameter(
            "flow records go without --packets, --rate, --scenario and --links",
            param_hint="--flows",
        )
    else:
        write_flows(output, flow_profile(extent, extent.flows, shape), quiet)


# ---- flags ---------------------------------------------------------------------------------------


def packet_profile(extent: ExtentFlags, events: ScenarioFlags, shape: dict[str, Any]) -> Profile:
    scenarios = events.scenarios()
    return checked(
        lambda: Profile(
            packets=None if extent.packets is None else count_of(extent.packets),
            rate=extent.rate,
            duration=extent.duration,
            start_time=extent.start_time,
            seed=extent.seed,
            scenarios=scenarios,
            links=extent.links,
            snaplen=extent.snaplen,
            **shape,
        )
    )


def flow_profile(extent: ExtentFlags, records: str, shape: dict[str, Any]) -> FlowProfile:
    exponents = {name: shape[name] for name in SHAPE if name.endswith("_exponent")}
    return checked(
        lambda: FlowProfile(
            records=count_of(records, "--flows"),
            duration=3600 if extent.duration is None else round(extent.duration),
            start_time=round(extent.start_time),
            seed=extent.seed,
            **exponents,
        )
    )


def checked(make: Callable[[], T]) -> T:
    """A profile, or a mistake of usage."""
    try:
        return make()
    except ProfileError as mistake:
        raise typer.BadParameter(str(mistake)) from None


def count_of(text: str, flag: str = "--packets") -> int:
    """10000, 10k, 2.5M."""
    try:
        return round(scaled_number(text))
    except ValueError:
        raise typer.BadParameter(
            f"'{text}' is not a number of {flag.removeprefix('--')}", param_hint=flag
        ) from None


def scenario_name(text: str) -> str:
    """SYN flood, syn-flood and syn_flood are the same."""
    name = text.strip().lower().replace("-", "_").replace(" ", "_")
    if name not in SCENARIOS:
        raise typer.BadParameter(
            f"no scenario '{text}'; there are {', '.join(SCENARIOS)}", param_hint="--scenario"
        )
    return name


def scenario_of(text: str, common: dict[str, Any]) -> Scenario:
    """NAME:KEY=VALUE,... as a scenario. An IPv6 address has colons, never commas."""
    name, _, settings = text.partition(":")
    own = dict(common)
    for setting in filter(None, settings.split(",")):
        key, equals, value = (part.strip() for part in setting.partition("="))
        if key not in own or not equals:
            raise typer.BadParameter(
                f"'{setting}' is not one of {', '.join(f'{k}=..' for k in own)}",
                param_hint="--scenario",
            )
        own[key] = value if key == "victim" else number(value)
    return checked(lambda: Scenario(scenario_name(name), **own))


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a number", param_hint="--scenario") from None


# ---- writing -------------------------------------------------------------------------------------


def write_packets(output: Path, profile: Profile, quiet: bool) -> None:
    """A trace, and a line about it and about each scenario."""
    from terascope.cli.progress import counting
    from terascope.traffic.trace import generate

    format: Literal["pcap", "parquet"] = "parquet" if output.name.endswith(".parquet") else "pcap"
    if format == "pcap" and not re.search(r"\.(pcap|cap)(\.gz)?$", output.name):
        raise typer.BadParameter(
            f"'{output}' ends neither in .pcap, .pcap.gz nor .parquet", param_hint="FILE"
        )
    check_writable(output)
    began = time.monotonic()
    with counting("generating", profile.expected_packets, "packets", quiet) as count:
        report = generate(profile, output, format, count)
    names = ", ".join(map(str, report.files))
    typer.echo(done_line(names, report.total_packets, "packets", report.bytes, began))
    for scenario in report.scenarios:
        typer.echo(scenario_line(scenario))


def write_flows(output: Path, profile: FlowProfile, quiet: bool) -> None:
    """Flow records, and a line about them."""
    from terascope.cli.progress import counting
    from terascope.traffic.flow_records import generate_flows

    if not output.name.endswith(".parquet"):
        raise typer.BadParameter(
            f"'{output}' does not end in .parquet, the form of flow records", param_hint="FILE"
        )
    check_writable(output)
    began = time.monotonic()
    with counting("generating", profile.records, "records", quiet) as count:
        report = generate_flows(profile, output, count)
    typer.echo(done_line(str(report.file), report.records, "flow records", report.bytes, began))


def check_writable(output: Path) -> None:
    """Find out before the work.

    Raises:
        OutputError: the file cannot be written.
    """
    from terascope.diagnostic import OutputError

    if output.is_dir():
        raise OutputError(f"cannot write '{output}': it is a directory")
    if not output.absolute().parent.is_dir():
        raise OutputError(f"cannot write '{output}': its directory does not exist")


def done_line(names: str, count: int, noun: str, size: int, began: float) -> str:
    """What was written, and how fast."""
    seconds = max(time.monotonic() - began, 1e-9)
    return (
        f"{names}: {count:,} {noun}, {readable_bytes(size)} in {seconds:.1f} s"
        f" ({count / seconds:,.0f} {noun.split()[-1]}/s)"
    )


def scenario_line(scenario: ScenarioReport) -> str:
    start, end = (readable_moment(t * NANOSECONDS) for t in (scenario.start, scenario.end))
    by = f" by {scenario.attacker}" if scenario.attacker else ""
    return f"  {scenario.name}: {scenario.victim}{by}, {start} to {end} UTC"
