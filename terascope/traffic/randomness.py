"""Random numbers that depend on nothing but the seed: the same on any number of chunks.

In: 64-bit states. Out: 64-bit values (splitmix64), uniform floats, and numpy generators by purpose.
"""

from __future__ import annotations

import zlib
from typing import Any, Final, TypeAlias, cast

import numpy as np

from terascope.hashing import GOLDEN, mix
from terascope.machine_code import inlined

Array: TypeAlias = np.ndarray[Any, Any]

_STEP: Final = np.uint64(GOLDEN)
_S11: Final = np.uint64(11)


@inlined
def signed(value: Any) -> int:
    """A signed 64-bit integer: compiled code turns mixtures of signed and unsigned into floats."""
    return int(np.int64(value))


@inlined
def draw(state: Array) -> Any:
    """The next 64 random bits; `state` is one uint64 in an array."""
    state[0] += _STEP
    return mix(state[0])


@inlined
def uniform(state: Array) -> float:
    """The next number in [0, 1)."""
    return float(draw(state) >> _S11) * (1.0 / 9007199254740992.0)


@inlined
def below(state: Array, bound: int) -> int:
    """The next integer in [0, bound)."""
    return signed(uniform(state) * bound)


def hash_numbers(numbers: Array, seed: int) -> Array:
    """64 scrambled bits of each number, other ones for each seed."""
    salt = mix(np.uint64(seed & 0xFFFFFFFFFFFFFFFF) ^ _STEP)
    return cast(Array, mix(np.asarray(numbers).astype(np.uint64) * _STEP + salt))


def generator(seed: int, purpose: str, step: int = 0) -> np.random.Generator:
    """A numpy generator of its own for each purpose and each step of time."""
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence([seed, zlib.crc32(purpose.encode()), step]))
    )
