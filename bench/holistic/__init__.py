"""The experiments of paper 1, sections 5 and 7: quantiles and heavy hitters at two levels.

What a tuple costs is measured at the low and at the high level apart, in the engine's own tables
(level_costs.py), on the paper's generated traffic (generated.py) and on real packets that are
replayed (replayed.py). Tables 1 and 2 of the paper are in the experiment `cache`.
"""
