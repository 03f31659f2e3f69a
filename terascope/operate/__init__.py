"""Watching and steering a run: status, metrics, server, control requests, subscriptions."""
