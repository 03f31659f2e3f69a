"""What a decision says of a tree and of the flat plan, in both accountings."""

from __future__ import annotations

import pytest

from terascope.config import Config
from terascope.physical.rules.grow_trees import decided
from terascope.sharing.cost import EXCHANGE, Accounting, evaluate
from terascope.sharing.curves import Curves
from tests.settings import config_with
from tests.stream.test_replanning import FIRST, PAIRS, family_of

MEMBERS = family_of(PAIRS).members
ROOMY = [
    config_with(share_trees="time"),
    config_with(share_trees="operations", tree_memory=1 << 24),
    config_with(share_trees="operations", tree_memory=1 << 24, tree_leaves="free"),
]


@pytest.mark.parametrize("settings", ROOMY, ids=lambda s: f"{s.share_trees} {s.tree_leaves}")
def test_with_room_for_all_only_the_exchange_of_groups_is_added(settings: Config) -> None:
    found = decided("left", MEMBERS, FIRST, settings)
    groups = sum(FIRST.groups(node.attributes) for node in found.tree.nodes if node.is_query)
    assert found.partials == pytest.approx(groups)
    assert found.exchanged == pytest.approx(found.operations + EXCHANGE * groups)
    assert found.flat_exchanged == pytest.approx(found.flat_operations + EXCHANGE * groups)
    assert found.flat_operations == pytest.approx(len(PAIRS) * FIRST.tuples)
    assert found.operations < found.flat_operations


def test_within_little_memory_more_than_the_groups_leaves() -> None:
    """M is for all tables; what the plan minimises is what explain says of it."""
    settings = config_with(share_trees="operations", tree_memory=20_000)
    found = decided("left", MEMBERS, FIRST, settings)
    groups = sum(FIRST.groups(node.attributes) for node in found.tree.nodes if node.is_query)
    assert found.memory_bytes + found.query_bytes <= 20_000 * (1 + 1e-9)
    assert found.partials > 1.5 * groups
    assert found.cost == pytest.approx(found.exchanged)
    assert found.flat_cost == pytest.approx(found.flat_exchanged)
    curves = Curves(FIRST, "lru")
    assert found.exchanged == pytest.approx(
        evaluate(found.tree, curves, Accounting("lru", EXCHANGE, bounded_leaves=True)).total
    )
    paper = Accounting("lru")
    assert found.operations == pytest.approx(evaluate(found.tree, curves, paper).total)


def test_the_accounting_of_the_paper_bounds_inner_tables_only() -> None:
    free = decided(
        "left",
        MEMBERS,
        FIRST,
        config_with(share_trees="operations", tree_memory=20_000, tree_leaves="free"),
    )
    assert free.memory_bytes <= 20_000 * (1 + 1e-9)
    assert free.query_bytes > 20_000
    assert free.cost == pytest.approx(free.operations)
    bounded = decided(
        "left", MEMBERS, FIRST, config_with(share_trees="operations", tree_memory=20_000)
    )
    assert bounded.operations >= free.operations * (1 - 1e-9)
