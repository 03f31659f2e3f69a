"""The splitter: any source into N ordered streams, by a partitioning set (paper 2, 3.3).

Reading order: rule, outputs, captures, tables, rebalance, finished, follow.
"""
