"""What the queries of a set can share: statistics, slices of windows, trees of aggregates."""
