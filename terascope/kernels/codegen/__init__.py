"""Expressions as generated source, compiled by numba and kept on disk."""
