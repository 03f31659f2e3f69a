"""Compiled code without plans: expressions, columns, tables, merges and files as arrays."""
