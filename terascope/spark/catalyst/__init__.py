"""Expressions, aggregates and relations as DataFrame operations."""
