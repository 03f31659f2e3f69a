"""How a Job runs as a stream: what is stored, who computes each query, and when it is released."""
