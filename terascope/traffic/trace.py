"""The one entry: write a synthetic trace.

In: a profile, where to write, pcap or parquet. Out: the files, complete or not at all, and a report
of what is in them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from terascope.traffic.profile import Profile, ProfileError
from terascope.traffic.randomness import Array
from terascope.traffic.stream import TrafficStream, open_stream
from terascope.traffic.writers import ParquetWriter, PcapWriter, replaced

Format = Literal["pcap", "parquet"]


@dataclass(frozen=True)
class ScenarioReport:
    """What a scenario did, for whoever wants to check an answer against the truth."""

    name: str
    victim: str
    attacker: str | None
    start: float
    end: float
    """Seconds since 1970."""


@dataclass(frozen=True)
class GenerateReport:
    files: tuple[Path, ...]
    packets: tuple[int, ...]
    """Of each file."""
    bytes: int
    scenarios: tuple[ScenarioReport, ...]

    @property
    def total_packets(self) -> int:
        return sum(self.packets)


class _Writer(Protocol):
    def write(self, packets: Array) -> None: ...
    def close(self) -> None: ...


def generate(
    profile: Profile,
    output: Path,
    format: Format = "pcap",
    progress: Callable[[int, int], None] | None = None,
) -> GenerateReport:
    """Write the trace; `progress` is called with the packets done and the packets to expect.

    With several links, `trace.pcap` becomes `trace-0.pcap`, `trace-1.pcap`, ... Files that exist
    are replaced when the new ones are complete.

    Raises:
        ProfileError: the format is unknown.
        OSError: a file cannot be written.
    """
    if format not in ("pcap", "parquet"):
        raise ProfileError(f"unknown format '{format}', choose pcap or parquet")
    stream = open_stream(profile)
    files = link_files(output, profile.links)
    counts = [0] * len(files)
    with replaced(files) as parts, ExitStack() as opened:
        writers: list[_Writer] = []
        for part in parts:
            writers.append(_open(stream, part, format, output))
            opened.callback(writers[-1].close)
        for chunk in stream.chunks():
            for link, writer in enumerate(writers):
                mine = chunk if len(writers) == 1 else chunk[chunk["link"] == link]
                writer.write(mine)
                counts[link] += len(mine)
            if progress is not None:
                progress(sum(counts), max(profile.expected_packets, sum(counts)))
    size = sum(path.stat().st_size for path in files)
    return GenerateReport(files, tuple(counts), size, _scenario_reports(stream))


def link_files(output: Path, links: int) -> tuple[Path, ...]:
    """The file of each link."""
    if links == 1:
        return (output,)
    stem, dot, suffixes = output.name.partition(".")
    return tuple(output.with_name(f"{stem}-{link}{dot}{suffixes}") for link in range(links))


def _open(stream: TrafficStream, path: Path, format: Format, output: Path) -> _Writer:
    snaplen = stream.profile.snaplen
    if format == "parquet":
        return ParquetWriter(path, snaplen, stream.custom)
    return PcapWriter(path, snaplen, stream.custom, output.name.endswith(".gz"))


def _scenario_reports(stream: TrafficStream) -> tuple[ScenarioReport, ...]:
    origin = stream.profile.start_time
    return tuple(
        ScenarioReport(
            cast.scenario.name,
            cast.victim_text,
            cast.attacker_text,
            origin + cast.start,
            origin + cast.end,
        )
        for cast in stream.casts
    )
