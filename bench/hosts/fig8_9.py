"""`fig8-9`: see bench/hosts/figures.py."""

from bench.hosts.figures import FIG8_9 as EXPERIMENT

__all__ = ["EXPERIMENT"]
