"""Who talks to whom, and how often: hosts, servers and pairs with Zipf-like popularity.

In: a profile and the number of flows to expect. Out: a `Population`: pairs of addresses with the
cumulative share of the flows each takes. Paper 4, section VI: sources, pairs and 4-tuples each
follow their own Zipf exponent.
The pairs' shares are exactly Zipf; the pairs are dealt out so that the totals of the hosts are Zipf
as well.
Addresses are 32-bit numbers inside the generator, IPv4 or IPv6 outside. An IPv6 address is made
from the number (2001:db8: with the number as its network and a hash of it as interface); numbers
from CUSTOM on stand for addresses given by the user.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from terascope.hashing import mix
from terascope.machine_code import compiled, inlined
from terascope.traffic.profile import Profile
from terascope.traffic.randomness import Array, generator, hash_numbers, signed, uniform

FLOWS_PER_PAIR = 4
MAX_PAIRS = 500_000
CUSTOM: Final = 0xFFFFFF00
"""No host or spoofed source has a number this high."""


@dataclass(frozen=True)
class Population:
    servers: Array
    """The servers, the most popular first."""
    pair_host: Array
    pair_server: Array
    pair_version: Array
    cumulative: Array
    """The cumulative shares of the pairs in the flows; the last one is 1."""


def zipf_shares(count: int, exponent: float) -> Array:
    """The shares of `count` ranks: rank k is k^-exponent as frequent as the first."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    return np.asarray(weights / weights.sum())


