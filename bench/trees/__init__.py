"""The experiments of paper 4: how skewed streams are, what leaves small tables, what trees cost.

`fig2-zipf`, `fig3-evictions`, `fig4-memory` and `fig5-speedup` are the paper's figures 2 to 5, over
the same streams (streams.py). Hash operations are counted by the low level as it executes a planned
tree (execution.py); nothing is simulated.
"""
