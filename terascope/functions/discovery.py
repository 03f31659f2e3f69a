"""Finds the modules of a folder of functions, so that a new file is all that a new function needs.

In: a package, and the name of what its modules declare. Out: the modules that declare it, by name.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def declaring(package: str, path: list[str], attribute: str) -> list[ModuleType]:
    names = sorted(found.name for found in iter_modules(path))
    modules = [import_module(f"{package}.{name}") for name in names]
    return [module for module in modules if hasattr(module, attribute)]


def synonyms(modules: list[ModuleType]) -> dict[str, str]:
    """Further name -> name, of all modules."""
    pairs = (getattr(module, "SYNONYMS", {}) for module in modules)
    return {name: meant for some in pairs for name, meant in some.items()}
