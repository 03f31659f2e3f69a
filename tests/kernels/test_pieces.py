"""Generated functions are cut into pieces of bounded size, of which only so many are compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from terascope.diagnostic import Source
from terascope.kernels.codegen import program as programs
from terascope.kernels.codegen.program import MOST_LINES, PIECE_LINES, Program, functions
from terascope.physical.split.split_plan import split_plan
from terascope.pipeline import compile_set
from terascope.plan.build import call
from terascope.plan.expr import Col, Expr, Lit
from terascope.plan.rel import Project
from terascope.types import Type

COUNT = 1000
X, Y = Col("x", Type.LLONG), Col("y", Type.LLONG)


def number(i: int) -> Lit:
    return Lit(i, Type.LLONG)


def conditions(many: int) -> list[Expr]:
    return [call(("<", ">", "=", "!=")[i % 4], (X, Y)[i % 2], number(i)) for i in range(many)]


def columns(many: int) -> list[Expr]:
    return [call(("+", "*", "-")[i % 3], (X, Y)[i % 2], number(i)) for i in range(many)]


def made(predicates: list[Expr], derived: list[Expr]) -> Program:
    return Program(programs.prefilter(predicates), programs.derive(derived), tuple(derived))


def computed(program: Program, compiled: bool) -> tuple[list[Any], list[Any], Any]:
    """The words of the prefilter, what is derived, and how often predicates were evaluated."""
    rng = np.random.default_rng(1)
    vectors: dict[Expr, Any] = {
        column: (rng.integers(0, 200, COUNT), (rng.random(COUNT) < 0.9).view(np.uint8))
        for column in (X, Y)
    }
    prefilter, derive = functions(program, compiled)
    counted = np.zeros(sum(len(p.counters) for p in program.prefilter), np.int64)
    bits = {s.array: np.full(COUNT, 77, np.uint64) for p in program.prefilter for s in p.stores}
    prefilter(COUNT, counted, lambda one: vectors[one.expr], bits)
    outputs = {s.array: np.zeros(COUNT, s.dtype) for p in program.derive for s in p.stores}
    derive(COUNT, np.zeros(0, np.int64), lambda one: vectors[one.expr], outputs)
    return [*bits.values()], [*outputs.values()], counted


@pytest.mark.parametrize("compiled", [False, True])
def test_pieces_compute_what_the_whole_does(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "PIECE_LINES", 10**9)
    whole = made(conditions(150), columns(30))
    assert len(whole.prefilter) == 3  # a word each
    assert len(whole.derive) == 1
    monkeypatch.setattr(programs, "PIECE_LINES", 25)
    monkeypatch.setattr(programs, "MOST_LINES", 80)  # so that both kinds are used
    cut = made(conditions(150), columns(30))
    assert len(cut.prefilter) > 6
    assert len(cut.derive) > 3
    expected, found = computed(whole, False), computed(cut, compiled)
    for one, other in zip((*expected[0], *expected[1]), (*found[0], *found[1]), strict=True):
        assert one.tolist() == other.tolist()
    assert found[2].tolist() == [COUNT] * 150


@pytest.mark.parametrize("many", [200, 800])
def test_what_is_compiled_is_bounded(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[int] = []
    by_numpy = programs.by_numpy

    def noted(piece: programs.CodePiece) -> programs.Kernel:
        compiled.append(len(piece.lines))
        return by_numpy(piece)

    monkeypatch.setattr(programs, "by_machine", noted)
    functions(made(conditions(many), columns(many)), True)
    assert max(compiled) <= PIECE_LINES + 20
    assert sum(compiled) <= 2 * MOST_LINES


def test_more_aggregates_than_a_table_has_room_for_stay_above() -> None:
    sums = ", ".join(f"SUM(len + {i}) AS s{i}" for i in range(70))
    text = f"SELECT tb, {sums} FROM TCP GROUP BY time/60 AS tb"
    split = split_plan(compile_set(Source(text, "x.gsql")).optimized)
    assert [type(low.rel) for low in split.low] == [Project]
    assert "a table has room for 60" in split.kept_high[0].reason
