"""Advice on partitioning: the set by which to split each source of a query set (paper 2, 4.2)."""
