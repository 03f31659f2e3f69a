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
from terascope.physical.splits import epoch_of
from terascope.physical.time_ranges import central_aggregations, has_epochs
from terascope.plan.show import show_expr

PARTIAL_NS: Final = 250.0
"""To pack, move and merge a partial group."""
SENT_NS: Final = 60.0
"""To put a tuple into its range, and to take it from there."""
COLUMN_NS: Final = 20.0
"""To pack, move and unpack a column of a tuple."""
USUAL_PARTIALS: Final = 0.2
"""The partial groups for each tuple and aggregation, where no sample tells."""


def send_tuples(draft: JobDraft) -> JobDraft:
    """Before: partial groups of central aggregations leave the partitions      After: tuples do,
    once for all aggregations of a read, where that costs less.
    """
    owned = draft.ownership
    if owned is None or draft.destination == "stream" or draft.config.send_tuples == "never":
        return draft
    reads = (read for read in draft.deliveries.reads if owned.has(read.interfaces))
    sending = frozenset(read.name for read in reads if sends(draft, owned, read))
    return replace(draft, ownership=replace(owned, sending=sending))


def sends(draft: JobDraft, owned: KeyOwnership, read: SourceRead) -> bool:
    central = central_aggregations(owned, read)
    if not central or read.edge is None or not has_epochs(read, read.edge):
        return False
    if not all(completes(query, read) for query in central):
        return False
    if draft.config.send_tuples == "always":
        return True
    assert read.low is not None
    columns = len(read.low.part_of({query.name for query in central}).columns_used)
    partials = sum(partials_of(draft, owned, read, query) for query in central)
    return PARTIAL_NS * partials > SENT_NS + COLUMN_NS * columns


def completes(query: LowAggregate, read: SourceRead) -> bool:
    """Whether a task with all tuples of a range of time has whole epochs of an aggregation."""
    epoch, edge = query.epoch_expr, read.edge
    names = {one.name for one in read.interfaces}
    if epoch is None or edge is None or not set(query.interfaces) <= names:
        return False
    column, _ = epoch_of(epoch)
    return column == edge.column


def partials_of(
    draft: JobDraft, owned: KeyOwnership, read: SourceRead, query: LowAggregate
) -> float:
    """The partial groups that all partitions send of an aggregation, for each tuple of the read."""
    _, sample = draft.measured.samples.get(read.name, (None, None))
    keys = frozenset(map(show_expr, query.plain_keys))
    if sample is None or not sample.tuples_kept or not sample.has(query):
        return USUAL_PARTIALS
    found = sample.statistics(query)
    if not found.tuples:
        return 0.0
    groups = found.groups(keys, found.tuples / owned.count) if keys else 1.0
    taken = len(sample.passed(query.name)) / sample.tuples_kept
    return min(1.0, owned.count * groups / found.tuples) * taken
