"""Watching and controlling a run: status, metrics, server, control requests, subscriptions."""
