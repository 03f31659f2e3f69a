"""Integers of more digits than a FLOAT has come out of aggregates digit by digit."""

from __future__ import annotations

from pathlib import Path

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, compile_set
from terascope.reference.interpreter import evaluate
from terascope.types import Type
from tests.agreement import assert_same_answers, delivered, local_answers
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with

BEGIN = 1_700_000_000_123_456_789
"""A time in nanoseconds: a FLOAT has only each 256th of them."""
SET = """
PROTOCOL S (t UINT increasing clock(s), ns ULLONG, back LLONG);

QUERY q: SELECT tb, MIN(ns) AS least, MAX(ns) AS most, FIRST(ns) AS f, LAST(back) AS l,
    median(ns) AS m, percentile(ns, 90) AS p90, quantile_of(back, 0.25) AS q,
    approx_median(ns) AS am, approx_percentile(ns, 90) AS ap90, approx_percentile(back, 25) AS ap25,
    SUM(ns - 1700000000000000000) AS s
FROM x.S GROUP BY t/10 AS tb;
QUERY above: SELECT tb, whole_percentile_of(state, 50) AS m FROM states;
DEFINE { query_name 'states'; visibility 'internal'; }
SELECT tb, approx_quantile(ns) AS state FROM x.S GROUP BY t/10 AS tb;
"""


def test_nanoseconds_keep_their_digits(tmp_path: Path) -> None:
    lines = ["t,ns,back"]
    lines += [f"{i // 3},{BEGIN + 7 * (i % 30)},{-BEGIN - 3 * (i % 17)}" for i in range(90)]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    interfaces = {"x": Interface("x", "csv", str(tmp_path / "x.csv"))}
    plan = compile_set(Source(SET, "long.gsql"), Bindings(interfaces=interfaces)).optimized
    expected = delivered(plan, evaluate(plan, ConnectorSources(interfaces)))
    epoch = [BEGIN + 7 * i for i in range(30)]
    pairs = zip(expected["q"].fields, expected["q"].rows[0], strict=True)
    row = {f.name: v + 2**63 if f.type is Type.WIDE else v for f, v in pairs}
    assert (row["least"], row["most"], row["f"]) == (epoch[0], epoch[-1], epoch[0])
    assert row["m"] == row["am"] == epoch[14]
    assert row["p90"] == row["ap90"] == epoch[26]
    assert row["q"] == row["ap25"]
    assert expected["above"].rows[0] == (0, epoch[14])
    found = local_answers(plan, interfaces, 2, 400, config_with(), tmp_path / "parts")
    assert_same_answers(expected, found)
