"""Columns as bytes of files: Parquet pages and text."""
