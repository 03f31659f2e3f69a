"""Each rule over the Job by its fixture file. That answers stay the same is in tests/properties."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import csv
from pyarrow.parquet import write_table

from terascope.connectors.base import partition_name
from terascope.connectors.registry import Interface, Partition
from terascope.diagnostic import Source
from terascope.physical.draft import JobDraft
from terascope.physical.planner import RULES, drafted
from terascope.pipeline import Bindings, compile_set
from tests.physical.draft_text import draft_text
from tests.rule_fixtures import Rules
from tests.settings import config_with

FIXTURES = Path(__file__).parent / "fixtures"
BY_NAME = {rule.__name__: rule for rule in RULES}
ALWAYS = (
    "split_queries", "read_sources", "place_high_parts", "order_outputs", "list_operators"
)  # fmt: skip
"""Rules that change every draft."""
REFUSING = ("check_job",)
"""Rules that change none: see test_operators.py."""
TUPLES = "ts,a,b,v\n" + "".join(f"{3 * n},{n % 7},{n % 3},{n % 50}\n" for n in range(400))
PARTITIONED = re.compile(r"^# partitioned by: (.+)\n", re.MULTILINE)
KIND = re.compile(r"^# kind: (.+)\n", re.MULTILINE)
OPTIONS = re.compile(r"^# settings: (.+)\n", re.MULTILINE)
SETTINGS = config_with(kernels="numpy", share_sample="always", share_tables="always")


@pytest.fixture(scope="module")
def tuples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules") / "s.csv"
    path.write_text(TUPLES, encoding="utf-8")
    write_table(csv.read_csv(path), path.with_suffix(".parquet"))
    return path


def rules(tuples: Path) -> Rules[JobDraft]:
    def begun(script: str) -> JobDraft:
        kind = "".join(KIND.findall(script)) or "csv"
        whole = Interface("s", kind, str(tuples.with_suffix(f".{kind}")))
        script = KIND.sub("", script)
        interfaces = {"s": whole}
        for by in PARTITIONED.findall(script):
            parts = [
                replace(whole, name=partition_name("s", n), partition=Partition(n, 2, by))
                for n in range(2)
            ]
            interfaces = {part.name: part for part in parts}
        script = PARTITIONED.sub("", script)
        given = dict(pair.split("=") for line in OPTIONS.findall(script) for pair in line.split())
        plan = compile_set(Source(OPTIONS.sub("", script)), Bindings(interfaces)).optimized
        config = SETTINGS.changed(**given)
        return drafted(plan, interfaces, config=config, destination="rows", rules=())

    return Rules(
        FIXTURES,
        tuple(name for name in BY_NAME if name not in REFUSING),
        begun,
        lambda rule, draft: BY_NAME[rule](draft),
        draft_text,
        in_order=True,
    )


@pytest.mark.parametrize("rule", [name for name in BY_NAME if name not in REFUSING])
def test_rule(rule: str, tuples: Path, request: pytest.FixtureRequest) -> None:
    rules(tuples).check(rule, request.config)


def test_every_rule_has_a_case_that_changes_and_one_that_does_not(tuples: Path) -> None:
    found = rules(tuples).incomplete()
    assert {rule: why for rule, why in found.items() if rule not in ALWAYS} == {}
    assert set(found) <= set(ALWAYS)
    assert rules(tuples).strays() == set()
