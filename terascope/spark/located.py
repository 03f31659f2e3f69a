"""Numbers of tasks, each with the hosts on which it should run.

In: for each task the hosts that hold its input, as Spark calls them. Out: an RDD of the numbers 0,
1, ..., one per partition. Spark runs a task on one of its hosts if that host has an executor that
is free within `spark.locality.wait`, and on any other host otherwise: a host that is lost delays
nothing. PySpark has no such function, so the RDD is made by that of Scala.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pyspark import RDD
from pyspark.serializers import CPickleSerializer
from pyspark.sql import SparkSession

from terascope.spark.session import runs_here

YOUNG_SECONDS: Final = 20
"""The age of a Spark application up to which executors are awaited."""


def await_executors(spark: SparkSession, hosts: Iterable[str]) -> None:
    """Wait until each of these hosts has an executor, in the first seconds of an application only:
    Spark starts executors while a set is compiled, and would run the tasks of a host that has none
    yet on others. Later a host without one has been lost, and nobody waits for it.
    """
    wanted, context = set(hosts), spark.sparkContext
    tracker = context._jsc.sc().statusTracker()
    while time.time() < context.startTime / 1000 + YOUNG_SECONDS:
        if wanted <= {executor.host() for executor in tracker.getExecutorInfos()}:
            return
        time.sleep(0.1)


def located_numbers(spark: SparkSession, hosts: Sequence[Sequence[str]]) -> RDD[int]:
    """The numbers 0 to len(hosts) - 1; an empty list of hosts leaves the place to Spark."""
    context = spark.sparkContext
    if not any(hosts) or runs_here(spark):
        return context.parallelize(range(len(hosts)), max(1, len(hosts)))
    await_executors(spark, (name for names in hosts for name in names))
    jvm: Any = context._jvm
    serializer: Any = CPickleSerializer()
    items = jvm.java.util.ArrayList()
    for number, names in enumerate(hosts):
        places = jvm.java.util.ArrayList()
        for name in names:
            places.add(name)
        items.add(jvm.scala.Tuple2(serializer.dumps(number), jvm.PythonUtils.toSeq(places)))
    scala: Any = context._jsc.sc()
    pickled = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("[B"))
    made = scala.makeRDD(jvm.PythonUtils.toSeq(items), pickled)
    return RDD(made.toJavaRDD(), context, serializer)
