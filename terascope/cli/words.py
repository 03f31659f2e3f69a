"""The words of the help: docstrings of the commands, and the examples below them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import cleandoc


def examples(*lines: str) -> str:
    """One example a line; square brackets are text here, not markup."""
    shown = [f"  [cyan]{line.replace('[', chr(92) + '[')}[/cyan]" for line in lines]
    return "\n".join(["[bold]Examples[/bold]", *shown])


def help_text(function: Callable[..., None]) -> str:
    """A docstring as help: the lines of a paragraph are the terminal's to break."""
    paragraphs = cleandoc(function.__doc__ or "").split("\n\n")
    return "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)


EXAMPLES: Mapping[str, str] = {
    "terascope": examples(
        "terascope demo",
        "terascope generate trace.pcap --duration 120 --scenario syn_flood",
        "terascope run flows.gsql --source eth0=pcap:trace.pcap",
    ),
    "check": examples(
        "terascope check flows.gsql",
        "terascope check flows.gsql --source eth0=pcap:trace.pcap --param threshold=100",
        "cat flows.gsql | terascope check -",
    ),
    "fmt": examples(
        "terascope fmt flows.gsql",
        "terascope fmt --write queries/*.gsql",
        "terascope fmt --check queries/*.gsql",
    ),
    "explain": examples(
        "terascope explain flows.gsql",
        "terascope explain flows.gsql --stage split",
        "terascope explain flows.gsql --stage job --source pcap:trace.pcap",
        "terascope explain flows.gsql --format dot | dot -Tsvg > flows.svg",
        "terascope explain flows.gsql --format html > flows.html",
    ),
    "stats": examples(
        "terascope stats flows.gsql --source eth0=pcap:trace.pcap",
        "terascope stats flows.gsql --source flows=parquet:flows.parquet --tuples 1M --seconds 10",
        "terascope stats flows.gsql --source pcap:trace.pcap --json | jq '.sources[].keys'",
    ),
    "run": examples(
        "terascope run flows.gsql --source eth0=pcap:trace.pcap",
        "terascope run schema.gsql flows.gsql --source eth0=pcap:trace.pcap",
        "terascope run flows.gsql --source 'pcap:captures/*.pcap.gz' --output out --format parquet",
        "terascope run pairs.gsql --source a=pcap:a.pcap --source b=pcap:b.pcap --set main=a,b",
        "terascope run log.gsql --source log=csv:log.csv --source-option 'log.delimiter=;'",
        "terascope run flows.gsql --source pcap:trace.pcap --format ndjson | jq .",
        "terascope run flows.gsql --stream --source eth0=pcap:captures --output out",
        "terascope run flows.gsql --stream --source eth0=pcap:trace.pcap --speed 10x --until-idle",
    ),
    "status": examples(
        "terascope status",
        "terascope status --watch",
        "terascope status --checkpoint state --json | jq .sources",
    ),
    "why": examples(
        "terascope why talkers",
        "terascope why talkers --checkpoint state",
    ),
    "tail": examples(
        "terascope tail talkers",
        "terascope tail talkers --from-start --format csv > talkers.csv",
        "terascope tail talkers --checkpoint state --rows 100 --no-follow",
        "terascope tail scanners --format ndjson | jq .srcIP",
    ),
    "set": examples(
        "terascope set threshold=200",
        "terascope set victim=10.1.2.3 --checkpoint state",
    ),
    "generate": examples(
        "terascope generate trace.pcap --duration 120 --rate 5000",
        "terascope generate trace.parquet --packets 1M --seed 7",
        "terascope generate attack.pcap.gz --scenario syn_flood --victim 10.1.2.3 --start 40",
        "terascope generate day.pcap --scenario port_scan:start=10 --scenario flash_crowd:start=60",
        "terascope generate flows.parquet --flows 20M",
    ),
    "calibrate": examples(
        "terascope calibrate",
        "terascope calibrate --output costs.json",
    ),
    "demo": examples(
        "terascope demo",
        "terascope demo --seed 7 --victim 198.18.0.77 --start 50",
        "terascope demo --scenario quiet",
        "terascope demo --keep demo-files",
    ),
    "bench": examples(
        "terascope bench",
        "terascope bench queries78 --scale 0.1",
        "terascope bench set50 --only terascope,duckdb --runs 5",
        "terascope bench decode --json | tail -1",
    ),
}
