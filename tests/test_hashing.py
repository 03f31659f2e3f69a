"""Expressions remember their hash, and take it to no other process."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace

from terascope.functions.operators import operators
from terascope.plan.expr import Bound, Call, Cast, Col, Lit
from terascope.plan.hashing import KNOWN
from terascope.types import Type

SUM = Call(operators["+"], (Col("len", Type.INT), Lit(1, Type.INT)), Type.INT)

ELSEWHERE = """
import pickle, sys
from terascope.plan.expr import Col
from terascope.types import Type
found = pickle.load(sys.stdin.buffer)
print(found[Col("len", Type.INT)])
"""


def test_equal_expressions_are_one_key() -> None:
    again = Call(operators["+"], (Col("len", Type.INT), Lit(1, Type.INT)), Type.INT)
    assert hash(SUM) == hash(again)
    assert {SUM: "known"}[again] == "known"
    assert SUM.__dict__[KNOWN] == hash(again)


def test_another_expression_has_a_hash_of_its_own() -> None:
    hash(SUM)
    assert KNOWN not in replace(SUM, args=SUM.args[:1]).__dict__
    others = {SUM, replace(SUM, type=Type.FLOAT), Cast(SUM, Type.FLOAT), Lit(1, Type.INT)}
    assert len(others | {Bound(1, Type.INT)}) == 5


def test_a_hash_stays_in_its_process() -> None:
    keyed = {Col("len", Type.INT): "found"}
    made = Cast(Col("len", Type.INT), Type.FLOAT)
    assert hash(made) == hash(pickle.loads(pickle.dumps(made)))
    assert KNOWN in made.__dict__
    assert KNOWN.encode() not in pickle.dumps(made)
    told = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], input=pickle.dumps(keyed), capture_output=True,
        env={"PYTHONHASHSEED": "7"}, check=True,
    )  # fmt: skip
    assert told.stdout.split() == [b"found"]
