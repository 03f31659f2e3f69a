"""`fig10-11`: see bench/hosts/figures.py."""

from bench.hosts.figures import FIG10_11 as EXPERIMENT

__all__ = ["EXPERIMENT"]
