"""Numbers of tasks, each with the hosts on which it should run.

In: for each task the hosts that hold its input, as Spark calls them. Out: an RDD of the numbers 0,
1, ..., one per partition. Spark runs a task on one of its hosts if that host has an executor that
is free within `spark.locality.wait`, and on any other host otherwise: a host that is lost delays
nothing. PySpark has no such function, so the RDD is made by that of Scala.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark import RDD
from pyspark.serializers import CPickleSerializer
from pyspark.sql import SparkSession


def located_numbers(spark: SparkSession, hosts: Sequence[Sequence[str]]) -> RDD[int]:
    """The numbers 0 to len(hosts) - 1; an empty list of hosts leaves the place to Spark."""
    context = spark.sparkContext
    if not any(hosts):
        return context.parallelize(range(len(hosts)), max(1, len(hosts)))
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
