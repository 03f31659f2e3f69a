"""`terascope generate`: synthetic traffic with known properties."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from terascope.cli.binding import Debug

if TYPE_CHECKING:
    from terascope.cli.progress import Counted
    from terascope.traffic import FlowProfile, GenerateReport, Profile, Scenario

EXTENT, SCENARIO, TRAFFIC, POPULARITY, RATE = "Extent", "Scenarios", "Traffic", "Popularity", "Rate"
SUFFIXES = {"k": 10**3, "M": 10**6, "G": 10**9}


def generate(
    output: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Where to: .pcap, .pcap.gz or .parquet.", show_default=False
        ),
    ],
    packets: Annotated[
        str | None,
        typer.Option(
            help="Exactly so many packets; 10k, 2.5M.", rich_help_panel=EXTENT, show_default=False
        ),
    ] = None,
    flows: Annotated[
        str | None,
        typer.Option(
            help="So many flow records, as routers export them, instead of packets; 20M. Into a"
            " .parquet file, an hour of them unless --duration says otherwise.",
            rich_help_panel=EXTENT,
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            help="Packets per second of the quiet traffic; 10000 by default.",
            rich_help_panel=EXTENT,
            show_default=False,
        ),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(help="Seconds; 60 by default.", rich_help_panel=EXTENT, show_default=False),
    ] = None,
    start_time: Annotated[
        float,
        typer.Option(help="Time of the first packet, seconds since 1970.", rich_help_panel=EXTENT),
    ] = 1_700_000_000.0,
    seed: Annotated[
        int, typer.Option(help="The same seed, the same bytes.", rich_help_panel=EXTENT)
    ] = 1,
    links: Annotated[
        int,
        typer.Option(
            help="Monitored links, a file each: FILE-0, FILE-1, ...", rich_help_panel=EXTENT
        ),
    ] = 1,
    snaplen: Annotated[
        int, typer.Option(help="Bytes captured of a packet at most.", rich_help_panel=EXTENT)
    ] = 65535,
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:KEY=VALUE,...]",
            help="quiet, syn_flood, port_scan, amplification or flash_crowd; keys are victim,"
            " start, duration, intensity. May be repeated.",
            rich_help_panel=SCENARIO,
        ),
    ] = None,
    victim: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Who is attacked; a busy server by default.",
            rich_help_panel=SCENARIO,
            show_default=False,
        ),
    ] = None,
    start: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="When it begins, after the first packet; a third of the trace by default.",
            rich_help_panel=SCENARIO,
            show_default=False,
        ),
    ] = None,
    length: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="How long it lasts; a third of the trace by default.",
            rich_help_panel=SCENARIO,
            show_default=False,
        ),
    ] = None,
    intensity: Annotated[
        float | None,
        typer.Option(
            help="Packets it adds, as a multiple of the quiet rate.",
            rich_help_panel=SCENARIO,
            show_default=False,
        ),
    ] = None,
    hosts: Annotated[int, typer.Option(help="Clients.", rich_help_panel=TRAFFIC)] = 4000,
    servers: Annotated[int, typer.Option(help="Servers.", rich_help_panel=TRAFFIC)] = 400,
    mean_flow: Annotated[
        float, typer.Option(help="Packets per flow, both directions.", rich_help_panel=TRAFFIC)
    ] = 20.0,
    udp_share: Annotated[
        float, typer.Option(help="Share of the flows.", rich_help_panel=TRAFFIC)
    ] = 0.15,
    dns_share: Annotated[
        float, typer.Option(help="Share of the UDP flows.", rich_help_panel=TRAFFIC)
    ] = 0.7,
    icmp_share: Annotated[
        float, typer.Option(help="Share of the flows.", rich_help_panel=TRAFFIC)
    ] = 0.01,
    http_share: Annotated[
        float, typer.Option(help="Share of the TCP flows.", rich_help_panel=TRAFFIC)
    ] = 0.35,
    ipv6_share: Annotated[
        float, typer.Option(help="Share of the flows.", rich_help_panel=TRAFFIC)
    ] = 0.1,
    retransmission_rate: Annotated[
        float, typer.Option(help="Share of the TCP data packets.", rich_help_panel=TRAFFIC)
    ] = 0.01,
    rst_rate: Annotated[
        float, typer.Option(help="Share of the TCP flows that end in RST.", rich_help_panel=TRAFFIC)
    ] = 0.03,
    unanswered_rate: Annotated[
        float,
        typer.Option(help="Share of the TCP flows nobody answers.", rich_help_panel=TRAFFIC),
    ] = 0.005,
    source_exponent: Annotated[
        float, typer.Option(help="Zipf exponent of sources.", rich_help_panel=POPULARITY)
    ] = 0.85,
    pair_exponent: Annotated[
        float, typer.Option(help="Zipf exponent of address pairs.", rich_help_panel=POPULARITY)
    ] = 0.67,
    tuple_exponent: Annotated[
        float, typer.Option(help="Zipf exponent of 4-tuples.", rich_help_panel=POPULARITY)
    ] = 0.48,
    diurnal_amplitude: Annotated[
        float, typer.Option(help="How much day and night differ, 0 to 1.", rich_help_panel=RATE)
    ] = 0.3,
    diurnal_period: Annotated[
        float, typer.Option(help="Seconds of a day.", rich_help_panel=RATE)
    ] = 86400.0,
    burstiness: Annotated[
        float,
        typer.Option(help="Deviation of the logarithm of the rate in 0.1 s.", rich_help_panel=RATE),
    ] = 0.3,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    debug: Debug = False,
) -> None:
    """Write synthetic but realistic traffic, with attacks when asked for.

    Zipf popularity, TCP flows with handshakes and retransmissions, UDP and DNS, bursts;
    reproducible by seed. Give at most two of --packets, --rate and --duration.
    """
    from terascope.traffic import FlowProfile, Profile, ProfileError
    from terascope.traffic import generate as write_trace

    del debug
    if flows is not None:
        if (packets, rate, scenario) != (None, None, None) or links != 1:
            raise typer.BadParameter(
                "flow records go without --packets, --rate, --scenario and --links",
                param_hint="--flows",
            )
        try:
            wanted = FlowProfile(
                records=count_of(flows, "--flows"),
                duration=3600 if duration is None else round(duration),
                start_time=round(start_time),
                seed=seed,
                source_exponent=source_exponent,
                pair_exponent=pair_exponent,
                tuple_exponent=tuple_exponent,
            )
        except ProfileError as mistake:
            raise typer.BadParameter(str(mistake)) from None
        write_flows(wanted, output, quiet)
        return
    try:
        profile = Profile(
            packets=None if packets is None else count_of(packets),
            rate=rate,
            duration=duration,
            start_time=start_time,
            seed=seed,
            scenarios=scenarios_of(scenario or [], victim, start, length, intensity),
            links=links,
            hosts=hosts,
            servers=servers,
            source_exponent=source_exponent,
            pair_exponent=pair_exponent,
            tuple_exponent=tuple_exponent,
            mean_flow=mean_flow,
            udp_share=udp_share,
            dns_share=dns_share,
            icmp_share=icmp_share,
            http_share=http_share,
            ipv6_share=ipv6_share,
            retransmission_rate=retransmission_rate,
            rst_rate=rst_rate,
            unanswered_rate=unanswered_rate,
            diurnal_amplitude=diurnal_amplitude,
            diurnal_period=diurnal_period,
            burstiness=burstiness,
            snaplen=snaplen,
        )
    except ProfileError as mistake:
        raise typer.BadParameter(str(mistake)) from None
    format: Literal["pcap", "parquet"] = "parquet" if output.name.endswith(".parquet") else "pcap"
    if format == "pcap" and not re.search(r"\.(pcap|cap)(\.gz)?$", output.name):
        raise typer.BadParameter(
            f"'{output}' ends neither in .pcap, .pcap.gz nor .parquet", param_hint="FILE"
        )
    check_writable(output)
    report = with_progress(profile, quiet, lambda tell: write_trace(profile, output, format, tell))
    for line in report_lines(*report):
        typer.echo(line)


# ---- flags ---------------------------------------------------------------------------------------


def count_of(text: str, flag: str = "--packets") -> int:
    """10000, 10k, 2.5M."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMG]?)", text.strip().replace("_", ""))
    if match is None:
        raise typer.BadParameter(
            f"'{text}' is not a number of {flag.removeprefix('--')}", param_hint=flag
        )
    return round(float(match.group(1)) * SUFFIXES.get(match.group(2), 1))


