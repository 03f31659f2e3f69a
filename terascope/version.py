"""Which version this is, as the installed package says."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("terascope")
except PackageNotFoundError:
    VERSION = "0+not-installed"
