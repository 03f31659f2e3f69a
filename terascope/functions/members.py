"""Long lists of constants: `x IN (...)` as a look-up, however many values there are.

In: the constants of a list, of one type. Out: `Members`, which an expression holds as one constant:
no analysis walks over its values, and two lists are compared by their digest. `IN_LIST` says
whether a value is among them, with SQL's three values: NULL is unknown, and so is what is not found
where the list has a NULL.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from terascope.functions.base import Scalar, Value
from terascope.functions.roles import ListMembership
from terascope.functions.signatures import ANYTHING, signature
from terascope.functions.values import distinct_key
from terascope.types import Type

SHORT_LIST: Final = 16
"""Lists of up to this many values are compared one value after another."""


@dataclass(frozen=True, eq=False)
class Members:
    """Different values, as they were written; NULL is none of them."""

    values: tuple[Value, ...]
    has_null: bool = False

    @staticmethod
    def of(values: Iterable[Value]) -> Members:
        found: dict[Value, Value] = {}
        has_null = False
        for value in values:
            if value is None:
                has_null = True
            else:
                found.setdefault(distinct_key(value), value)
        return Members(tuple(found.values()), has_null)

    @cached_property
    def keys(self) -> frozenset[Value]:
        return frozenset(map(distinct_key, self.values))

    @cached_property
    def digest(self) -> str:
        """The same for lists of the same values, in every process."""
        text = repr((self.values, self.has_null))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Members) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __len__(self) -> int:
        return len(self.values) + self.has_null

    def has(self, value: Value) -> bool | None:
        if value is None:
            return None
        if distinct_key(value) in self.keys:
            return True
        return None if self.has_null else False


def _in_list(value: Value, members: Members) -> bool | None:
    return members.has(value)


IN_LIST: Final = Scalar(
    "in_list",
    signature("IN", ANYTHING, ANYTHING, returns=Type.BOOL),
    _in_list,
    strict=False,
    cost_ns=10,
    payload_ns=50,
    takes_held=True,
    role=ListMembership(),
)
"""x IN (...) of many constants: the second argument is `Members`."""
