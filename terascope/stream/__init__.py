"""A Plan run as a stream: what is kept, and which rows are let go when."""
