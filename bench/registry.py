"""All experiments, by name; each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from bench.experiment import BenchError, Experiment

EXPERIMENTS: dict[str, str] = {
    "queries78": "bench.queries78",
    "set50": "bench.set50",
    "cache": "bench.cache",
    "decode": "bench.decode",
    "split": "bench.split",
    "onemore": "bench.onemore",
    "scaling": "bench.scaling",
    "budget": "bench.budget",
    "many-groups": "bench.many_groups",
    "group-counts": "bench.group_counts",
    "trees": "bench.shared.trees",
    "hundred": "bench.shared.many",
    "fig2-zipf": "bench.trees.zipf",
    "fig3-evictions": "bench.trees.evictions",
    "fig4-memory": "bench.trees.memory",
    "fig5-speedup": "bench.trees.speedup",
    "tree-floor": "bench.trees.floor",
    "start": "bench.start",
    "advise": "bench.advise",
    "crash": "bench.crash",
    "fig7-communication": "bench.windows.communication",
    "fig8-computation": "bench.windows.computation",
    "windows-peers": "bench.windows.peers",
    "heartbeat-merge": "bench.streams.merge",
    "heartbeat-join": "bench.streams.join",
    "heartbeat-cpu": "bench.streams.cpu",
    "stream-rate": "bench.streams.rate",
    "soak": "bench.streams.soak",
    "shapes": "bench.shapes",
    "float-sums": "bench.float_sums",
    "fig2-3-traffic": "bench.holistic.traffic",
    "table3-quantiles": "bench.holistic.quantile_table",
    "fig4-quantiles": "bench.holistic.quantile_scratchpads",
    "fig5-6-sketches": "bench.holistic.sketch_pairs",
    "fig7-real": "bench.holistic.sketch_real",
    "fig8-groups": "bench.holistic.sketch_groups",
    "fig9-10-adaptive": "bench.holistic.sketch_thresholds",
    "fig11-accuracy": "bench.holistic.sketch_accuracy",
    "fig8-9": "bench.hosts.fig8_9",
    "fig10-11": "bench.hosts.fig10_11",
    "fig13-14": "bench.hosts.fig13_14",
    "fig6-10-11": "bench.hosts.fig6_10_11",
    "hosts-rows": "bench.hosts.counted",
    "partitioned-peers": "bench.hosts.peers",
    "bounds": "bench.bounds",
    "udaf-peers": "bench.holistic.udaf_peers",
    "state-memory": "bench.holistic.state_memory",
}
"""Name -> the module that holds it as EXPERIMENT."""


def find_experiment(name: str) -> Experiment:
    """The experiment of that name.

    Raises:
        BenchError: there is no experiment of that name.
    """
    if name not in EXPERIMENTS:
        raise BenchError(f"no experiment '{name}'; there are {', '.join(EXPERIMENTS)}")
    return cast(Experiment, import_module(EXPERIMENTS[name]).EXPERIMENT)
