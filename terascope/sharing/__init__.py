"""Sharing between queries as pure arithmetic: statistics, slices, aggregate trees."""
