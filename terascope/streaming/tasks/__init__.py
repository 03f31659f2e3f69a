"""The work of the tasks of a micro-batch: reading, closing slices, computing queries."""
