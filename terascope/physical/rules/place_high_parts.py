"""The high parts of queries, over groups that the merge has completed.

In: a draft with the tables of its low level. Out: the relations above, without super-aggregations
that have nothing left to merge, and over streams of windows that the merge assembles itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from terascope.functions.aggregates.float_sums import FloatRange
from terascope.optimize.driver import apply_below
from terascope.physical.draft import JobDraft
from terascope.physical.rules.merged_groups import Assembly, assume_merged, merged_jointly, tidy
from terascope.physical.rules.share_tables import low_output
from terascope.physical.split.drafts import Names
from terascope.plan.rel import Aggregate, Read, Rel


def place_high_parts(draft: JobDraft) -> JobDraft:
    """Before: Aggregate by a: sum(cnt) (Read low)      After: Project a, cnt (Read low)"""
    rels = {stream.name: stream.rel for stream in draft.whole}
    if not draft.is_native:
        return replace(draft, streams=rels, trees=rels)
    high, assembly, merged = merged_above(draft)
    both = [low_output(stream) for stream in draft.hosted if stream.name in draft.in_spark]
    low = (
        *(replace(o, merged_above=o.name in merged) for o in (*draft.low, *both)),
        *assembly.made.values(),
    )
    return replace(draft, streams=high, low=low, trees=rels | assembly.trees)


def merged_above(draft: JobDraft) -> tuple[dict[str, Rel], Assembly, frozenset[str]]:
    """The high parts, their streams of windows, and the streams whose groups are merged above.

    Groups of a stream that both the tasks and Spark emit are merged above. So are groups that Spark
    emits in one row for each range of the summed FLOATs.
    """
    both = {stream.name for stream in draft.hosted} & draft.in_spark.keys()
    partial = both | {name for name, rel in draft.in_spark.items() if has_ranges(rel)}
    keys = {name: key for name, key in draft.split.low_keys.items() if name not in partial}
    high, assembly = over_groups(draft, keys)
    merged = merged_jointly(high.values())
    if merged & keys.keys():  # then all readers of such a stream merge its groups
        left = {name: key for name, key in keys.items() if name not in merged}
        high, assembly = over_groups(draft, left)
    return high, assembly, merged


def over_groups(
    draft: JobDraft, keys: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, Rel], Assembly]:
    """The high parts over low-level streams of which each group, by these keys, is one row."""
    lowest = {stream.name for stream in draft.split.low}

    def over_view(rel: Rel) -> Rel | None:
        """The view of a stream that shares a table of another stream."""
        return draft.views.get(rel.stream) if isinstance(rel, Read) else None

    made = {
        stream.name: apply_below(apply_below(assume_merged(stream.rel, keys), over_view), tidy)
        for stream in draft.whole
        if stream.name not in lowest
    }
    low = {} if draft.is_live else {output.name: output for output in draft.low}
    assembly = Assembly(low, Names({stream.name for stream in draft.whole}))
    return assembly.over_windows(made), assembly


def has_ranges(rel: Rel) -> bool:
    """Whether groups have one row for each range of the summed FLOATs."""
    aggs = rel.aggs if isinstance(rel, Aggregate) else ()
    return any(isinstance(call.function, FloatRange) for _, call in aggs)
