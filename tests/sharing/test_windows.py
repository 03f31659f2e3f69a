"""Which windows share slices: paper 0's inequality (3), with the costs of what is really done."""

from __future__ import annotations

import random
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.sharing.slices import MOST_SLICES, Periodic, paired
from terascope.sharing.windows import (
    TUPLE_NS,
    Cluster,
    TupleTraffic,
    assumed,
    pays_from,
    share,
    ungrouped,
)

slides = st.sampled_from([1, 2, 3, 4, 5, 6, 8, 9, 10, 12])
windows = st.builds(Periodic, st.integers(1, 60), slides)
traffics = st.builds(TupleTraffic, st.floats(0.01, 1e6), st.sampled_from([ungrouped, assumed(1)]))


@settings(deadline=None)
@given(st.lists(windows, min_size=1, max_size=6), traffics)
def test_what_is_chosen_costs_no_more_than_the_alternatives(
    some: list[Periodic], traffic: TupleTraffic
) -> None:
    shared = share(some, traffic)
    assert sorted(shared.of) == sorted(set(some))
    assert shared.alternatives["unshared"] is not None
    known = [cost for cost in shared.alternatives.values() if cost is not None]
    assert shared.cost() <= min(known) * (1 + 1e-9)


def one_group(tuples: float) -> float:
    return 1.0


def test_sharing_pays_from_a_rate_on() -> None:
    some = [Periodic(1500 + 37 * i, 1000) for i in range(8)]
    busy = share(some, TupleTraffic(1000.0, one_group))
    assert len(busy.clusters) == 1
    at = pays_from(busy.clusters[0], busy.traffic)
    assert at is not None
    apart = [Cluster((w,), paired(w)) for w in some]
    for rate, better in ((at * 1.1, True), (at * 0.9, False)):
        traffic = TupleTraffic(rate, one_group)
        together = busy.clusters[0].cost(traffic)
        assert (together < sum(c.cost(traffic) for c in apart)) == better


def test_slices_that_do_not_reduce_the_data_are_not_shared() -> None:
    """Every tuple is a group of its own: to put epochs together costs more than to look it up."""
    some = [Periodic(60, 60), Periodic(90, 90), Periodic(300, 300)]
    shared = share(some, TupleTraffic(1000.0, lambda tuples: tuples))
    assert len(shared.clusters) == 3
    few = share(some, TupleTraffic(1000.0, ungrouped))
    assert len(few.clusters) == 1


def test_windows_whose_common_period_is_enormous_stay_apart() -> None:
    some = [Periodic(1, 86_399), Periodic(1, 86_400), Periodic(60, 60), Periodic(90, 60)]
    shared = share(some, TupleTraffic(1e5, ungrouped))
    assert all(len(c.vector.lengths) <= MOST_SLICES for c in shared.clusters)
    assert shared.of[Periodic(60, 60)] is shared.of[Periodic(90, 60)]
    assert shared.alternatives["shared paired"] is None


def test_hundreds_of_windows_are_decided_in_seconds() -> None:
    rng = random.Random(7)
    some = [Periodic(rng.randint(1, 600), rng.choice([5, 10, 15, 30, 60, 300])) for _ in range(300)]
    begun = time.perf_counter()
    shared = share(some, TupleTraffic(1e5, assumed(2)))
    assert time.perf_counter() - begun < 30
    assert len(shared.clusters) < len(set(some))


def test_a_tumbling_window_alone_needs_no_assembly() -> None:
    traffic = TupleTraffic(100.0, assumed(1))
    alone = share([Periodic(60, 60)], traffic)
    assert not alone.clusters[0].assembles
    assert alone.cost() == traffic.rate * TUPLE_NS
