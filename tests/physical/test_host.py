"""Capability profiles: what a host can be asked to do."""

from __future__ import annotations

from typing import get_args

import pytest

from terascope.analysis.costs import Costs
from terascope.config import Config
from terascope.physical.split.host import (
    CAPTURE_FILTER,
    COMPILED_HOST,
    HOSTS,
    PLAIN_DECODER,
    Host,
    LowSafety,
)
from terascope.plan.expr import Expr
from terascope.types import Type
from tests.oracle.build import call, case, col, ip

PORT, LEN = col("port", Type.UINT), col("len", Type.UINT)
ADDRESS, PAYLOAD = col("ip", Type.IP), col("data", Type.BINARY)


@pytest.mark.parametrize(
    "expr",
    [
        call("=", PORT, 80),
        call("and", call(">=", LEN, 40), call("not", call("=", call("&", PORT, 3), 0))),
        call("=", call("mask", ADDRESS, 0xFFFFFF00), ip("10.0.0.0")),
        call("in", PORT, 80, 443),
    ],
)
def test_a_capture_filter_compares_header_fields_with_constants(expr: Expr) -> None:
    assert CAPTURE_FILTER.refuses(expr) is None


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        (call("=", PORT, LEN), "compares a column with constants only"),
        (call("<", call("+", PORT, 1), 9), "does not know +"),
        (call("str_match_start", PAYLOAD, "GET"), "does not know str_match_start"),
        (call("=", PAYLOAD, b"GET"), "does not look into data, which is BINARY"),
        (call("=", case((call("=", PORT, 1), LEN), otherwise=2), 7), "does not know CASE"),
    ],
)
def test_and_nothing_else(expr: Expr, reason: str) -> None:
    assert CAPTURE_FILTER.refuses(expr) == f"host capture_filter {reason}"


def test_a_plain_decoder_does_nothing() -> None:
    judge = LowSafety(PLAIN_DECODER, Costs(), {})
    assert judge.condition(call("=", PORT, 80)) == "host plain_decoder evaluates no predicates"
    assert judge.column(call("+", PORT, 80)) == "host plain_decoder computes no columns"
    assert not PLAIN_DECODER.aggregates


def test_the_compiled_host_asks_its_kernels() -> None:
    assert COMPILED_HOST.knows(call("+", PORT, 1)) is None
    assert COMPILED_HOST.knows(call("upper", PAYLOAD)) is not None


def test_a_host_without_limits_refuses_nothing() -> None:
    assert Host("any").refuses(call("upper", PAYLOAD)) is None


def test_the_configuration_knows_the_same_hosts() -> None:
    assert set(get_args(Config.model_fields["host"].annotation)) == set(HOSTS)
