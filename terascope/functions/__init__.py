"""Scalar functions and aggregates, engine-free."""
