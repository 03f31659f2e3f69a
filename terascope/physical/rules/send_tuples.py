"""Partitions send tuples where that is less work than partial groups.

In: a draft whose partitions own some streams, with the deliveries of its low-level streams. Out:
the draft with the reads whose tuples are sent.

For an aggregation that is not compatible with the partitioning, every partition sends partial
groups (P2 5.2.2): one for a tuple, at worst. Many such aggregations send more groups than there are
tuples, and each group is packed, moved and merged. The tuples are sent once, whatever the number of
aggregations, and a task that gets all tuples of an epoch has its groups complete. The paper's cost
model charges an incompatible node with its input for the same reason (P2 4.2.1).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from terascope.physical.draft import JobDraft
from terascope.physical.job import SourceRead
from terascope.physical.low_plan import LowAggregate
from terascope.physical.ownership import KeyOwnership
from terascope.physical.settings import sample_limits
from terascope.physical.splits import epoch_of
from terascope.physical.statistics.measured import Measured
from terascope.physical.statistics.prospects import AGGREGATION_SECONDS, SAMPLE_SECONDS
from terascope.physical.statistics.sampling import SourceSample
from terascope.physical.time_ranges import has_epochs
from terascope.plan.show import show_expr

PARTIAL_NS: Final = 250.0
"""The cost of packing, moving and merging a partial group."""
SENT_NS: Final = 60.0
"""The cost of putting a tuple into its range and of taking it from there."""
COLUMN_NS: Final = 20.0
"""The cost of packing, moving and unpacking a column of a tuple."""
USUAL_PARTIALS: Final = 0.05
"""The assumed partial groups for each tuple and aggregation, where there is no sample."""
WORTH_SAMPLING: Final = 4.0
"""The gain that a sample must promise, in multiples of its cost: it is taken on one core while the
others are idle."""


def send_tuples(draft: JobDraft) -> JobDraft:
    """Before: partial groups of central aggregations leave the partitions      After: tuples do,
    once for all aggregations of a read, where that costs less.
    """
    owned = draft.ownership
    if owned is None or draft.destination == "stream" or draft.config.send_tuples == "never":
        return draft
    reads = [read for read in draft.deliveries.reads if owned.has(read.interfaces)]
    chosen = {read.name: chosen_of(draft, owned, read) for read in reads}
    sending = {name: frozenset(some) for name, some in chosen.items() if some}
    return replace(draft, ownership=replace(owned, sending=sending))


def chosen_of(draft: JobDraft, owned: KeyOwnership, read: SourceRead) -> set[str]:
    """The aggregations of a read for which its tuples are sent, all that can use them or none."""
    if read.edge is None or not has_epochs(read, read.edge):
        return set()
    central = [q for q in read.aggregations if q.name not in owned.kept and completes(q, read)]
    chosen = joined_alike(draft, {query.name for query in central})
    if draft.config.send_tuples == "always" or not chosen:
        return chosen
    assert read.low is not None
    columns = len(read.low.part_of(chosen).columns_used)
    sample = sample_of(draft, read, len(chosen))
    partials = sum(partials_of(q, sample, owned.count) for q in central if q.name in chosen)
    return chosen if PARTIAL_NS * partials > SENT_NS + COLUMN_NS * columns else set()


def joined_alike(draft: JobDraft, names: set[str]) -> set[str]:
    """Return the streams whose join partners are among them, too: tasks join streams that they both
    compute.
    """
    sides = [{side.program.stream for side in join.sides} for join in draft.deliveries.joins]
    while apart := [some for some in sides if some & names and not some <= names]:
        names = names.difference(*apart)
    return names


def completes(query: LowAggregate, read: SourceRead) -> bool:
    """Whether a task with all tuples of a range of time has whole epochs of an aggregation."""
    epoch, edge = query.epoch_expr, read.edge
    names = {one.name for one in read.interfaces}
    if epoch is None or edge is None or not set(query.interfaces) <= names:
        return False
    column, _ = epoch_of(epoch)
    return column == edge.column


def sample_of(draft: JobDraft, read: SourceRead, central: int) -> SourceSample | None:
    """A sample of a read: the one that other rules have asked for, or one of its own where the
    partial groups are likely to cost more than the sample.
    """
    _, known = draft.measured.samples.get(read.name, (None, None))
    if known is not None:
        return known
    tuples = sum(one.estimated_tuples() for one in read.interfaces)
    likely = 1e-9 * PARTIAL_NS * USUAL_PARTIALS * central * tuples
    pays = likely > WORTH_SAMPLING * (SAMPLE_SECONDS + AGGREGATION_SECONDS * central)
    if not pays and draft.config.share_sample != "always":
        return None
    return Measured(sample_limits(draft.config)).sample(read)


def partials_of(query: LowAggregate, sample: SourceSample | None, partitions: int) -> float:
    """The partial groups that all partitions send of an aggregation, for each tuple of the read."""
    if sample is None or not sample.tuples_kept or not sample.has(query):
        return USUAL_PARTIALS
    found = sample.statistics(query)
    if not found.tuples:
        return 0.0
    keys = frozenset(map(show_expr, query.plain_keys))
    groups = found.groups(keys, found.tuples / partitions) if keys else 1.0
    taken = len(sample.passed(query.name)) / sample.tuples_kept
    return min(1.0, partitions * groups / found.tuples) * taken
