"""Python functions on Arrow columns as functions on Spark Columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.spark.catalyst.frame import spark_type
from terascope.types import Type


def arrow_function(function: Callable[..., pa.Array], type: Type) -> Callable[..., Column]:
    """The function as an Arrow UDF: whole columns in, a column of the type out. Spark learns what
    kind of UDF it is from the type hints of the function.
    """
    spark: Any = F  # PySpark's type stubs do not know arrow_udf
    made: Callable[..., Column] = spark.arrow_udf(function, spark_type(type))
    return made
