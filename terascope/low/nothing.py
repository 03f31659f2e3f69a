"""The program of a batch whose expressions are computed one by one, by numpy."""

from __future__ import annotations

from typing import Final

from terascope.low.program import Function, Program

NOTHING: Final = Program(Function("prefilter", (), (), ()), 0, Function("derive", (), (), ()), ())
