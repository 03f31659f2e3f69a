"""`fig13-14`: see bench/hosts/figures.py."""

from bench.hosts.figures import FIG13_14 as EXPERIMENT

__all__ = ["EXPERIMENT"]
