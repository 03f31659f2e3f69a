"""approx_quantile: the state that approximate percentiles are extracted from (paper 1, 4.1).

approx_quantile(x) is a packed state (terascope.sketches.greenwald_khanna), a value of type BINARY;
percentile_of and others (terascope.functions.scalars.quantiles) take answers from it, so one state
serves several percentiles. Over a column of such states, approx_quantile merges them.

The methods for the reference interpreter keep all values: its state is exact.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from terascope.functions.aggregates.folding import PlainAggregate, Runs, items, join
from terascope.functions.base import Value, ValueMistake
from terascope.functions.bounds import ErrorBound, Errors, impossible, no_errors
from terascope.functions.signatures import Want
from terascope.sketches.base import StateKind
from terascope.sketches.greenwald_khanna import (
    STRATEGIES,
    exact_state,
    merged_state,
    merging_kind,
    quantile_kind,
)
from terascope.sketches.kll import quantiles_of
from terascope.sketches.quantile_answers import states_with_values
from terascope.sketches.quantile_columns import LEAST_SCRATCHPAD, SCRATCHPAD
from terascope.types import Type

Collected: TypeAlias = tuple[float, str, Runs]
"""The eps, the strategy, and the values, or the packed states, of a group."""

NUMBER_OR_STATE: Final = Want(
    "a number, or a state of approx_quantile", lambda t: t.is_numeric or t is Type.BINARY
)

TRIED_PERCENTS: Final = np.concatenate([[0.0, 0.1, 99.9, 100.0], np.linspace(1, 99, 50)])
TRIED_VALUES: Final = 200
"""The percentiles and the ranks of how many values are compared with the exact ones."""


MOST_SCRATCHPAD: Final = 1 << 20


def sized(strategy: str) -> tuple[str, int]:
    """A strategy, and the bytes of its states next to the source: 'gk_lite(4096)'."""
    found = re.fullmatch(r"(.*)\(([0-9]{1,9})\)", strategy)
    return (strategy, SCRATCHPAD) if found is None else (found[1], int(found[2]))


class ApproxQuantile(PlainAggregate):
    name = "approx_quantile"
    takes = (NUMBER_OR_STATE,)
    returns = Type.BINARY
    state_parameters = 2
    kind = "algebraic"
    sampling = "keep"
    example_parameters = (0.01, "")
    default_parameters = (0.01, "")
    strategies = STRATEGIES
    low_scratchpad = (LEAST_SCRATCHPAD, SCRATCHPAD)
    further_parameters = ((0.05, ""), (0.002, ""))
    doc = "approx_quantile(x [, eps]): a state that percentile_of gives any percentile of"

    def zero(self, *parameters: Value) -> Collected:
        return (*self._checked(parameters), ())

    def reduce(self, state: Collected, *args: Value) -> Collected:
        return (*state[:2], join(state[2], (args,)))

    def merge(self, left: Collected, right: Collected) -> Collected:
        return (*left[:2], join(left[2], right[2]))

    def finish(self, state: Collected, *parameters: Value) -> bytes | None:
        eps, _, runs = state
        values = list(items(runs))
        if not values:
            return None
        if not isinstance(values[0], bytes):
            return exact_state(values, eps)
        try:
            return self.finish_state(merged_state(values, eps))
        except ValueError as mistake:
            raise ValueMistake(f"{self.name}: {mistake}") from mistake

    def is_state(self, state: Value) -> bool:
        return isinstance(state, tuple) and len(state) == 3

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        """The columns that keep a call of such arguments."""
        eps, strategy = self._checked(parameters)
        if args[0] is Type.BINARY:
            return merging_kind(eps)
        return quantile_kind(eps, *sized(strategy))

    def has_strategy(self, strategy: str) -> bool:
        name, size = sized(strategy)
        return (not name or name in STRATEGIES) and LEAST_SCRATCHPAD <= size <= MOST_SCRATCHPAD

    def finish_state(self, packed: bytes | None, *parameters: Value) -> bytes | None:
        """The value of a call: the state itself, NULL when no value is in it."""
        return packed if packed is not None and quantiles_of(packed).count else None

    def bound(self, *parameters: Value) -> ErrorBound:
        eps, strategy = self._checked(parameters)
        return ErrorBound(
            eps, "the number of values, in ranks", cases=0.99 if strategy == "kll" else 1
        )

    def errors(self, columns: Sequence[pa.Array], found: Value, *parameters: Value) -> Errors:
        """The distances in ranks of percentiles from the wanted ones, and of ranks from the true
        ones, as shares of the number of values.
        """
        values = np.sort(columns[0].to_numpy(zero_copy_only=False))
        if found is None or not len(values):
            return no_errors() if found is None and not len(values) else impossible()
        state = quantiles_of(found)
        if state.count != len(values):
            return impossible()
        wanted = np.maximum(1, np.ceil(TRIED_PERCENTS / 100.0 * len(values)))
        answers = np.array([state.percentile(p) for p in TRIED_PERCENTS.tolist()], values.dtype)
        first = np.searchsorted(values, answers, "left") + 1  # the ranks that an answer has
        last = np.searchsorted(values, answers, "right")
        apart = np.maximum(np.maximum(first - wanted, wanted - last), 0)
        points = values[:: max(1, len(values) // TRIED_VALUES)]
        ranks = np.searchsorted(values, points, "right")
        return np.concatenate([apart, np.abs(state.ranks(points) - ranks)]) / len(values)

    def finish_states(self, packed: pa.Array, *parameters: Value) -> pa.Array | None:
        return states_with_values(packed)

    def _checked(self, given: Sequence[Value]) -> tuple[float, str]:
        eps, strategy = (list(given) + list(self.default_parameters[len(given) :]))[:2]
        number = isinstance(eps, int | float) and not isinstance(eps, bool)
        if not number or not 0 < eps <= 0.5:
            raise ValueMistake(
                f"{self.name} takes an eps between 0, which is excluded, and 0.5, not {eps}"
            )
        if strategy and not self.has_strategy(strategy):
            known = ", ".join(STRATEGIES)
            raise ValueMistake(f"{self.name} has no strategy '{strategy}'; it has {known}")
        return float(eps), str(strategy)
