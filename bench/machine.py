"""What a measurement was made on: machine, versions, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from terascope.version import VERSION

PACKAGES = {
    "pyspark": "pyspark",
    "duckdb": "duckdb",
    "polars": "polars",
    "chdb": "chdb",
    "numba": "numba",
    "numpy": "numpy",
    "pyarrow": "pyarrow",
}


def header(cores: int) -> list[str]:
    """Lines that say what the figures were measured on."""
    found = {name: package_version(package) for name, package in PACKAGES.items()}
    versions = ", ".join(f"{name} {number}" for name, number in found.items() if number)
    return [
        f"{processor()}, {cores} of {os.cpu_count()} cores, {memory_gb():.0f} GB,"
        f" {platform.system()} {platform.release()}",
        f"terascope {VERSION} ({commit()}), Python {platform.python_version()}, {versions}",
    ]


def missing(packages: Iterable[str]) -> list[str]:
    return [name for name in packages if package_version(name) is None]


def package_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.machine()


def memory_gb() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError, AttributeError):
        return 0.0


def commit() -> str:
    """Of the sources this runs from; changed ones are said to be."""
    here = Path(__file__).parent
    try:
        found = git(here, "rev-parse", "--short", "HEAD")
        changed = git(here, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "installed package"
    return f"commit {found}{' with changes' if changed else ''}"


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()
