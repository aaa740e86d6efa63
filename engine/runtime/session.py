"""The Spark session of the engine: bound to loopback, with everything per tick switched off that can be.

Source of the settings: docs/engine.md, "Settings of Spark".
"""

from __future__ import annotations

from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from engine.runtime.jvm import Jvm, attached

STATE_CACHE_MB = 256  # RocksDB's block cache and write buffers, of all stores of this process together
TEN_YEARS_MS = 10 * 365 * 86_400_000
ENDING_MS = 2000  # longest exit of the JVM

STREAMING = "spark.sql.streaming"
SPARK = "org.apache.spark.sql.execution.streaming"
SETTINGS: dict[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.variable.substitute": "false",  # '${env:PATH}' in a statement is a text
    "spark.authenticate": "true",  # by a secret that Spark makes for this session: its ports refuse other users of this machine
    # Spark removes a block manager, its own driver's too, after two silent minutes by the wall clock, which may jump by days.
    "spark.storage.blockManagerHeartbeatTimeoutMs": str(TEN_YEARS_MS),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",  # the catalogue's templates say each result's scale
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.hadoop.fs.file.impl": "tailgate.DurableFiles",  # state survives a loss of power, and no fork of chmod for each file
    f"{STREAMING}.checkpointFileManagerClass": f"{SPARK}.checkpointing.FileSystemBasedCheckpointFileManager",
    f"{STREAMING}.stateStore.providerClass": f"{SPARK}.state.RocksDBStateStoreProvider",
    f"{STREAMING}.stateStore.checkpointFormatVersion": "2",  # versions with unique ids: a tick that is run again spoils nothing
    f"{STREAMING}.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    f"{STREAMING}.stateStore.rocksdb.trackTotalNumberOfRows": "false",  # else every put is also a get
    f"{STREAMING}.stateStore.rocksdb.boundedMemoryUsage": "true",
    f"{STREAMING}.stateStore.rocksdb.maxMemoryUsageMB": str(STATE_CACHE_MB),
    f"{STREAMING}.pollingDelay": "1ms",  # the look after a ring that finds nothing; the waiting itself is the doorbell's
    f"{STREAMING}.metricsEnabled": "false",
    f"{STREAMING}.numRecentProgressUpdates": "1",
    f"{STREAMING}.kafka.useDeprecatedOffsetFetching": "false",
    f"{STREAMING}.checkpoint.fileChecksum.enabled": "false",  # compressed streams and archives have some; two more files a file
    "spark.sql.codegen.cache.maxEntries": "5000",  # a new circuit finds what the one before had compiled, and the JVM made fast
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
    "spark.cleaner.periodicGC.interval": "10min",
}


PLANNING = {
    "spark.sql.codegen.wholeStage": "false",  # a tick's plan is a union of scans: its code was written, looked up and run for nothing
}


def start(scratch: Path, parallelism: int, jvm: Jvm | None = None) -> SparkSession:
    """A session in this JVM, or else in the one that this process has, or a new one. `scratch` is for what may be lost."""
    settings = {**SETTINGS, "spark.local.dir": str(scratch), "spark.sql.warehouse.dir": str(scratch / "warehouse")}
    builder = SparkSession.builder.master(f"local[{max(2, parallelism)}]").appName("tailgate")
    for name, value in settings.items():
        builder = builder.config(name, value)
    if SparkContext._gateway is None:
        jvm = jvm or Jvm(scratch)
        jvm.attach()
    session = builder.getOrCreate()
    if jvm is not None:
        attached()
        session.sparkContext._gateway.proc = jvm.process  # type: ignore[union-attr]  # as if PySpark had started it: held as long as used
    session.sparkContext.setLogLevel("ERROR")
    _unwatched(session)
    session._jvm.tailgate.functions.Functions.register(session._jsparkSession)  # type: ignore[union-attr]
    session._jvm.tailgate.Ending.within(ENDING_MS)  # type: ignore[union-attr]
    return session


def _unwatched(session: SparkSession) -> None:
    """Takes away those who keep books of jobs and stages for Spark's UI, which is off: 5 ms of CPU a tick."""
    context = session.sparkContext._jsc.sc()  # type: ignore[union-attr]
    for store in (context.statusStore(), session._jsparkSession.sharedState().statusStore()):
        listener = store.listener()
        if listener.isDefined():
            context.listenerBus().removeListener(listener.get())


def for_ticks(session: SparkSession) -> SparkSession:
    """A session like this one whose plans are cheap to make: the same small one is planned for every tick."""
    ticking = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())
    for name, value in PLANNING.items():
        ticking.conf.set(name, value)
    return ticking


def jvm_pid(session: SparkSession) -> int:
    return int(session._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
