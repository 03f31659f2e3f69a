"""Interfaces as live sources, without an engine: growing files, paced replays, made traffic.

In: interfaces and a folder for the journal. Out: offsets, and the splits between them. Reading
order: settings, journal, followed, growth, link, file_link, generator_link, progress, links (the
entry).
"""

from terascope.connectors.live.link import LinkOffset, LinkState, Offset
from terascope.connectors.live.links import Links
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
