"""`fig2-zipf`: how often the k-th most frequent group comes (paper 4, VI, figure 2).

For the paper's three key sets, over all records of the generated flow records and of the real
connections: the rank-frequency curve, and its slope in logarithms from the third rank to the last
with eight records. `terascope generate --flows` is made to have the paper's exponents; the real
connections are what they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from rich.console import RenderableType

from bench.experiment import Contender, Figures, Outcome, Prepared, Settings, Tell
from bench.trees.asked import WRONG, Asked, NothingWrong, new_table, shown
from bench.trees.streams import NO_REAL, Stream, has_stream, stream_of
from terascope.sharing.distinct import Ints, attribute_hashes, count_groups, set_hashes
from terascope.sharing.statistics import slope

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEY_SETS: Final = ("srcIP", "srcIP dstIP", "srcIP dstIP srcPort dstPort")
PAPER: Final = dict(zip(KEY_SETS, (0.85, 0.67, 0.48), strict=True))
REAL_NAMES: Final = {"srcIP": "src", "dstIP": "dst"}
STREAMS: Final = ("generated", "real")
POINTS: Final = 60
COLOURS: Final = dict(zip(KEY_SETS, ("#c0392b", "#2c7fb8", "#41ab5d"), strict=True))


@dataclass(frozen=True)
class Skewed:
    """A stream, and how skewed it is."""

    name: str
    stream: Stream
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Asked:
        del cores
        return Asked(self.figures)

    def figures(self) -> Figures:
        found: dict[str, float] = {WRONG: 0.0, "rows": float(self.stream.records)}
        epochs = [self.stream.epoch(number) for number in range(self.stream.epochs)]
        for keys in KEY_SETS:
            names = [name_in(self.stream, key) for key in keys.split()]
            vectors = [
                attribute_hashes(np.concatenate([epoch[name] for epoch in epochs]), name)
                for name in names
            ]
            counted = count_groups(set_hashes(vectors, self.stream.records))
            found[WRONG] += counted.tuples != self.stream.records
            found[groups(keys)] = float(counted.groups)
            found[exponent(keys)] = slope(counted)
            often = np.repeat(counted.sizes, counted.numbers)[::-1]
            for rank in ranks(len(often)):
                found[frequency(keys, int(rank))] = float(often[rank - 1])
        return found


def name_in(stream: Stream, key: str) -> str:
    return REAL_NAMES.get(key, key) if stream.name == "real" else key


def ranks(count: int) -> Ints:
    """The first, the last, and some evenly between them in logarithms."""
    return np.unique(np.geomspace(1, count, POINTS).round().astype(np.int64))


def groups(keys: str) -> str:
    return f"groups of {keys}"


def exponent(keys: str) -> str:
    return f"exponent of {keys}"


def frequency(keys: str, rank: int) -> str:
    return f"{keys}: rank {rank}"


def curve(outcome: Outcome, keys: str) -> tuple[list[int], list[float]]:
    """Ranks and frequencies that were told."""
    start = frequency(keys, 0)[:-1]
    told = {
        int(name.removeprefix(start)): value
        for name, value in outcome.figures[0].items()
        if name.startswith(start)
    }
    order = sorted(told)
    return order, [told[rank] for rank in order]


def tables(outcomes: list[Outcome]) -> list[RenderableType]:
    measured = [o for o in outcomes if o.figures]
    columns = ["keys", "paper 4"]
    for outcome in measured:
        columns += [f"{outcome.contender}: groups", "exponent"]
    table = new_table("exponents of Zipf's law", columns)
    for keys in KEY_SETS:
        cells = [keys, f"{PAPER[keys]}"]
        for outcome in measured:
            cells.append(shown(outcome, groups(keys), "{:,.0f}"))
            cells.append(shown(outcome, exponent(keys), "{:.2f}"))
        table.add_row(*cells)
    return [table]


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    figure.set_size_inches(9, 4.5)
    measured = [o for o in outcomes if o.figures]
    panels = figure.subplots(1, max(1, len(measured)), squeeze=False)[0]
    figure.subplots_adjust(left=0.08, right=0.97, top=0.86, bottom=0.24, wspace=0.25)
    for axes, outcome in zip(panels, measured, strict=True):
        for keys in KEY_SETS:
            found, often = curve(outcome, keys)
            slope_of = outcome.figure(exponent(keys)) or 0.0
            label = f"{keys}: {slope_of:.2f}, paper {PAPER[keys]}"
            axes.plot(found, often, ".-", color=COLOURS[keys], label=label, markersize=3)
            place = found[len(found) // 3], often[len(often) // 3]
            law = [place[1] * (rank / place[0]) ** -PAPER[keys] for rank in found]
            axes.plot(found, law, ":", color=COLOURS[keys])
        axes.set(xscale="log", yscale="log", xlabel="rank", ylabel="records", ylim=(0.7, None))
        axes.set_title(f"{outcome.contender}; dotted: the paper's exponent", fontsize=8)
        axes.legend(fontsize=6)


@dataclass(frozen=True)
class Fig2Zipf:
    name: str = "fig2-zipf"
    title: str = "rank-frequency curves of flow records, and their exponents"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        there = [name for name in STREAMS if has_stream(name)]
        tell(f"streams {', '.join(there)} in {settings.data}")
        streams = [stream_of(name, settings) for name in there]
        contenders: tuple[Contender, ...] = tuple(Skewed(s.name, s) for s in streams)
        return Prepared(
            contenders,
            NothingWrong("key sets whose groups do not add up to all records"),
            tuple(f"{s.name}: {s.records:,} records, all epochs together" for s in streams),
            absent={} if has_stream("real") else {"real": NO_REAL},
            runs=0,
            conclude=tables,
            draw=draw,
        )


EXPERIMENT = Fig2Zipf()
