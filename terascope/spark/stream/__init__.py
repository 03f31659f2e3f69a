"""A running set on Structured Streaming."""
