"""Job -> DataFrames; the only package that imports pyspark."""
