"""A hundred standing questions about packets, as a monitoring team asks them.

In: a number. Out: that many queries of the set, in GSQL: counts, sums and extremes by addresses,
ports and protocols, in minutes, in five minutes and over sliding windows, of all packets or of
some.
"""

from __future__ import annotations

import random

KEYS = (
    ("srcIP",), ("destIP",), ("srcIP", "destIP"), ("destPort",), ("destIP", "destPort"),
    ("srcIP", "destPort"), ("protocol",), ("srcIP", "destIP", "destPort"), ("tos", "protocol"),
    ("srcIP", "destIP", "srcPort", "destPort", "protocol"), (),
)  # fmt: skip
VALUES = ("COUNT(*)", "SUM(len)", "MAX(len)", "MIN(len)", "AVG(len)", "MAX(ttl)")
CONDITIONS = ("", "", "", " WHERE len > 100", " WHERE destPort = 443", " WHERE protocol = 6")
EPOCHS = (60, 60, 60, 300)
WINDOWS = ((60, 10), (120, 30), (300, 60), (90, 60))


def queries(number: int, seed: int = 5) -> list[str]:
    rng = random.Random(seed)
    return [query(rng, f"q{i}") for i in range(number)]


def query(rng: random.Random, name: str) -> str:
    keys = rng.choice(KEYS)
    picked = rng.sample(VALUES, rng.randint(1, 3))
    values = ", ".join(f"{value} AS v{i}" for i, value in enumerate(picked))
    where = rng.choice(CONDITIONS)
    shown = "".join(f"{key}, " for key in keys)
    if rng.random() < 0.6:
        epoch = rng.choice(EPOCHS)
        grouped = ", ".join((f"time/{epoch} AS tb", *keys))
        return f"QUERY {name}: SELECT tb, {shown}{values} FROM IPV4{where} GROUP BY {grouped};"
    length, slide = rng.choice(WINDOWS)
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    window = f"[RANGE {length} SLIDE {slide}]"
    return f"QUERY {name}: SELECT {shown}{values} FROM IPV4 {window}{where}{by};"
