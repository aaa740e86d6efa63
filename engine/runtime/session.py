"""The Spark session of the engine: one JVM, bound to loopback, niced, with everything per tick switched off that can be.

Jars are put on the driver's class path instead of `spark.jars`: QuietFiles is needed before those are loaded, and nothing is
copied at start. Source of the settings: docs/engine.md, "What Spark is told and why".
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

STATE_CACHE_MB = 256  # RocksDB's block cache and write buffers, of all stores of this process together
ENDING_MS = 2000  # longest exit of the JVM
DRIVER_MEMORY = "2g"  # heap; Arrow and RocksDB live outside it

STREAMING = "spark.sql.streaming"
SPARK = "org.apache.spark.sql.execution.streaming"
SETTINGS: dict[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",  # the catalogue's templates say each result's scale
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.hadoop.fs.file.impl": "tailgate.QuietFiles",  # no fork of chmod for each file: 25 of 85 ms of a tick
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
    f"{STREAMING}.checkpoint.fileChecksum.enabled": "false",  # Hadoop's beside each file do, and are read; two more files a file
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


CLASSES = Path("engine", "java", "target", "classes.jsa")  # made by engine.runtime.classes
LOGGING = Path(__file__).parent / "log4j2.properties"


def home() -> Path:
    """Where `make setup` has put what it fetched and built."""
    return Path(os.environ.get("TAILGATE_HOME", Path(__file__).parents[2]))


def jars() -> list[Path]:
    """The jars that pyspark lacks, and the circuit's own."""
    root = home()
    found = sorted((root / ".jars" / "spark").glob("*.jar"))
    own = root / "engine" / "java" / "target" / "tailgate.jar"
    if not found or not own.exists():
        raise FileNotFoundError(f"the engine's jars are not in {root}: run `make setup`")
    return [own, *found]


def start(scratch: Path, parallelism: int) -> SparkSession:
    """Starts the JVM; `scratch` is for what may be lost (shuffles, working copies of the state).

    TAILGATE_JAVA_OPTIONS are options of the JVM besides ours.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    scratch.mkdir(parents=True, exist_ok=True)
    options = ["-XX:+UseSerialGC", f"-Djava.io.tmpdir={scratch}", f"-Dlog4j2.configurationFile={LOGGING}"]
    if (classes := home() / CLASSES).exists():
        options += [
            f"-XX:SharedArchiveFile={classes}",
            "-Xlog:disable",
            "-Xlog:all=error:stderr",
        ]  # else a file that does not fit is a warning
    options.append(os.environ.get("TAILGATE_JAVA_OPTIONS", ""))
    settings = {
        **SETTINGS,
        "spark.driver.extraClassPath": ":".join(map(str, jars())),
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.driver.extraJavaOptions": " ".join(options).rstrip(),
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    builder = SparkSession.builder.master(f"local[{max(2, parallelism)}]").appName("tailgate")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    _unwatched(session)
    session._jvm.tailgate.Functions.register(session._jsparkSession)  # type: ignore[union-attr]
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


def halt(session: SparkSession) -> None:
    """Ends the JVM at once: everything of worth is on disk."""
    with contextlib.suppress(Exception):  # it cannot answer
        session._jvm.java.lang.Runtime.getRuntime().halt(0)  # type: ignore[union-attr]
