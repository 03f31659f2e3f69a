"""Table-like sources: CSV, JSON lines and Parquet files.

A row that does not fit (wrong number of fields, a value that is not of its column's type, broken
JSON, invalid UTF-8) is dropped and counted with its reason; all others are used. However a file is
split, its rows and their `#pos` are the same.
"""
