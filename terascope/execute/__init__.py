"""The operators of a Job on Arrow columns, without Spark."""
