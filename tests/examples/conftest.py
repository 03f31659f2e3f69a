from __future__ import annotations

from pathlib import Path

import pytest

from terascope.traffic.profile import Profile, Scenario
from terascope.traffic.trace import generate


@pytest.fixture(scope="session")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two minutes with a SYN flood in them: trace.pcap, and the same as link-0 to link-2.pcap."""
    folder = tmp_path_factory.mktemp("traffic")
    flood = Scenario("syn_flood", start=45, duration=30)
    for name, links in (("trace.pcap", 1), ("link.pcap", 3)):
        profile = Profile(
            rate=45, duration=120, seed=2, hosts=40, servers=8, links=links, scenarios=(flood,)
        )
        generate(profile, folder / name)
    return folder
