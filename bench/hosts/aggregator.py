"""One aggregator, which receives what the hosts of partitions send (paper 2, section 6).

In: the tasks of partitions. Out: their answers, and what was `Received`. The tasks run in Spark on
the hosts of their partitions; all that they hand on (partial groups, tuples, finished rows) comes
to this process, which does the rest of the work alone: the super-aggregates, the central joins and
the queries above. Terascope's own engine of Spark spreads this work over all hosts; the papers have
one aggregator, and measure the load on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from terascope.execute.merge import Merging
from terascope.execute.partition_task import PartitionWork
from terascope.execute.reports import Kind, TaskReports
from terascope.kernels.merge.payload import unpack, unpack_tuples
from terascope.local.run import LocalEngine, LocalPass
from terascope.physical.draft import JobDraft
from terascope.physical.job import Job
from terascope.physical.planner import RULES, JobRule, drafted
from terascope.physical.rules.own_by_key import own_by_key
from terascope.pipeline import Compiled
from terascope.plan.horizon import Horizons
from terascope.spark.engine import SparkBatchEngine, SparkPass

KINDS: Final[tuple[Kind, ...]] = ("groups", "rows")


@dataclass
class Received:
    """What the aggregator has received, by kind: partial groups, and tuples or finished rows."""

    rows: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    sizes: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))

    def add(self, kind: Kind, payload: bytes) -> None:
        self.sizes[kind] += len(payload)
        if kind == "groups":
            self.rows[kind] += unpack(payload).rows
        else:
            self.rows[kind] += sum(batch.num_rows for batch in unpack_tuples(payload))


class ReceivedPass(LocalPass):
    """The rows of tasks on hosts, which are received when they are needed."""

    def __init__(self, leaf: SparkPass, groups: SparkPass, received: Received) -> None:
        """`groups`: the pass with the partial groups, combined or not."""
        super().__init__(())
        self.leaf, self._groups, self._received = leaf, groups, received
        self._held: dict[Kind, list[tuple[int, int, bytes]]] = {}

    @property
    def reports(self) -> TaskReports:
        """Reports without the payloads that Spark has sent along."""
        rows = [*self.leaf.reports.rows]
        if self._groups is not self.leaf:
            rows = [row for row in rows if row.kind != "groups"] + [*self._groups.reports.rows]
        return TaskReports(
            [
                row if row.payload is None else replace(row, payload=None, dropped_bytes=row.size)
                for row in rows
            ]
        )

    def payloads(
        self, kind: Kind, streams: Collection[int] | None = None, destination: int | None = None
    ) -> Iterator[tuple[int, bytes]]:
        if kind not in self._held:
            plain = (self._groups if kind == "groups" else self.leaf).plain
            assert plain is not None
            found: list[Any] = plain.filter(lambda row: row[2] == kind).collect()
            self._held[kind] = [(row[0], row[1], bytes(row[3])) for row in found]
            for _, _, payload in self._held[kind]:
                self._received.add(kind, payload)
        for stream, home, payload in self._held[kind]:
            if (streams is None or stream in streams) and destination in (None, home):
                yield stream, payload


@dataclass(frozen=True)
class AggregatorEngine(LocalEngine):
    """Partitions are read in Spark, everything else is done here. `combining`: the partial groups
    of the partitions of a host are merged before they leave it.
    """

    spark: SparkBatchEngine | None = None
    combining: bool = False
    received: Received = field(default_factory=Received)

    def read_partitions(
        self,
        work: PartitionWork,
        leftovers: Collection[int],
        hosts: Sequence[Sequence[str]],
    ) -> ReceivedPass:
        assert self.spark is not None
        leaf = groups = self.spark.read_partitions(work, leftovers, hosts)
        if self.combining and leaf.reports.packed("groups"):
            merging = Merging(work.targets, None, work.memory_bytes)
            number = len({host for some in hosts for host in some})
            groups = self.spark.combine_on_hosts(leaf, merging, number, 1)
        return ReceivedPass(leaf, groups, self.received)

    def finish_partitions(
        self, work: PartitionWork, before: LocalPass, horizons: Horizons
    ) -> ReceivedPass:
        assert self.spark is not None
        assert isinstance(before, ReceivedPass)
        made = self.spark.finish_partitions(work, before.leaf, horizons)
        return ReceivedPass(made, made, self.received)

    def combine_on_hosts(
        self, one: LocalPass, merging: Merging, hosts: int, destinations: int
    ) -> LocalPass:
        """Done before, where it is done."""
        del merging, hosts, destinations
        return one


def job_with(compiled: Compiled, central: Collection[str]) -> Job:
    """The job of a set; streams of `central` are computed by the aggregator, though partitions
    could compute them.
    """

    def keep_central(draft: JobDraft) -> JobDraft:
        owned = draft.ownership
        if owned is None:
            return draft
        return replace(draft, ownership=replace(owned, kept=owned.kept - frozenset(central)))

    at = RULES.index(own_by_key) + 1
    rules: tuple[JobRule, ...] = (*RULES[:at], keep_central, *RULES[at:])
    bound = compiled.bindings
    config = bound.config.changed(send_tuples="never")  # the papers send partial groups
    draft = drafted(
        compiled.optimized, bound.interfaces, bound.cut_bytes(False), config, rules=rules
    )
    return draft.job()
