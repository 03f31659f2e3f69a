"""Settings of planning: the engine of the low level, its tables, and sharing between queries."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from terascope.analysis.costs import Costs
from terascope.config import Config
from terascope.kernels.tables.table_policies import Policy
from terascope.physical.split.host import HOSTS, Host
from terascope.physical.statistics.sampling import SampleLimits
from terascope.sharing.cost import EXCHANGE, Accounting

Destination: TypeAlias = Literal["frames", "files", "rows", "stream"]
"""The destination of results: DataFrames for a caller; files, written by the tasks that have the
rows; rows for a terminal, kept in files and sorted on demand; or the results of a stream."""

TREE_TABLE: Final[Policy] = "lru"
"""The kind of table of nodes with less memory than they can use."""
TREE_EPS: Final = 0.05
"""The largest distance of the plan of a tree from the best one (paper 4)."""
MOST_TUPLES: Final = 1 << 15
MOST_SECONDS: Final = 0.5
"""The time limit of the sample of a source."""
APART: Final = {"share_tables": "never", "share_trees": "never", "share_sample": "never"}
"""Every aggregation has a table of its own, and nothing is sampled."""


CACHES: Final = Path("/sys/devices/system/cpu/cpu0/cache")
UNKNOWN: Final = 4 << 20
"""The assumed bytes of the caches of a machine without a description."""


def host_of(config: Config) -> Host:
    return HOSTS[config.host]


def costs_of(config: Config) -> Costs:
    return Costs(config.costs, config.measured_costs, config.low_budget_ns)


def sample_limits(config: Config) -> SampleLimits | None:
    """The limits of the sample of a source; None: no sample."""
    if config.share_sample == "never":
        return None
    return SampleLimits(
        min(config.sample_tuples, MOST_TUPLES), min(config.sample_seconds, MOST_SECONDS)
    )


def tree_budget(config: Config) -> int:
    """The bytes that the tables of trees share where trees save operations."""
    return config.tree_memory or cache_bytes()


def tree_accounting(config: Config) -> Accounting:
    """The accounting by which trees that save operations are planned. With bounded leaves the
    tables of queries have a share of the memory, too, and groups that leave them early cost an
    exchange.
    """
    if config.tree_leaves == "bounded":
        return Accounting(TREE_TABLE, EXCHANGE, bounded_leaves=True)
    return Accounting(TREE_TABLE)


@cache
def cache_bytes(folder: Path = CACHES) -> int:
    """The largest data cache of a core, or its share of it: the tables next to a source should fit
    into it.
    """
    found = [UNKNOWN] if not folder.is_dir() else []
    for level in sorted(folder.glob("index*")):
        try:
            if (level / "type").read_text().strip() == "Instruction":
                continue
            total = 1024 * int((level / "size").read_text().strip().removesuffix("K"))
            cores = len(cores_of((level / "shared_cpu_list").read_text().strip()))
        except (OSError, ValueError):
            continue
        found.append(total // max(1, min(cores, os.cpu_count() or 1)))
    return max(found, default=UNKNOWN)


def cores_of(text: str) -> list[int]:
    """The number of cores in a list such as `0-3,8`."""
    cores: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores += range(int(first), int(last or first) + 1)
    return cores
