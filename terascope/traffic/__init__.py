"""Synthetic traffic: realistic packets with known properties, reproducible by seed.

In: a `Profile`. Out: pcap or Parquet files. Reading order: profile, population, flows and
scenarios, conversations (flows become packets), stream (packets in order of time), frames (packets
become bytes), writers, trace (the entry). Flow records, as routers export them, have files of their
own: flow_profile, flow_population, flow_records (the entry).
"""

from terascope.traffic.flow_profile import FlowProfile
from terascope.traffic.flow_records import FlowReport, generate_flows
from terascope.traffic.profile import SCENARIOS, Profile, ProfileError, Scenario
from terascope.traffic.trace import (
    GenerateReport,
    ScenarioReport,
    generate,
    link_files,
)

__all__ = [
    "SCENARIOS",
    "FlowProfile",
    "FlowReport",
    "GenerateReport",
    "Profile",
    "ProfileError",
    "Scenario",
    "ScenarioReport",
    "generate",
    "generate_flows",
    "link_files",
]
