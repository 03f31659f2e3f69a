"""Answers from one packed state of heavy hitters: the heaviest identifiers, estimates, prefixes.

In: the bytes of a state. Out: `Hitters`, which gives identifiers as values of GSQL with their
estimated weights, and the error that each estimate may have. An exact list has the error 0. The
estimate of a sketch is never too small, and too large by more than its error only with a
probability of e^-depth. That of a frequent-items state is never too large by more than its error.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from terascope.sketches.base import packed_states
from terascope.sketches.count_min import (
    OF_NAMES,
)
from terascope.sketches.frequent_items import CAPACITY, data_sketches_bytes
from terascope.sketches.hitter_ids import NAMED, HitterIds, IdKind, Keys
from terascope.sketches.hitter_layout import (
    FAULTS,
    FREQUENT,
    LIST,
    LIST_HEAD,
    MAGIC,
    NARROW_MAX,
    RUNS,
    SKETCH,
    WEIGHT_BITS,
    WEIGHT_MAX,
    contents_of,
    named_keys,
    pairs_of,
)
from terascope.sketches.hitter_packing import pack_pairs
from terascope.sketches.sketch_search import Sketch, estimate_prefixes, sketch_of
from terascope.types import parse_ip

IdValue = Any
"""An identifier in held form (terascope.types)."""
SEARCHED_SHARE: Final = 2.56
"""The search finds identifiers with this share of the mean counter: 1% of all weight for a width of
256, as in the paper."""
LENGTHS: Final[Mapping[int, tuple[int, ...]]] = {4: (32, 24, 16, 8), 6: (128, 64, 48, 32)}
"""The lengths of prefixes of each version of addresses that a sketch counts, the longest first."""


@dataclass(frozen=True)
class Hit:
    """An identifier, or a prefix, with its estimated weight."""

    id: IdValue
    estimate: int
    error: int


@dataclass(frozen=True)
class PrefixHit:
    """A heavy prefix of addresses. `rest` is its weight without that of heavy longer prefixes."""

    first: bytes
    length: int
    estimate: int
    rest: int
    error: int


class Hitters:
    """What one packed state says."""

    def __init__(self, data: bytes) -> None:
        narrow = narrow_list(data)
        self.ids = HitterIds(IdKind.NOTHING)
        self.offset = 0
        self.sketch: Sketch | None = None
        self.pairs: dict[int, int]
        if narrow is not None:
            self.ids.kind, self.pairs = narrow
            self.total = sum(self.pairs.values())
            return
        contents = contents_of(packed_states([data]))
        names = named_keys(contents, self.ids)
        _, keys, weights = pairs_of(contents, names)
        self.pairs = defaultdict(int)
        for key, weight in zip(keys.tolist(), weights.tolist(), strict=True):
            self.pairs[key] += weight
        self.total = sum(self.pairs.values())
        if FREQUENT in contents.variants:
            self.offset = int(contents.words[2]) & WEIGHT_MAX
            self.total = int(contents.words[3]) & WEIGHT_MAX
        if SKETCH in contents.variants:
            self.sketch = sketch_of(contents, names, self.ids)
            self.total = int(contents.words[2]) & WEIGHT_MAX

    @property
    def error(self) -> int:
        """The most that the estimate of an identifier may differ from its weight."""
        if self.sketch is not None:
            return self.sketch.size.error(self.total)
        return self.offset

    def hits(self) -> list[Hit]:
        """All identifiers that the state can name, the heaviest first, then in their order."""
        if self.sketch is None:
            found = [(key, weight + self.offset) for key, weight in self.pairs.items()]
        else:
            keys = self.sketch.keys
            if not self.sketch.size.candidates:
                share = int(SEARCHED_SHARE * self.total / self.sketch.size.width)
                keys, _ = self.sketch.search(share, 0)
            estimates = self.sketch.estimates(keys)
            found = list(zip(keys.tolist(), estimates.tolist(), strict=True))
        values = [(self.value(key), estimate) for key, estimate in found]
        values.sort(key=lambda pair: (-pair[1], rank(pair[0])))
        error = self.error
        return [Hit(value, estimate, min(error, estimate)) for value, estimate in values]

    def estimate(self, value: IdValue) -> Hit:
        """The estimated weight of any identifier.

        Raises:
            ValueError: the state has identifiers of another type.
        """
        key = self._key(value)
        if self.sketch is not None:
            estimate = int(self.sketch.estimates(np.array([key], np.int64))[0])
        else:
            estimate = self.pairs.get(key, 0) + self.offset
        return Hit(value, estimate, min(self.error, estimate))

    def _key(self, value: IdValue) -> int:
        kind = self.ids.kind
        if isinstance(value, str) and kind is IdKind.ADDRESS:
            value = parse_ip(value)
        if kind is not IdKind.NOTHING and kind_of_value(value) is not kind:
            raise ValueError(f"this state has identifiers of another type: {kind.name}")
        (key,) = keys_of([value], self.ids).tolist()
        return int(key)

    def value(self, key: int) -> IdValue:
        """The identifier of a key."""
        return identifier_of(self.ids, key)

    def frequent_bytes(self) -> bytes:
        """The sketch of Apache DataSketches that a state over integers stands for.

        Raises:
            ValueError: it is another state.
        """
        if self.ids.kind not in (IdKind.INTEGER, IdKind.NOTHING) or self.sketch is not None:
            raise ValueError("only frequent_items states over integers have such bytes")
        items = [self.value(key) for key in self.pairs]
        weights = np.array(list(self.pairs.values()), np.int64)
        capacity = max(CAPACITY, len(items))
        return data_sketches_bytes(items, weights, self.offset, self.total, capacity)

    # ---- prefixes of addresses -------------------------------------------------------------------

    def prefixes(self, share: float) -> list[PrefixHit]:
        """The prefixes of addresses whose weight, without that of the heavy prefixes inside them,
        is at least a share of all weight. Those of a sketch are no lighter than its error: the
        counters do not tell lighter ones apart.

        Raises:
            ValueError: the identifiers are no addresses.
        """
        if self.ids.kind not in (IdKind.ADDRESS, IdKind.NOTHING):
            raise ValueError(f"heavy prefixes need addresses, not {self.ids.kind.name}")
        threshold = max(1, int(np.ceil(share * self.total)))
        if self.sketch is not None:
            threshold = max(threshold, self.error)
        found = []
        for version, lengths in LENGTHS.items():
            weights = self._prefix_weights(version, threshold)
            found += discounted(version, lengths, weights, threshold, self.error)
        return sorted(found, key=lambda hit: (-hit.rest, hit.first, hit.length))

    def _prefix_weights(self, version: int, threshold: int) -> list[dict[int, int]]:
        """Return the weights of the prefixes of each length; a prefix is named by its bits."""
        lengths = LENGTHS[version]
        bits = lengths[0]
        if self.sketch is None:
            whole = {
                int.from_bytes(value[1:], "big"): weight
                for value, weight in ((self.value(k), w) for k, w in self.pairs.items())
                if value[0] == version
            }
            return [summed(whole, bits - length) for length in lengths]
        sketch, step = self.sketch, self.sketch.size.step
        weights: list[dict[int, int]] = []
        keys = sketch.keys
        keys = keys[keys < NAMED] if version == 4 else keys[keys >= NAMED]
        for place, length in enumerate(lengths):
            behind = bits - length
            if version == 4 and (place > 0 or not sketch.size.candidates):
                level, rest = divmod(behind, step)
                found = sketch.search(threshold, level) if not rest else ((), ())
                level_weights = {int(p): int(w) for p, w in zip(*found, strict=True)}
                weights.append(level_weights if length > 8 else self._without_names(level_weights))
            elif version == 4 or step == 8:
                estimates = self._estimates_at(keys, place).tolist()
                names = (int.from_bytes(self.value(int(key))[1:], "big") >> behind for key in keys)
                weights.append(dict(zip(names, estimates, strict=True)))
            else:
                weights.append({})
        return weights

    def _without_names(self, weights: dict[int, int]) -> dict[int, int]:
        """The weights of prefixes of 8 bits without those of IPv6 addresses in the same counts, as
        far as candidates name them.
        """
        assert self.sketch is not None
        keys = self.sketch.keys
        named = keys[keys >= NAMED]
        rest, seen = dict(weights), set()
        if self.sketch.size.step != 8:
            return rest
        for key, estimate in zip(named, self._estimates_at(named, 2).tolist(), strict=True):
            prefix = self.value(int(key))[:7]
            cell = int(self.ids.prefixes[key - NAMED, 3])
            if prefix not in seen and cell in rest:
                rest[cell] = max(0, rest[cell] - estimate)
            seen.add(prefix)
        return rest

    def _estimates_at(self, keys: Keys, level: int) -> Keys:
        assert self.sketch is not None
        if not level:
            return self.sketch.estimates(keys)
        found = np.empty(len(keys), np.int64)
        bits = self.ids.prefixes[keys - NAMED, level] | OF_NAMES * (level < self.sketch.size.levels)
        estimate_prefixes(self.sketch.cells, bits, level, self.sketch.sizes, found)
        return found


def summed(whole: Mapping[int, int], behind: int) -> dict[int, int]:
    sums: dict[int, int] = defaultdict(int)
    for bits, weight in whole.items():
        sums[bits >> behind] += weight
    return sums


def discounted(
    version: int,
    lengths: Sequence[int],
    weights: Sequence[Mapping[int, int]],
    threshold: int,
    error: int,
) -> list[PrefixHit]:
    """The heavy prefixes of one version, from the longest to the shortest. `covered` is the weight
    of the heavy prefixes inside each prefix.
    """
    found, bits = [], lengths[0]
    covered: dict[int, int] = {}
    for place, (length, level) in enumerate(zip(lengths, weights, strict=True)):
        above: dict[int, int] = defaultdict(int)
        shift = length - lengths[place + 1] if place + 1 < len(lengths) else length
        for prefix in level.keys() | covered.keys():
            estimate, inside = level.get(prefix, 0), covered.get(prefix, 0)
            if estimate - inside >= threshold:
                first = bytes([version]) + (prefix << bits - length).to_bytes(bits // 8, "big")
                error_here = min(error, estimate)
                found.append(PrefixHit(first, length, estimate, estimate - inside, error_here))
                inside = estimate
            if inside:
                above[prefix >> shift] += inside
        covered = above
    return found


# ---- reading and making states -------------------------------------------------------------------


def narrow_list(data: bytes) -> tuple[IdKind, dict[int, int]] | None:
    """The pairs of a list without wide and named ones, as most small groups have; None: it is
    another state.
    """
    if len(data) % 8 or len(data) < 8 * LIST_HEAD:
        return None
    words = memoryview(data).cast("Q")
    head = words[0]
    kind = head >> 28 & 15
    if (
        head & 0xFFFFFF != MAGIC
        or head >> 24 & 15 not in (LIST, RUNS)
        or kind > max(IdKind)
        or words[1]
    ):
        return None
    if head >> 32 != len(words) - LIST_HEAD:
        return None
    pairs: dict[int, int] = {}
    for word in words[LIST_HEAD:]:
        if word & NARROW_MAX:
            key = word >> WEIGHT_BITS & 0xFFFFFFFF
            pairs[key] = pairs.get(key, 0) + (word & NARROW_MAX)
    return IdKind(kind), pairs


def kind_of_value(value: IdValue) -> IdKind:
    """The kind of identifiers that a value in held form belongs to."""
    kinds = {bool: IdKind.BOOL, int: IdKind.INTEGER, float: IdKind.FLOAT, str: IdKind.TEXT}
    return kinds.get(type(value), IdKind.ADDRESS)


def keys_of(values: Sequence[IdValue], ids: HitterIds) -> Keys:
    """The keys of values of one type."""
    if values and isinstance(values[0], str | bytes):
        runs = [v.encode("utf-8") if isinstance(v, str) else v for v in values]
        offsets = np.cumsum([0, *map(len, runs)])
        data = np.frombuffer(b"".join(runs), np.uint8)
        return ids.name(offsets.astype(np.int64), data, isinstance(values[0], bytes))
    numbers = np.float64 if values and isinstance(values[0], float) else np.int64
    return ids.keys(np.array(values, numbers))


def exact_state(weights: Iterable[tuple[IdValue, int]]) -> bytes:
    """The packed list of different identifiers with their weights, however many there are, in the
    order of the identifiers.
    """
    pairs = [(value, min(weight, WEIGHT_MAX)) for value, weight in weights]
    pairs.sort(key=lambda pair: rank(pair[0]))
    kind = kind_of_value(pairs[0][0]) if pairs else IdKind.NOTHING
    ids = HitterIds(kind)
    keys = keys_of([value for value, _ in pairs], ids)
    sums = np.array([weight for _, weight in pairs], np.int64)
    (packed,) = pack_pairs(np.array([0, len(pairs)], np.int64), keys, sums, ids)
    state: bytes = packed.as_py()
    return state


def identifier_of(ids: HitterIds, key: int) -> IdValue:
    """The identifier of a key."""
    kind = ids.kind
    if key < NAMED:
        if kind is IdKind.ADDRESS:
            return b"\4" + key.to_bytes(4, "big")
        return bool(key) if kind is IdKind.BOOL else key
    number = key - NAMED
    name = ids.content[ids.ends[number] : ids.ends[number + 1]].tobytes()
    if kind is IdKind.ADDRESS:
        return name
    if kind is IdKind.TEXT:
        return name.decode("utf-8", "replace")
    if len(name) != 8:
        raise ValueError(FAULTS[1])
    return struct.unpack("<d" if kind is IdKind.FLOAT else "<q", name)[0]


def rank(value: IdValue) -> IdValue:
    """A key under which identifiers of one type sort; NaN is the largest number."""
    if isinstance(value, float):
        return (value != value, 0.0 if value != value else value)
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
