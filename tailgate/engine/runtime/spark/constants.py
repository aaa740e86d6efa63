"""Evaluates an expression without columns."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import DatetimeFieldOverflow, of
from tailgate.sql import plan
from tailgate.sql.bind import bind_query
from tailgate.sql.render.spark import expression


def evaluated(text: str, session: SparkSession) -> Any:
    """Returns the value of an expression of PostgreSQL's dialect, in the form that Arrow takes. Raises the error of its evaluation."""
    query = bind_query(f"SELECT {text} AS value", Catalog())
    assert isinstance(query.plan, plan.Project)
    try:
        table = session.sql(f"SELECT {expression(query.plan.expressions[0])} AS value FROM range(1)").toArrow()
    except (Py4JJavaError, PySparkException) as error:
        cause: Any = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
        if cause is None:
            raise
        while cause.getCause() is not None:
            cause = cause.getCause()
        jvm: Any = session._jvm
        failure = jvm.tailgate.errors.SparkErrors.of(cause)
        raise of(failure.sqlstate(), failure.getMessage()) from None
    values = table.column("value").cast(query.columns[0].type.arrow)
    try:
        return values.to_pylist()[0]
    except (OverflowError, ValueError):  # Python has no dates after the year 9999
        raise DatetimeFieldOverflow("date or timestamp out of range") from None
