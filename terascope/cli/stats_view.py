"""The statistics of a set, as plain data and for a terminal.

In: a sample of each source. Out: one document for each, and tables of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from rich.console import Group
from rich.table import Table
from rich.text import Text

from terascope.display import plain_table
from terascope.physical.low_plan import LowAggregate
from terascope.physical.statistics.sampling import SourceSample
from terascope.plan.show import show_expr
from terascope.units import UNKNOWN, readable_count, readable_seconds

Document: TypeAlias = dict[str, Any]
"""A JSON object."""


def document(name: str, sample: SourceSample) -> Document:
    """The statistics of a source."""
    plan = sample.plan
    return {
        "source": name,
        "tuples_read": sample.tuples_read,
        "tuples_total": sample.tuples_total,
        "tuples_counted": sample.tuples_kept,
        "splits_read": sample.splits_read,
        "splits_total": sample.splits_total,
        "seconds": sample.seconds,
        "tuples_per_second": sample.rate,
        "keys": key_sets(sample),
        "queries": [
            {"query": query.name, "share": sample.selectivity(place)}
            for place, query in enumerate(plan.queries)
        ],
        "predicates": [
            {"predicate": show_expr(predicate), "share": sample.predicate_selectivity(bit)}
            for bit, predicate in enumerate(plan.predicates)
        ],
    }


def key_sets(sample: SourceSample) -> list[Document]:
    """Each different set of keys once for the same epochs of the same tuples, with all the queries
    that have it.
    """
    found: dict[object, list[LowAggregate]] = {}
    for query in sample.plan.queries:
        if isinstance(query, LowAggregate):
            epoch = None if query.epoch is None else query.keys[query.epoch][1]
            keys = frozenset(query.plain_keys)
            found.setdefault((keys, epoch, query.signature, query.rest), []).append(query)
    return [key_set(sample, queries) for queries in found.values()]


def key_set(sample: SourceSample, queries: Sequence[LowAggregate]) -> Document:
    query = queries[0]
    known = sample.statistics(query)
    keys = [show_expr(expr) for expr in query.plain_keys]
    groups = known.groups(frozenset(keys))
    low, high = known.bounds(frozenset(keys))
    return {
        "keys": keys,
        "epoch": None if query.epoch is None else show_expr(query.keys[query.epoch][1]),
        "queries": [query.name for query in queries],
        "epochs": known.epochs,
        "tuples": known.tuples,
        "groups": groups,
        "at_least": low,
        "at_most": high,
        "exact": known.is_whole,
        "exponent": known.exponent(frozenset(keys)),
        "tuples_per_group": known.tuples / groups if groups else None,
    }


def stats_view(sources: Sequence[Document]) -> Group:
    """The documents, to be printed on a rich console."""
    parts: list[Text | Table] = []
    for source in sources:
        partial = [query for query in source["queries"] if query["share"] < 1.0]
        parts += [Text(), headline(source)]
        parts += [Text(), keys_table(source["keys"])] if source["keys"] else []
        for name, rows in (("predicate", source["predicates"]), ("query", partial)):
            parts += [Text(), shares_table(name, rows)] if rows else []
    nothing = Text("no query of the set is computed next to its source", style="yellow")
    return Group(*parts[1:] or [nothing])


def headline(source: Document) -> Text:
    read, total = source["tuples_read"], source["tuples_total"]
    about = "" if source["splits_read"] == source["splits_total"] else "about "
    line = Text(source["source"], style="bold")
    line.append(f"  {about}{readable_count(total)} tuples, {readable_count(read)} read,", "")
    line.append(f" {readable_count(source['tuples_counted'])} counted")
    if source["tuples_per_second"] is not None:
        line.append(f"; {readable_count(source['tuples_per_second'])} a second")
        line.append(f" over {readable_seconds(source['seconds'])}")
    return line


def keys_table(rows: Sequence[Document]) -> Table:
    table = plain_table()
    table.add_column("keys", overflow="fold")
    table.add_column("epoch", overflow="fold")
    for name in ("epochs", "tuples", "groups", "at least", "at most", "exponent", "a group"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        mark = "" if row["exact"] else "~"
        table.add_row(
            ", ".join(row["keys"]) or UNKNOWN,
            row["epoch"] or UNKNOWN,
            readable_count(row["epochs"]),
            readable_count(row["tuples"]),
            mark + readable_count(row["groups"]),
            readable_count(row["at_least"]),
            readable_count(row["at_most"]),
            f"{row['exponent']:.2f}",
            UNKNOWN if row["tuples_per_group"] is None else f"{row['tuples_per_group']:,.1f}",
        )
    return table


def shares_table(name: str, rows: Sequence[Document]) -> Table:
    table = plain_table()
    table.add_column(name, overflow="fold")
    table.add_column("passes", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(Text(row[name]), f"{100 * row['share']:.2f}%")
    return table
