"""How a set is planned: which engine runs its low level, its tables, what its queries share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from terascope.analysis.costs import Costs
from terascope.kernels.tables.table_policies import Policy
from terascope.physical.low_plan import Flush, TableKind
from terascope.physical.split.host import COMPILED_HOST, Host
from terascope.physical.statistics.caches import cache_bytes
from terascope.physical.statistics.sampling import SampleLimits
from terascope.sharing.cost import EXCHANGE, Accounting, accounting_for
from terascope.sharing.windows import Mode

TreeMode: TypeAlias = Literal["time", "operations", "never"]
Leaves: TypeAlias = Literal["bounded", "free"]
Backend: TypeAlias = Literal["native", "catalyst", "auto"]
Destination: TypeAlias = Literal["frames", "files", "rows", "stream"]
"""Where results go: DataFrames for a caller; files, written by the tasks that have the rows; rows
for a terminal, kept in files and sorted when somebody looks; or the results of a stream."""


@dataclass(frozen=True)
class TableSettings:
    """How tables are kept, for all queries alike."""

    kind: TableKind = "open"
    flush: Flush = "eager"
    memory_bytes: int = 1 << 30
    """Of one task."""
    compiled: bool = True


@dataclass(frozen=True)
class TreeSettings:
    """How trees are planned."""

    mode: TreeMode = "time"
    """What they shall save: time, in tables that grow; or hash operations, in tables that share a
    fixed memory, as paper 4 has it."""
    memory_bytes: int | None = None
    """M: what the tables may use; None: the caches of a core."""
    eps: float = 0.05
    table: Policy = "lru"
    """Of nodes that do not get all the memory they want."""
    leaves: Leaves = "bounded"
    """Whether M is for the tables of queries, too, and what leaves them is paid for; or for inner
    nodes only, as paper 4 has it. Only where trees save operations."""

    @property
    def budget(self) -> int:
        return self.memory_bytes or cache_bytes()

    @property
    def accounting(self) -> Accounting:
        """What trees that save operations are planned with."""
        return (
            accounting_for(self.table, EXCHANGE, bounded_leaves=True)
            if self.leaves == "bounded"
            else accounting_for(self.table)
        )


ENOUGH_TO_DECIDE: Final = SampleLimits(tuples=1 << 15, seconds=0.5)
"""What is read of a source before it is read."""


@dataclass(frozen=True)
class SharingSettings:
    """What the queries of a set share."""

    windows: Mode = "cost"
    """Slices."""
    predicates: Literal["cost", "never", "always"] = "cost"
    """Tables of aggregations with the same keys and different conditions."""
    trees: TreeSettings = field(default_factory=TreeSettings)
    """Intermediate aggregates."""
    sample: SampleLimits | None = ENOUGH_TO_DECIDE
    """What is read of a source to decide by; None: nothing."""
    sampling: Literal["cost", "always"] = "cost"
    """Whether that is read: where what could be saved pays for it, or always. Trees that save
    operations are asked for whatever that takes."""


SAMPLED = SharingSettings(sampling="always")
"""Everything is shared where that is cheaper, however little there is to be saved."""


APART = SharingSettings(predicates="never", trees=TreeSettings("never"), sample=None)
"""Every aggregation has a table of its own, and nothing is measured."""


@dataclass(frozen=True)
class LowSettings:
    """Who runs the low level, and how.

    `native`: compiled kernels in the tasks that read; `catalyst`: DataFrame operations over the
    tuples; `auto`: native wherever the source can host it, which all but DataFrames can.
    """

    backend: Backend = "auto"
    host: Host = COMPILED_HOST
    costs: Costs = field(default_factory=Costs)
    tables: TableSettings = field(default_factory=TableSettings)
    sharing: SharingSettings = field(default_factory=SharingSettings)
