"""A query set on every engine: reference, optimised plan, DuckDB and Spark give the same rows, in
the same order.

In: plans and the interfaces they read. Out: `Answer`s, the visible rows of visible streams in the
order they are delivered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from terascope.config import Config
from terascope.connectors.registry import Interface
from terascope.local.run import LocalEngine, run_locally
from terascope.optimize.driver import optimize
from terascope.physical.delivery import Sink
from terascope.physical.planner import plan_job
from terascope.physical.rules.order_outputs import outputs_of as outputs
from terascope.physical.settings import Destination
from terascope.plan.plan import Parameter, Plan, Stream
from terascope.plan.rel import Field, Read, Rel, inputs, with_inputs
from terascope.reference.interpreter import evaluate
from terascope.reference.rows import Row, Rows, Sources, same_row, sort_key
from tests.oracle.agreement import agreed
from tests.oracle.compare import assert_same_rows
from tests.settings import config_with

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLLECTORS = 4
"""Outputs that are asked of Spark at the same time."""


@dataclass(frozen=True)
class Answer:
    fields: tuple[Field, ...]
    rows: list[Row]


Answers: TypeAlias = Mapping[str, Answer]


# ---- reference and DuckDB ------------------------------------------------------------------------


def agreed_answers(plan: Plan, sources: Sources, beyond_duckdb: Collection[str] = ()) -> Answers:
    """What the reference says, after DuckDB and the optimised plan said the same."""
    answers = delivered(plan, agreed(plan, sources, beyond_duckdb))
    better = optimize(plan)
    assert_same_answers(answers, delivered(better, evaluate(better, sources)))
    return answers


def delivered(plan: Plan, streams: Mapping[str, Rows]) -> Answers:
    """The visible streams of an evaluated plan, as they are handed to a person."""
    answers: dict[str, Answer] = {}
    for output in outputs(plan):
        rows = streams[output.stream]
        places = {name: place for place, name in enumerate(rows.names)}
        tuples = list(rows.tuples)
        for name, descending in reversed(output.order):
            place = places[name]
            # Python's sort is stable, so the least important column goes first. NULLs are last
            # when ascending and first when descending.
            tuples.sort(key=lambda row, place=place: sort_key(row[place]), reverse=descending)  # type: ignore[misc]
        kept = [places[name] for name in output.columns]
        answers[output.stream] = Answer(
            tuple(rows.fields[i] for i in kept), [tuple(row[i] for i in kept) for row in tuples]
        )
    return answers


def assert_same_answers(expected: Answers, actual: Answers) -> None:
    """The same streams, columns and rows, in the same order.

    Raises:
        AssertionError: naming the stream and what differs.
    """
    assert list(expected) == list(actual)
    for name, answer in expected.items():
        assert answer.fields == actual[name].fields, name
        try:
            assert_same_rows(answer.rows, actual[name].rows, answer.fields)
        except AssertionError as mistake:
            raise AssertionError(f"{name}: {mistake}") from None
        pairs = zip(answer.rows, actual[name].rows, strict=True)
        for place, (left, right) in enumerate(pairs):
            assert same_row(left) == same_row(right), (
                f"{name}: row {place} should be {left}, is {right}"
            )


# ---- Spark ---------------------------------------------------------------------------------------


INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For many queries over few rows: compiling each takes longer than running it."""


WITHOUT_COMPILING = config_with(kernels="numpy", share_sample="always")
"""The native low level by numpy, for the same reason; tests/execute holds that machine code
gives the same. Few rows share as many would."""

CATALYST = config_with(low="catalyst")


def spark_answers(
    plan: Plan,
    interfaces: Mapping[str, Interface],
    spark: SparkSession,
    partitions: int,
    split_bytes: int = 1 << 30,
    settings: Mapping[str, str] | None = None,
    low: Config = WITHOUT_COMPILING,
    folder: Path | None = None,
) -> Answers:
    """What Spark says to an (optimised) plan, with that many partitions after a shuffle. With a
    folder, tasks write there what they can finish, and one task the relations that read little.
    """
    from terascope.spark.mistakes import translating
    from terascope.spark.run import run_job

    wanted = {"spark.sql.shuffle.partitions": str(partitions), **(settings or {})}
    destination: Destination = "frames" if folder is None else "rows"
    job = plan_job(plan, interfaces, split_bytes, low, destination=destination)
    sink = None if folder is None else Sink(str(folder), "held", compiled=low.compiled)
    with configured(spark, wanted), translating(), run_job(job, spark, sink=sink) as result:
        with ThreadPoolExecutor(COLLECTORS) as pool:
            collected = list(pool.map(collect, result.dataframes.values()))
        rows = dict(zip(result.dataframes, collected, strict=True))
        rows |= {name: table_rows(result.table(name)) for name in result.parts}
        return {o.stream: Answer(result.fields[o.stream], rows[o.stream]) for o in job.outputs}


def local_answers(
    plan: Plan,
    interfaces: Mapping[str, Interface],
    tasks: int,
    split_bytes: int = 1 << 30,
    low: Config = WITHOUT_COMPILING,
    folder: Path | None = None,
) -> Answers:
    """What the local engine says to an (optimised) plan, its sources read in so many tasks. With a
    folder, tasks write there what they can finish; several tasks also the relations that read
    little.
    """
    destination: Destination = "frames" if folder is None else "rows"
    job = plan_job(plan, interfaces, split_bytes, low, destination=destination)
    sink = None if folder is None else Sink(str(folder), "held", compiled=low.compiled)
    engine = LocalEngine(tasks, finishes=tasks > 1)
    with run_locally(job, sink, engine=engine) as result:
        return {
            name: Answer(fields, table_rows(result.table(name)))
            for name, fields in result.fields.items()
        }


def table_rows(table: Any) -> list[Row]:
    columns = [column.to_pylist() for column in table.columns]
    return [tuple(row) for row in zip(*columns, strict=True)] if columns else []


@contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {key: str(spark.conf.get(key)) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def collect(df: DataFrame) -> list[Row]:
    return table_rows(df.toArrow())


# ---- many sets as one ----------------------------------------------------------------------------


def combined(plans: Mapping[str, Plan]) -> Plan:
    """All sets in one, so that one job computes them; streams are called `set/stream`."""
    streams: list[Stream] = []
    parameters: dict[str, Parameter] = {}
    for title, plan in plans.items():
        streams += (
            replace(stream, name=f"{title}/{stream.name}", rel=renamed(stream.rel, title))
            for stream in plan
        )
        for parameter in plan.parameters:
            known = parameters.setdefault(parameter.name, parameter)
            assert known == parameter, f"two values of ${parameter.name}"
    return Plan(tuple(streams), tuple(parameters.values()))


def renamed(rel: Rel, title: str) -> Rel:
    if isinstance(rel, Read):
        return replace(rel, stream=f"{title}/{rel.stream}")
    parts = inputs(rel)
    return with_inputs(rel, tuple(renamed(part, title) for part in parts)) if parts else rel


def of_set(title: str, answers: Answers) -> Answers:
    """The answers of one of the sets that were combined."""
    prefix = f"{title}/"
    return {n[len(prefix) :]: a for n, a in answers.items() if n.startswith(prefix)}


def in_thirds(interfaces: Iterable[Interface]) -> int:
    """The size of a split that cuts the largest file in three."""
    sizes: Sequence[int] = [path.stat().st_size for i in interfaces for path in i.files]
    return max(sizes) // 3 + 1