def populate(profile: Profile, flows: float) -> Population:
    random = generator(profile.seed, "population")
    most = max(1, profile.hosts * profile.servers // 4)
    pair_count = int(min(MAX_PAIRS, most, max(1.0, flows / FLOWS_PER_PAIR)))
    shares = zipf_shares(pair_count, profile.pair_exponent)
    host_share, server_share = _share_ranks(profile)
    pair_host, pair_server = deal_pairs(shares, host_share, server_share, profile.seed)
    # Clients live in 10.0.0.0/8, a hundred in each /24; servers in 198.18.0.0/15, the range set
    # aside for benchmarks, 200 in each /24.
    hosts = _addresses_from(10 << 24, 100, random.permutation(profile.hosts))
    servers = _addresses_from((198 << 24) + (18 << 16), 200, random.permutation(profile.servers))
    version_draw = hash_numbers(np.arange(pair_count), profile.seed ^ 0x76657273)
    is_v6 = version_draw < np.uint64(min(profile.ipv6_share * 2.0**64, 2.0**64 - 2048))
    cumulative = np.cumsum(shares)
    cumulative[-1] = 1.0
    return Population(
        servers,
        hosts[pair_host],
        servers[pair_server],
        np.where(is_v6, 6, 4).astype(np.uint8),
        cumulative,
    )


def _addresses_from(first: int, in_each: int, places: Array) -> Array:
    return np.asarray(first + (places // in_each << 8) + 10 + places % in_each, dtype=np.uint32)


def _share_ranks(profile: Profile) -> tuple[Array, Array]:
    """Split one Zipf list of all sources into hosts and servers with half of the traffic each.

    Both ends of a flow send, so both stand in the same list of sources; servers are few and so
    mostly near its head.
    """
    shares = zipf_shares(profile.hosts + profile.servers, profile.source_exponent)
    low, high = 0.05, 20.0
    for _ in range(30):  # bisect: the larger the bend, the nearer to the head the servers stand
        bend = (low * high) ** 0.5
        taken = _spread(profile.servers, len(shares), bend)
        if shares[taken].sum() < 0.5:
            low = bend
        else:
            high = bend
    server = shares[taken]
    host = np.delete(shares, taken)
    return host / host.sum(), server / server.sum()


def _spread(count: int, total: int, bend: float) -> Array:
    """`count` different ranks below `total`, spread by the power `bend`."""
    wanted = (((np.arange(count) + 0.5) / count) ** bend * total).astype(np.int64)
    steps = np.arange(count)
    ranks = np.maximum.accumulate(wanted - steps) + steps  # push equal ranks apart, upwards
    return np.minimum(ranks, total - count + steps)


@compiled
def deal_pairs(shares: Array, host: Array, server: Array, seed: int) -> tuple[Array, Array]:
    """Give each pair, the largest first, a host and a server that still lack most of their share.

    Choosing by the square of what is lacking lets popular hosts have larger pairs, not only more of
    them.
    """
    state = np.array([np.uint64(seed)], dtype=np.uint64)
    left = (host.copy(), server.copy())
    trees = (_tree_of(host), _tree_of(server))
    size = 16
    while size < 3 * len(shares):
        size *= 2
    used = np.full(size, -1, dtype=np.int64)
    chosen = (np.empty(len(shares), dtype=np.int64), np.empty(len(shares), dtype=np.int64))
    for pair in range(len(shares)):
        first, second = 0, 0
        for _attempt in range(24):
            first = _pick(trees[0], len(host), state)
            second = _pick(trees[1], len(server), state)
            key = first * len(server) + second
            slot = signed(mix(np.uint64(key)) & np.uint64(size - 1))
            while used[slot] != -1 and used[slot] != key:
                slot = (slot + 1) & (size - 1)
            if used[slot] == -1:
                used[slot] = key
                break
        chosen[0][pair] = first
        chosen[1][pair] = second
        _spend(trees[0], left[0], first, shares[pair])
        _spend(trees[1], left[1], second, shares[pair])
    return chosen


@inlined
def _tree_of(budget: Array) -> Array:
    """A Fenwick tree over the squares of the budgets."""
    tree = np.zeros(len(budget) + 1)
    for index in range(len(budget)):
        tree[index + 1] = budget[index] * budget[index]
    for node in range(1, len(tree)):
        parent = node + (node & -node)
        if parent < len(tree):
            tree[parent] += tree[node]
    return tree


@inlined
def _spend(tree: Array, left: Array, index: int, share: float) -> None:
    before = left[index]
    left[index] = max(before - share, before * 1e-3)
    change = left[index] * left[index] - before * before
    node = index + 1
    while node < len(tree):
        tree[node] += change
        node += node & -node


@inlined
def _pick(tree: Array, count: int, state: Array) -> int:
    """An index with probability proportional to its square budget."""
    step = 1
    while step * 2 <= count:
        step *= 2
    total = 0.0
    node = count
    while node > 0:
        total += tree[node]
        node -= node & -node
    target = uniform(state) * total
    position = 0
    while step > 0:
        if position + step <= count and tree[position + step] <= target:
            position += step
            target -= tree[position]
        step //= 2
    return min(position, count - 1)


# ---- addresses -----------------------------------------------------------------------------------


def number_of(text: str, custom: Array, slot: int) -> tuple[int, int]:
    """(number, version) of an address in text; IPv6 goes to row `slot` of `custom`."""
    address = ipaddress.ip_address(text)
    if address.version == 4:
        return int(address), 4
    custom[slot] = np.frombuffer(address.packed, dtype=np.uint8)
    return CUSTOM + slot, 6


@inlined
def put_ipv6(out: Array, at: int, number: Any, custom: Array) -> None:
    """Write the 16 bytes of an IPv6 address."""
    if number >= CUSTOM:
        for index in range(16):
            out[at + index] = custom[number - CUSTOM, index]
        return
    out[at], out[at + 1], out[at + 2], out[at + 3] = 0x20, 0x01, 0x0D, 0xB8
    interface = mix(np.uint64(number))
    for index in range(4):
        out[at + 4 + index] = (number >> (24 - 8 * index)) & 0xFF
    for index in range(8):
        out[at + 8 + index] = (interface >> np.uint64(56 - 8 * index)) & np.uint64(0xFF)


def address_texts(numbers: Array, versions: Array, custom: Array) -> list[str]:
    """Each address as people write it."""
    buffer = np.zeros(16, dtype=np.uint8)
    written = []
    for number, version in zip(numbers.tolist(), versions.tolist(), strict=True):
        if version == 4:
            written.append(
                f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            )
        else:
            put_ipv6(buffer, 0, number, custom)
            written.append(str(ipaddress.IPv6Address(buffer.tobytes())))
    return written


def outside_addresses(numbers: Array, seed: int) -> Array:
    """Scattered addresses of the wide world, none of them a host or server of the population."""
    bits = hash_numbers(numbers, seed)
    first = (bits >> np.uint64(32)) % np.uint64(187) + np.uint64(11)  # 11 .. 197
    first = np.where(first == 127, np.uint64(12), first)
    return ((first << np.uint64(24)) | (bits & np.uint64(0xFFFFFF))).astype(np.uint32)
