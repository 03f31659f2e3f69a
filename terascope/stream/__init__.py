"""What a stream needs beside a batch: slices, promises, state, results that grow; and those who
watch it. No Spark.
"""
