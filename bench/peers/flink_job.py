"""Flink's end of bench/peers/flink.py, run by an interpreter that has apache-flink.

In: lines of JSON on standard input: the CSV, the queries and the folder of the results. Out: for
each line `done`, or `failed` and why, on standard output. All queries are one job, so that Flink
reads the table once. It imports nothing of ours: that interpreter does not have it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

TABLE = (
    "CREATE TEMPORARY TABLE {table} ({columns}, `at` AS TO_TIMESTAMP_LTZ(`time`, 0),"
    " WATERMARK FOR `at` AS `at`)"
    " WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
)
RESULT = (
    "CREATE TEMPORARY TABLE `{query}` ({columns})"
    " WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
)


def columns(names: list[str]) -> str:
    return ", ".join(f"`{name}` BIGINT" for name in names)


def answer(asked: dict[str, Any], cores: int) -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.get_config().set("parallelism.default", str(cores))
    tables.get_config().set("table.local-time-zone", "UTC")
    tables.execute_sql(
        TABLE.format(table=asked["table"], columns=columns(asked["columns"]), path=asked["csv"])
    )
    together = tables.create_statement_set()
    for query, sql in asked["sql"].items():
        path = f"{asked['output']}/{query}"
        tables.execute_sql(RESULT.format(query=query, columns=columns(asked["results"]), path=path))
        together.add_insert_sql(f"INSERT INTO `{query}` {sql}")
    together.execute().wait()


def main() -> None:
    cores = int(sys.argv[1])
    for line in sys.stdin:
        try:
            answer(json.loads(line), cores)
            told = "done"
        except Exception as problem:
            told = f"failed {str(problem).partition(chr(10))[0]}"
        sys.stdout.write(f"{told}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