def scenario_name(text: str) -> str:
    """SYN flood, syn-flood and syn_flood are the same."""
    from terascope.traffic import SCENARIOS

    name = text.strip().lower().replace("-", "_").replace(" ", "_")
    if name not in SCENARIOS:
        raise typer.BadParameter(
            f"no scenario '{text}'; there are {', '.join(SCENARIOS)}", param_hint="--scenario"
        )
    return name


def scenarios_of(
    texts: list[str],
    victim: str | None,
    start: float | None,
    length: float | None,
    intensity: float | None,
) -> tuple[Scenario, ...]:
    """What each --scenario says; the plain flags hold for all that say nothing else."""
    from terascope.traffic import Scenario

    if not texts and (victim, start, length, intensity) != (None,) * 4:
        raise typer.BadParameter(
            "--victim, --start, --length and --intensity say how a scenario goes: give one",
            param_hint="--scenario",
        )
    found = []
    for text in texts:
        name, _, settings = text.partition(":")
        own = {"victim": victim, "start": start, "duration": length, "intensity": intensity}
        # An IPv6 address has colons, never commas.
        for setting in filter(None, settings.split(",")):
            key, equals, value = setting.partition("=")
            if key.strip() not in own or not equals:
                raise typer.BadParameter(
                    f"'{setting}' is not one of {', '.join(f'{k}=..' for k in own)}",
                    param_hint="--scenario",
                )
            own[key.strip()] = value if key.strip() == "victim" else number(value)
        found.append(Scenario(scenario_name(name), **own))  # type: ignore[arg-type]
    return tuple(found)


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a number", param_hint="--scenario") from None


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


