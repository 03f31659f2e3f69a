"""Which version this is, as the installed package says."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    try:
        return version("terascope")
    except PackageNotFoundError:
        return "0+not-installed"


VERSION = installed_version()
