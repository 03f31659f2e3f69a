"""Statistics of an epoch from given numbers, for tests of planners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import expm1, prod

from terascope.sharing.model import Attributes


@dataclass(frozen=True)
class KnownStatistics:
    """Statistics from numbers that are given for some sets of attributes.

    A set that is not given has as many groups as the attributes, taken as independent and as
    uniform over the product of the largest given parts, show in an epoch: with d possible groups
    d (1 - exp(-tuples / d)), and never fewer than a given subset. Its exponent is the smallest of
    its parts': the paper sees exponents fall as attributes are added (0.85, 0.67, 0.48).
    """

    tuples: float
    known_groups: Mapping[Attributes, float]
    known_exponents: Mapping[Attributes, float] = field(default_factory=dict)

    def groups(self, attributes: Attributes) -> float:
        given = self.known_groups.get(attributes)
        if given is not None:
            return min(given, self.tuples)
        possible = prod(self.known_groups[part] for part in self._parts(attributes))
        least = max(
            (g for known, g in self.known_groups.items() if known <= attributes), default=1.0
        )
        return min(max(expected_distinct(possible, self.tuples), least), self.tuples)

    def exponent(self, attributes: Attributes) -> float:
        given = self.known_exponents.get(attributes)
        if given is not None:
            return given
        parts = (known for known in self.known_exponents if known <= attributes)
        return min((self.known_exponents[part] for part in parts), default=0.0)

    def _parts(self, attributes: Attributes) -> list[Attributes]:
        """Given sets that together are the attributes, the largest first."""
        parts: list[Attributes] = []
        rest = attributes
        inside = (known for known in self.known_groups if known <= attributes)
        for known in sorted(inside, key=lambda known: (-len(known), sorted(known))):
            if known <= rest and known:
                parts.append(known)
                rest -= known
        if rest:
            raise KeyError(f"nothing is known of {', '.join(sorted(rest))}")
        return parts


def expected_distinct(possible: float, draws: float) -> float:
    """Distinct values among draws from so many equally likely ones."""
    if possible <= 0 or draws <= 0:
        return 0.0
    return possible * -expm1(-draws / possible)
