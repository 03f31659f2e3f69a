"""Compiled code that knows no plans: expressions, columns, tables, merges and files as arrays."""
