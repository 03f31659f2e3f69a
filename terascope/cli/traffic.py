"""The commands about synthetic traffic with known properties: `terascope generate` writes it, and
`terascope demo` finds an attack in it.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, fields
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_type_hints

import typer

from terascope.cli.command import QUIET, argument, flag, keyword, misuse, read_flag
from terascope.diagnostic import OutputError
from terascope.traffic.profile import (
    EXTENT,
    SCENARIOS,
    WORDS_OF_SCENARIO,
    FlowProfile,
    Profile,
    ProfileError,
    Scenario,
)
from terascope.units import NANOSECONDS, readable_bytes, readable_moment, scaled_number

if TYPE_CHECKING:
    from terascope.traffic.flows import ScenarioReport


@dataclass(frozen=True)
class ScenarioFlags:
    """The events on top of the quiet traffic."""

    PANEL: ClassVar = "Scenarios"
    scenario: list[str] | None = flag(
        "quiet, syn_flood, port_scan, amplification or flash_crowd; keys are victim,"
        " start, duration, intensity. May be repeated.",
        metavar="NAME[:KEY=VALUE,...]",
    )
    victim: str | None = flag("Who is attacked; a busy server by default.", metavar="ADDRESS")
    start: float | None = flag(
        "When it begins, after the first packet; a third of the trace by default.",
        metavar="SECONDS",
    )
    length: float | None = flag(
        "How long it lasts; a third of the trace by default.", metavar="SECONDS"
    )
    intensity: float | None = flag("Packets it adds, as a multiple of the quiet rate.")

    def scenarios(self) -> tuple[Scenario, ...]:
        """A scenario for each --scenario; the plain flags are the defaults of all scenarios."""
        common = {name: getattr(self, word) for word, name in WORDS_OF_SCENARIO.items()}
        if not self.scenario and any(value is not None for value in common.values()):
            raise misuse(
                "--scenario",
                "--victim, --start, --length and --intensity say how a scenario goes: give one",
            )
        return tuple(scenario_of(text, common) for text in self.scenario or ())


def profile_flags() -> list[Parameter]:
    """A flag for each setting of a `Profile` that has a help text."""
    hints = get_type_hints(Profile)
    return [
        keyword(
            field.name,
            hints[field.name],
            flag(
                field.metadata["help"],
                default=field.default,
                rich_help_panel=field.metadata["panel"],
            ),
        )
        for field in fields(Profile)
        if field.metadata
    ]


def generate(
    *,
    output: Path = argument("Where to: .pcap, .pcap.gz or .parquet.", "FILE"),
    packets: str | None = flag("Exactly so many packets; 10k, 2.5M.", rich_help_panel=EXTENT),
    flows: str | None = flag(
        "So many flow records, as routers export them, instead of packets; 20M. Into a"
        " .parquet file, an hour of them unless --duration says otherwise.",
        rich_help_panel=EXTENT,
    ),
    events: ScenarioFlags,
    quiet: bool = QUIET,
    **settings: Any,
) -> None:
    """Write synthetic but realistic traffic, with attacks when asked for.

    Zipf popularity, TCP flows with handshakes and retransmissions, UDP and DNS, bursts;
    reproducible by seed. Give at most two of --packets, --rate and --duration.

    Examples:
        terascope generate trace.pcap --duration 120 --rate 5000
        terascope generate trace.parquet --packets 1M --seed 7
        terascope generate attack.pcap.gz --scenario syn_flood --victim 10.1.2.3 --start 40
        terascope generate day.pcap --scenario port_scan:start=10 --scenario flash_crowd:start=60
        terascope generate flows.parquet --flows 20M
    """
    if flows is None:
        scenarios = events.scenarios()
        count = None if packets is None else count_of(packets)
        with read_flag(None, ProfileError):
            profile = Profile(packets=count, scenarios=scenarios, **settings)
        write_traffic(output, profile, quiet)
    elif (packets, settings["rate"], events.scenario, settings["links"]) != (None, None, None, 1):
        without = "flow records go without --packets, --rate, --scenario and --links"
        raise misuse("--flows", without)
    else:
        write_traffic(output, flow_profile(flows, settings), quiet)


def flow_profile(records: str, settings: dict[str, Any]) -> FlowProfile:
    exponents = {name: value for name, value in settings.items() if name.endswith("_exponent")}
    duration = settings["duration"]
    count = count_of(records, "--flows")
    with read_flag(None, ProfileError):
        return FlowProfile(
            records=count,
            duration=3600 if duration is None else round(duration),
            start_time=round(settings["start_time"]),
            seed=settings["seed"],
            **exponents,
        )


def count_of(text: str, flag: str = "--packets") -> int:
    """10000, 10k, 2.5M."""
    try:
        return round(scaled_number(text))
    except ValueError:
        raise misuse(flag, f"'{text}' is not a number of {flag.removeprefix('--')}") from None


def scenario_name(text: str) -> str:
    """SYN flood, syn-flood and syn_flood are the same."""
    name = text.strip().lower().replace("-", "_").replace(" ", "_")
    if name not in SCENARIOS:
        raise misuse("--scenario", f"no scenario '{text}'; there are {', '.join(SCENARIOS)}")
    return name


def scenario_of(text: str, common: dict[str, Any]) -> Scenario:
    """NAME:KEY=VALUE,... as a scenario. An IPv6 address has colons, never commas."""
    name, _, settings = text.partition(":")
    own = dict(common)
    for setting in filter(None, settings.split(",")):
        key, equals, value = (part.strip() for part in setting.partition("="))
        if key not in own or not equals:
            known = ", ".join(f"{k}=.." for k in own)
            raise misuse("--scenario", f"'{setting}' is not one of {known}")
        try:
            own[key] = value if key == "victim" else float(value)
        except ValueError:
            raise misuse("--scenario", f"'{value}' is not a number") from None
    with read_flag(None, ProfileError):
        return Scenario(scenario_name(name), **own)


# ---- writing -------------------------------------------------------------------------------------


def write_traffic(output: Path, profile: Profile | FlowProfile, quiet: bool) -> None:
    """Write a trace or flow records; print a line about it and one about each scenario."""
    from terascope.cli.progress import counting
    from terascope.traffic.flow_records import generate_flows
    from terascope.traffic.trace import generate

    is_parquet = output.name.endswith(".parquet")
    if isinstance(profile, Profile):
        if not is_parquet and not re.search(r"\.(pcap|cap)(\.gz)?$", output.name):
            raise misuse("FILE", f"'{output}' ends neither in .pcap, .pcap.gz nor .parquet")
        make = partial(generate, profile, output)
        expected, what, unit = profile.expected_packets, "packets", "packets"
    else:
        if not is_parquet:
            raise misuse("FILE", f"'{output}' does not end in .parquet, the form of flow records")
        make = partial(generate_flows, profile, output)
        expected, what, unit = profile.records, "flow records", "records"
    check_writable(output)
    began = time.monotonic()
    with counting("generating", expected, unit, quiet) as count:
        report = make(count)
    seconds = max(time.monotonic() - began, 1e-9)
    total, names = sum(report.counts), ", ".join(map(str, report.files))
    typer.echo(
        f"{names}: {total:,} {what}, {readable_bytes(report.bytes)} in {seconds:.1f} s"
        f" ({total / seconds:,.0f} {unit}/s)"
    )
    for scenario in report.scenarios:
        typer.echo(scenario_line(scenario))


def check_writable(output: Path) -> None:
    """Find out before the work.

    Raises:
        OutputError: the file cannot be written.
    """
    if output.is_dir():
        raise OutputError(f"cannot write '{output}': it is a directory")
    if not output.absolute().parent.is_dir():
        raise OutputError(f"cannot write '{output}': its directory does not exist")


def scenario_line(scenario: ScenarioReport) -> str:
    start, end = (readable_moment(t * NANOSECONDS) for t in (scenario.start, scenario.end))
    by = f" by {scenario.attacker}" if scenario.attacker else ""
    return f"  {scenario.name}: {scenario.victim}{by}, {start} to {end} UTC"


# ---- the demo ------------------------------------------------------------------------------------


def demo(
    seed: int = flag("Another number, other traffic.", default=7, min=0),
    victim: str | None = flag("The attacked host.", metavar="ADDRESS"),
    start: float | None = flag("When it begins, after the start.", metavar="SECONDS", min=0),
    scenario: str = flag(
        "quiet, syn_flood, port_scan, amplification or flash_crowd.", default="syn_flood"
    ),
    keep: Path | None = flag("Keep the trace, the queries and the results here.", metavar="DIR"),
) -> None:
    """Generate traffic with an attack in it, and find the attack.

    Two minutes of traffic, about ten queries of the papers over it, and at the end the attacked
    host and the time, with the tables they followed from.

    Examples:
        terascope demo
        terascope demo --seed 7 --victim 198.18.0.77 --start 50
        terascope demo --scenario quiet
        terascope demo --keep demo-files
    """
    from terascope.demo import run_demo

    name = scenario_name(scenario)
    with read_flag(None, ProfileError):
        run_demo(seed=seed, victim=victim, start=start, scenario=name, keep=keep)
