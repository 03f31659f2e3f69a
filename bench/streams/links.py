"""Traces of monitored links: two busy ones and one that is silent (dissertation 4.8).

In: a rate, seconds, a seed. Out: captures under the data folder, cut at 64 bytes, in pieces of 30
seconds, so that longer and shorter experiments share them. Both links have more than 100,000
packets in every second of the trace at scale 1; the silent one has a single packet at the start.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.experiment import Settings, Tell
from bench.harness import made_once
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate, link_files

PIECE_SECONDS = 30
RATE = 220_000
"""Packets per second of both links together, so that either has more than 100,000."""
SNAPLEN = 64
MOST_PIECES = 10
"""Their numbers have one digit."""
FILE_HEADER, RECORD_HEADER = 24, 16
SMALL_RATE = 2_000


@dataclass(frozen=True)
class Trace:
    """Some seconds of the links."""

    sources: Mapping[str, str]
    """Interface -> KIND:LOCATION."""
    seconds: int
    bytes: int
    packets: int

    def per_second(self) -> float:
        """Bytes of all links in a second of the trace."""
        return self.bytes / self.seconds


def busy_and_silent(settings: Settings, seconds: int, tell: Tell, rate: int = RATE) -> Trace:
    """So many seconds, rounded up to whole pieces, of main0, main1 and control."""
    rate = settings.count(rate)
    pieces = -(-seconds // PIECE_SECONDS)
    assert 0 < pieces <= MOST_PIECES, f"{seconds} s are too many pieces"
    folder = settings.data / f"links-{rate}-seed{settings.seed}"
    files: list[list[Path]] = [[], []]
    for number in range(pieces):
        make = partial(piece, rate=rate, number=number, seed=settings.seed)
        made = made_once(folder / f"piece-{number}", make)
        for link, path in enumerate(link_files(made / "link.pcap", 2)):
            files[link].append(path)
        tell(f"piece {number + 1} of {pieces}: {PIECE_SECONDS} s of two links in {folder}")
    silent = made_once(folder / "silent.pcap", lambda path: first_packet(files[0][0], path))
    last = pieces - 1
    sources = {f"main{link}": f"pcap:{folder}/piece-[0-{last}]/link-{link}.pcap" for link in (0, 1)}
    sources["control"] = f"pcap:{silent}"
    size = sum(path.stat().st_size for some in files for path in some)
    return Trace(sources, pieces * PIECE_SECONDS, size, rate * pieces * PIECE_SECONDS)


def small(settings: Settings, tell: Tell) -> Trace:
    """Little traffic of the same kind, to warm up with."""
    scale = SMALL_RATE / RATE / settings.scale
    return busy_and_silent(settings, PIECE_SECONDS, tell, max(1, round(RATE * scale)))


def piece(folder: Path, *, rate: int, number: int, seed: int) -> None:
    """Thirty seconds, that follow on those of the piece before."""
    folder.mkdir(parents=True)
    profile = Profile(
        rate=rate,
        duration=PIECE_SECONDS,
        start_time=1_700_000_000.0 + number * PIECE_SECONDS,
        seed=seed + 1000 * number,
        links=2,
        snaplen=SNAPLEN,
        ipv6_share=0.0,
        hosts=40_000,
        servers=4_000,
    )
    generate(profile, folder / "link.pcap")


def first_packet(capture: Path, silent: Path) -> None:
    """A capture of the first packet of another."""
    with capture.open("rb") as file:
        head = file.read(FILE_HEADER + RECORD_HEADER)
        (length,) = struct.unpack_from("<I", head, FILE_HEADER + 8)
        silent.write_bytes(head + file.read(length))
