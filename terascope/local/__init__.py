"""The local engine: a whole Job in this process, on Arrow, without Spark."""
