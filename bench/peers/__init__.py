"""Contenders: each runs a `Workload` in its own way and writes every query's rows as Parquet."""
