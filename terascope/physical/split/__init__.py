"""Each query as a low part next to its source and a high part above it (dissertation 3.4.1)."""
