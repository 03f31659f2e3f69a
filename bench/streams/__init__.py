"""Experiments with sets that run as streams: heartbeats, speed, and a long run.

In: traces of links that are made once, and query sets. Out: what was measured while they ran.
Reading order: links (the traces), usage (processors and memory of a tree of processes), watching
(what is noted of every micro-batch), streamed (the contender), numbers (slopes and intervals), then
the experiments: merge, join and cpu (dissertation 4.8), rate, soak.
"""
