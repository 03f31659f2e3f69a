"""Groups on their way: rows, payloads, merges, windows, spill files."""
