"""The engine's Spark session. It omits costs per tick where possible, and listens on loopback only unless its executors are elsewhere.

docs/engine.md, "Settings of Spark", explains the settings.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tailgate.engine.runtime.spark.cluster import Cluster
from tailgate.engine.runtime.spark.jvm import Jvm, Limits, attached
from tailgate.lake.errors import ConnectionFailure

TEN_YEARS_MS = 10 * 365 * 86_400_000
ENDING_MS = 2000  # longest shutdown of the JVM
EXECUTOR_S, LOOK_S = 60.0, 0.05  # limit for the start of an executor, and the time between two checks

STREAMING = "spark.sql.streaming"
STATE_MEMORY = f"{STREAMING}.stateStore.rocksdb.maxMemoryUsageMB"
SPARK = "org.apache.spark.sql.execution.streaming"
SETTINGS: dict[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.variable.substitute": "false",  # '${env:PATH}' in a statement is ordinary text
    # with a secret per session: Spark's ports refuse other users of this machine
    "spark.authenticate": "true",
    # Spark removes a block manager, even its own driver's, after two minutes without a heartbeat.
    # It uses the wall clock, which may jump by days.
    "spark.storage.blockManagerHeartbeatTimeoutMs": str(TEN_YEARS_MS),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # the templates of the function catalog define the scale of each result
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # makes state survive a loss of power, and saves a fork of chmod for each file
    "spark.hadoop.fs.file.impl": "tailgate.state.DurableFiles",
    f"{STREAMING}.checkpointFileManagerClass": f"{SPARK}.checkpointing.FileSystemBasedCheckpointFileManager",
    f"{STREAMING}.stateStore.providerClass": f"{SPARK}.state.RocksDBStateStoreProvider",
    # versions have unique ids: a repeated tick does no harm
    f"{STREAMING}.stateStore.checkpointFormatVersion": "2",
    f"{STREAMING}.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # otherwise every put is also a get
    f"{STREAMING}.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # writes in batches have none (BatchedWrites.java)
    f"{STREAMING}.stateStore.rowChecksum.enabled": "false",
    f"{STREAMING}.stateStore.rocksdb.boundedMemoryUsage": "true",
    f"{STREAMING}.kafka.useDeprecatedOffsetFetching": "false",
    # compressed streams and archives have their own; saves two more files per file
    f"{STREAMING}.checkpoint.fileChecksum.enabled": "false",
    # a new circuit reuses the compiled code of the one before
    "spark.sql.codegen.cache.maxEntries": "5000",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
    "spark.cleaner.periodicGC.interval": "10min",
}
# Settings of a driver that is its own executor; a cluster has others.
OF_ONE_PROCESS = frozenset({"spark.driver.host", "spark.driver.bindAddress", "spark.storage.blockManagerHeartbeatTimeoutMs"})


def start(scratch: Path, parallelism: int, jvm: Jvm | None = None, cluster: Cluster | None = None) -> SparkSession:
    """Returns a Spark session: in the given JVM, else in this process's JVM, else in a new JVM.

    `scratch` is a folder for temporary files. Tasks run in the executors of `cluster`, if there is one. Raises 22023 for a setting of
    it that cannot be used, and 08006 if its master does not answer.
    """
    limits = Limits() if jvm is None else jvm.limits
    folders = {"spark.local.dir": str(scratch), "spark.sql.warehouse.dir": str(scratch / "warehouse")}
    settings = {**SETTINGS, **folders, STATE_MEMORY: str(limits.state_mb)}
    if cluster is not None:
        settings = {**_distributed(settings), **cluster.settings(settings.keys() - OF_ONE_PROCESS)}
    master = f"local[{max(2, parallelism)}]" if cluster is None else cluster.master
    builder = SparkSession.builder.master(master).appName("tailgate")
    for name, value in settings.items():
        builder = builder.config(name, value)
    if SparkContext._gateway is None:
        jvm = jvm or Jvm(scratch)
        jvm.attach()
    session = builder.getOrCreate() if cluster is None else _connected(builder, cluster)
    if jvm is not None:
        attached()
        # as if PySpark had started the JVM: it keeps the process as long as it uses it
        session.sparkContext._gateway.proc = jvm.process  # type: ignore[union-attr]  # PySpark declares it as optional
    session.sparkContext.setLogLevel("ERROR")
    _unwatched(session)
    library: Any = session._jvm.tailgate  # type: ignore[union-attr]  # PySpark declares it as optional
    library.functions.Functions.register(session._jsparkSession)
    library.ExitTimeout.within(ENDING_MS)
    return session


def _connected(builder: SparkSession.Builder, cluster: Cluster) -> SparkSession:
    """Returns the session of a driver that has an executor. Raises 08006 if it does not have one within a minute."""
    deadline = time.monotonic() + EXECUTOR_S
    try:
        session = builder.getOrCreate()
        while session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 2:  # the driver is one of them
            if time.monotonic() > deadline:
                session.stop()
                raise ConnectionFailure(
                    f'the Spark master "{cluster.master}" has started no executor within {EXECUTOR_S:.0f} s',
                    hint="An executor needs a worker with the cores and the memory of its settings that no other application uses.",
                )
            time.sleep(LOOK_S)
        return session
    except Py4JError as e:
        reason = e.java_exception.getMessage() if isinstance(e, Py4JJavaError) else str(e)
        raise ConnectionFailure(
            f'the Spark master "{cluster.master}" does not accept the engine: {reason}',
            hint="Check that it runs and has this secret.",
        ) from e


def is_local(session: SparkSession) -> bool:
    """Returns whether all tasks run in the JVM of the session."""
    return bool(session.sparkContext._jsc.sc().isLocal())


def _distributed(settings: dict[str, str]) -> dict[str, str]:
    """Returns those settings that also apply to executors in other processes."""
    return {name: value for name, value in settings.items() if name not in OF_ONE_PROCESS}


def _unwatched(session: SparkSession) -> None:
    """Removes the listeners that collect jobs and stages for Spark's UI, which is off.

    They take 5 ms of CPU per tick.
    """
    context = session.sparkContext._jsc.sc()
    for store in (context.statusStore(), session._jsparkSession.sharedState().statusStore()):
        listener = store.listener()
        if listener.isDefined():
            context.listenerBus().removeListener(listener.get())


def jvm_pid(session: SparkSession) -> int:
    """Returns the process id of the session's JVM."""
    return int(session._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]  # PySpark declares it as optional