# ---- running -------------------------------------------------------------------------------------


def with_progress(
    profile: Profile, quiet: bool, write: Callable[[Counted | None], GenerateReport]
) -> tuple[GenerateReport, float]:
    """The report, and the seconds it took."""
    from terascope.cli.progress import counting

    began = time.monotonic()
    with counting("generating", profile.expected_packets, "packets", quiet) as tell:
        report = write(tell)
    return report, time.monotonic() - began


def write_flows(profile: FlowProfile, output: Path, quiet: bool) -> None:
    """Flow records, and a line about them."""
    from terascope.cli.progress import counting
    from terascope.traffic import generate_flows
    from terascope.units import readable_bytes

    if not output.name.endswith(".parquet"):
        raise typer.BadParameter(
            f"'{output}' does not end in .parquet, the form of flow records", param_hint="FILE"
        )
    check_writable(output)
    began = time.monotonic()
    with counting("generating", profile.records, "records", quiet) as tell:
        report = generate_flows(profile, output, tell)
    seconds = time.monotonic() - began
    typer.echo(
        f"{report.file}: {report.records:,} flow records, {readable_bytes(report.bytes)}"
        f" in {seconds:.1f} s ({report.records / max(seconds, 1e-9):,.0f} records/s)"
    )


def report_lines(report: GenerateReport, seconds: float) -> list[str]:
    from terascope.units import readable_bytes

    speed = report.total_packets / max(seconds, 1e-9)
    names = ", ".join(map(str, report.files))
    lines = [
        f"{names}: {report.total_packets:,} packets, {readable_bytes(report.bytes)}"
        f" in {seconds:.1f} s ({speed:,.0f} packets/s)"
    ]
    for each in report.scenarios:
        by = f" by {each.attacker}" if each.attacker else ""
        lines.append(
            f"  {each.name}: {each.victim}{by}, {clock(each.start)} to {clock(each.end)} UTC"
        )
    return lines


def clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
