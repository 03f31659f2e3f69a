"""Query-aware partitioning (paper 2): sets that keep the work where the data is."""
