"""Side-by-side measurements: `terascope bench NAME`.

In: the name of an experiment and a scale. Out: a table, a CSV file, a picture, one line of JSON.
Reading order: experiment (what an experiment is), harness (how one is run), worker and memory (one
process for each contender), compare (that all gave the same answers), report, then the experiments
of EXPERIMENTS in bench/registry.py and the contenders in bench/peers.
"""
