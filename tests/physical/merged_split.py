"""The high part of a plan over low-level groups that were merged already."""

from __future__ import annotations

from collections.abc import Mapping

from terascope.physical.rules.merged_groups import assume_merged
from terascope.physical.split.split_plan import SplitPlan
from terascope.plan.plan import Plan
from terascope.reference.rows import Rows, same_row


def over_merged_groups(split: SplitPlan, streams: Mapping[str, Rows]) -> Plan:
    """A split plan without super-aggregations that have nothing left to do. `streams`: what the
    reference makes of the split. It computes low-level aggregations whole, so that a group is one
    row; only sums of FLOATs of several ranges are several rows, and have to be merged.
    """
    keys = {
        name: names for name, names in split.low_keys.items() if are_unique(streams[name], names)
    }
    merged = tuple(type(s)(s.name, assume_merged(s.rel, keys), s.visible) for s in split.plan)
    return Plan(merged, split.plan.parameters)


def are_unique(rows: Rows, keys: tuple[str, ...]) -> bool:
    places = [i for i, field in enumerate(rows.fields) if field.name in keys]
    found = [same_row(row[i] for i in places) for row in rows.tuples]
    return len(set(found)) == len(found)
