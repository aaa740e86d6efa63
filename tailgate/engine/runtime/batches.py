"""Passes the batches of a streaming query to a Python function, as PySpark's `foreachBatch` does.

    query's thread ──► tailgate.circuit.Batches ──► Python thread: call(batch) ──► the query continues

PySpark's `foreachBatch` creates a session and a DataFrame for every batch. That takes 20 ms of CPU
per tick, because it looks up classes by name in all of the JVM's 290 jars. It also makes Py4J
listen on a port without authentication. Here a Python thread waits in the JVM for the next batch,
so the JVM never has to call this process.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter


class Batches:
    """The batches of the query that `writer` starts.

    A background thread calls `call` with each batch (the JVM's `tailgate.circuit.Batches.Batch`). `call`
    must not raise. `end` is called after the query has ended.
    """

    def __init__(self, session: SparkSession, writer: DataStreamWriter, call: Callable[[Any], None]) -> None:
        jvm: Any = session._jvm
        self._batches = jvm.tailgate.circuit.Batches()
        self._call = call
        writer._jwrite.foreachBatch(self._batches)
        threading.Thread(target=self._take, name="batches", daemon=True).start()

    def _take(self) -> None:
        """Passes batches to `call` until the query ends."""
        try:
            while (batch := self._batches.next()) is not None:
                try:
                    self._call(batch)
                finally:
                    batch.done()
        except (Py4JError, OSError):
            pass  # the JVM is gone, and the query with it

    def end(self) -> None:
        """Ends the background thread."""
        with contextlib.suppress(Py4JError, OSError):  # the JVM is gone, and its threads with it
            self._batches.end()
