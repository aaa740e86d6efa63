"""Spark's batches to a function of ours: `foreachBatch` without what PySpark wraps around it.

PySpark makes a session and a DataFrame of every batch. Each looks up a dozen classes by names of which parts are no classes, and
the JVM looks for those in all of its 290 jars: 20 ms of CPU a tick. We need only the JVM's own Dataset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter


class _Batches:
    """What the JVM calls; never raises."""

    def __init__(self, call: Callable[[Any, int], None]) -> None:
        self.call = call

    class Java:
        implements = ("org.apache.spark.sql.execution.streaming.sources.PythonForeachBatchFunction",)


def on_batch(session: SparkSession, writer: DataStreamWriter, call: Callable[[Any, int], None]) -> None:
    """Each batch of the query calls `call` with the JVM's Dataset and the batch's number."""
    gateway = session.sparkContext._gateway
    assert gateway is not None
    ensure_callback_server_started(gateway)
    helper = session._jvm.org.apache.spark.sql.execution.streaming.sources.PythonForeachBatchHelper  # type: ignore[union-attr]
    helper.callForeachBatch(writer._jwrite, _Batches(call))
