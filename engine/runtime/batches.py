"""The batches of a streaming query, given to a function of Python: `foreachBatch` without PySpark's.

    query's thread ──► tailgate.Batches ──► a thread here: call(batch) ──► the query goes on

PySpark's `foreachBatch` makes a session and a DataFrame of every batch: 20 ms of CPU a tick, for looking up classes by name in all of
the JVM's 290 jars. It also has Py4J listen on a port that asks for no authentication. Here a thread waits in the JVM for the next
batch, so nothing has to call this process.
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

    From then on each calls `call` with the JVM's `tailgate.Batches.Batch`, in a thread of its own; `call` never raises. `end` when
    the query has ended.
    """

    def __init__(self, session: SparkSession, writer: DataStreamWriter, call: Callable[[Any], None]) -> None:
        jvm: Any = session._jvm
        self._batches = jvm.tailgate.Batches()
        self._call = call
        writer._jwrite.foreachBatch(self._batches)
        threading.Thread(target=self._take, name="batches", daemon=True).start()

    def _take(self) -> None:
        try:
            while (batch := self._batches.next()) is not None:
                try:
                    self._call(batch)
                finally:
                    batch.done()
        except (Py4JError, OSError):
            pass  # the JVM is gone, which ends the query too

    def end(self) -> None:
        with contextlib.suppress(Py4JError, OSError):  # the JVM is gone, and its threads with it
            self._batches.end()
