"""Every function a query can name.

In: the operators, the built-in scalars, aggregates and extractors, which are found in the modules
of their folders, and those of users. Out: `Functions`, looked up by name without regard to case.
Names that are known but cannot run yet have a reason instead of a meaning.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Final

from terascope.functions import aggregates, scalars
from terascope.functions.base import AggregateFunction, Extractor, FunctionMistake, Scalar
from terascope.functions.casts import cast_names
from terascope.functions.operators import operators
from terascope.types import Type

_STATEFUL: Final = "stateful sampling functions come with a later version"

deferred_names: Final[Mapping[str, str]] = {
    name: reason
    for names, reason in (
        ("local_count current_bucket", _STATEFUL),
        ("ssample rsample ssthreshold ssdo_clean ssclean_with ssfinal_clean", _STATEFUL),
        ("packet_count gamma do_clean_count init_threshold delay newly_closed", _STATEFUL),
    )
    for name in names.split()
}
"""Names of functions that parse but cannot run yet, and the reason that a message gives."""


@dataclass(frozen=True)
class Functions:
    """An immutable set of functions. Keys are lower case; synonyms have keys of their own."""

    scalars: Mapping[str, Scalar]
    aggregates: Mapping[str, AggregateFunction]
    extractors: Mapping[str, Extractor] = field(default_factory=dict)

    @classmethod
    def builtin(cls) -> Functions:
        return _BUILTIN

    def scalar(self, name: str) -> Scalar | None:
        return self.scalars.get(name.lower())

    def aggregate(self, name: str) -> AggregateFunction | None:
        return self.aggregates.get(name.lower())

    def extractor(self, name: str) -> Extractor | None:
        return self.extractors.get(name.lower())

    def deferred(self, name: str) -> str | None:
        """Why a known name cannot be used yet; a user's own function of that name can."""
        key = name.lower()
        if key in self.scalars or key in self.aggregates:
            return None
        return deferred_names.get(key)

    def cast(self, name: str) -> Type | None:
        """The type that a cast written as a function, such as UINT(x), makes."""
        return cast_names.get(name.lower())

    def extended(self, functions: Iterable[Scalar | AggregateFunction]) -> Functions:
        """The same and more. A name that is taken is refused, whatever its case."""
        all_scalars, all_aggregates = dict(self.scalars), dict(self.aggregates)
        for function in functions:
            key = function.name.lower()
            if key in {**all_scalars, **all_aggregates, **self.extractors, **cast_names}:
                raise FunctionMistake(f"there is a function {key} already; give yours another name")
            if isinstance(function, Scalar):
                all_scalars[key] = function
            else:
                all_aggregates[key] = function
        return replace(self, scalars=all_scalars, aggregates=all_aggregates)

    def suggest(self, name: str) -> tuple[str, ...]:
        """Known names that look like this one, the most similar first."""
        known = sorted({*self.names(), *cast_names})
        return tuple(difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.7))

    def names(self) -> tuple[str, ...]:
        """Every name that can be called, synonyms included; operators are not called by name."""
        return tuple(sorted({*self.scalars, *self.aggregates, *self.extractors} - _UNCALLED))


def _is_aggregate(value: object, module: ModuleType) -> bool:
    """Whether a value is a class of the module that declares an aggregate for queries."""
    if not isinstance(value, type) or not issubclass(value, AggregateFunction):
        return False
    return value.__module__ == module.__name__ and "name" in vars(value) and not value.internal


def _modules(package: ModuleType) -> list[ModuleType]:
    names = sorted(module.name for module in iter_modules(package.__path__))
    return [import_module(f"{package.__name__}.{name}") for name in names]


def _declared(package: ModuleType, kind: type[Scalar] | type[AggregateFunction]) -> dict[str, Any]:
    """The functions that the modules of a folder declare, by their names and synonyms."""
    found: dict[str, Any] = {}
    for module in _modules(package):
        held = vars(module)
        aggregates = [one() for one in held.values() if _is_aggregate(one, module)]
        listed = (*held.values(), *held.get("SCALARS", ()), *aggregates)
        found |= {value.name: value for value in listed if isinstance(value, kind)}
        found |= {other: found[meant] for other, meant in held.get("SYNONYMS", {}).items()}
    return found


_SCALARS: Final = _declared(scalars, Scalar)
_UNCALLED: Final = operators.keys() - _SCALARS.keys()
_EXTRACTORS: Final[dict[str, Extractor]] = {
    name: found
    for module in (*_modules(scalars), *_modules(aggregates))
    for name, found in vars(module).get("EXTRACTORS", {}).items()
}
_BUILTIN: Final = Functions(
    operators | _SCALARS, _declared(aggregates, AggregateFunction), _EXTRACTORS
)
