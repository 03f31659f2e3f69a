"""Synthetic traffic: realistic packets with known properties, reproducible by seed.

In: a `Profile`. Out: pcap or Parquet files. Reading order: profile, population, flows and
scenarios, conversations (flows become packets), stream (packets in order of time), frames (packets
become bytes), writers, trace (the entry).
"""

from terascope.connectors.generate.profile import SCENARIOS, Profile, ProfileError, Scenario
from terascope.connectors.generate.trace import (
    GenerateReport,
    ScenarioReport,
    generate,
    link_files,
)

__all__ = [
    "SCENARIOS",
    "GenerateReport",
    "Profile",
    "ProfileError",
    "Scenario",
    "ScenarioReport",
    "generate",
    "link_files",
]
