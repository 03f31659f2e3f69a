"""Compiles all kernels whose types are declared: `.venv/bin/python scripts/compile_kernels.py`.

In: the installed package. Out: their machine code beside its sources, where every process finds it,
so that neither a first query waits for them nor do processes that start together compile the same.
Generated kernels, and those compiled for the types of a call, come when they are needed.
"""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from types import FunctionType

import terascope

NICE = 10


def declared() -> Iterator[tuple[str, str]]:
    """The kernels, by module and name."""
    for found in pkgutil.walk_packages(terascope.__path__, "terascope."):
        if found.name.endswith("__main__"):
            continue
        for name, value in vars(import_module(found.name)).items():
            is_own = isinstance(value, FunctionType) and value.__module__ == found.name
            if is_own and hasattr(value, "load"):
                yield found.name, name


def compile_kernel(module: str, name: str) -> None:
    """Compile a kernel, or see that it is there already."""
    getattr(import_module(module), name).load()


def main() -> None:
    os.nice(NICE)
    kernels = list(declared())
    with ProcessPoolExecutor() as pool:
        list(pool.map(compile_kernel, *zip(*kernels, strict=True)))


if __name__ == "__main__":
    main()
