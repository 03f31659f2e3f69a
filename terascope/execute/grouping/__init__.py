"""Grouping: tuples and groups into tables, along aggregate trees, spilled where memory is short."""
