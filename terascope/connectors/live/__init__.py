"""Interfaces as live sources, without an engine: growing files, paced replays, made traffic.

In: interfaces and a folder for the journal. Out: offsets, and the splits between them. Reading
order: settings, offset, entry, journal, growth with captures, texts, columnar and unpacked,
file_link, generator_link, clock, admission, progress, links (the entry).
"""

from terascope.connectors.live.link import LinkState
from terascope.connectors.live.links import Links
from terascope.connectors.live.offset import LinkOffset, Offset
from terascope.connectors.live.settings import LinkClock, LiveSettings, Speed

__all__ = [
    "LinkClock",
    "LinkOffset",
    "LinkState",
    "Links",
    "LiveSettings",
    "Offset",
    "Speed",
]
