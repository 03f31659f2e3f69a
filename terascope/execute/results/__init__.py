"""Rows as files: the parts of a result, their order, one file of many parts."""
