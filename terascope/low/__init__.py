"""The low level: work done next to the source, on Arrow columns."""
