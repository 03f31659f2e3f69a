"""Streams beside batches: watermarks, closing, release, state, re-planning."""
