"""A Spark master with workers, as processes on loopback: the standalone cluster of pyspark's distribution.

with SparkCluster(folder) as cluster:
EngineProcess(data, *cluster.arguments)
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType

import pyspark

from tailgate.embedded.children import Child, free_port
from tailgate.engine.runtime.spark.cluster import Cluster

HOME = Path(pyspark.__file__).parent
ENVIRONMENT = {"SPARK_HOME": str(HOME), "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": "127.0.0.1"}
READY = timedelta(seconds=60)
CORES, MEMORY = 1, "1g"  # of a worker
# Executors of tests do not run long enough to need the JVM's second compiler.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class SparkCluster:
    """A master and `workers` workers of one core, each with room for one executor. They end with the block, or with this process.

    `java_options`: those of executors.
    """

    def __init__(self, folder: Path, workers: int = 2, java_options: str = JAVA_OPTIONS) -> None:
        self.folder, self._count, self._java_options = folder, workers, java_options
        self.master = f"spark://127.0.0.1:{free_port()}"
        self.secret_file = folder / "secret"
        self.workers: list[Child] = []
        self._master: Child | None = None

    def __enter__(self) -> SparkCluster:
        self.folder.mkdir(parents=True, exist_ok=True)
        secret = secrets.token_hex(16)
        self.secret_file.touch(0o600)
        self.secret_file.write_text(secret)
        properties = self.folder / "spark.properties"
        properties.touch(0o600)
        properties.write_text(f"spark.authenticate true\nspark.network.crypto.enabled true\nspark.authenticate.secret {secret}\n")
        host, port = self.master.removeprefix("spark://").split(":")
        place = ["--host", host, "--properties-file", str(properties), "--webui-port", "0"]
        self._master = self._daemon("master", "deploy.master.Master", [*place, "--port", port], "I have been elected leader")
        for n in range(self._count):
            work = ["--cores", str(CORES), "--memory", MEMORY, "--work-dir", str(self.folder / f"work{n}"), self.master]
            self.workers.append(self._daemon(f"worker{n}", "deploy.worker.Worker", [*place, *work], "Successfully registered with master"))
        for daemon in (self._master, *self.workers):
            daemon.wait_ready(daemon.announced, READY)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for daemon in (*self.workers, *([self._master] if self._master else [])):
            daemon.kill()

    def _daemon(self, name: str, program: str, arguments: list[str], announces: str) -> Child:
        command = ["java", "-cp", f"{HOME}/jars/*", "-Xmx256m", *JAVA_OPTIONS.split(), f"org.apache.spark.{program}", *arguments]
        environment = {
            "SPARK_HOME": str(HOME),
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / name),
        }
        return Child(name, command, log=self.folder / f"{name}.log", environment=environment, announces=announces)

    @property
    def settings(self) -> dict[str, str]:
        """Returns the settings of Spark with which an engine uses this cluster."""
        return {
            "spark.authenticate.secret.file": str(self.secret_file),
            "spark.executor.memory": "700m",
            "spark.executor.extraJavaOptions": self._java_options,
        }

    @property
    def arguments(self) -> tuple[str, ...]:
        """Returns the options of `tailgate engine` with which it uses this cluster."""
        settings = (word for name, value in self.settings.items() for word in ("--spark-conf", f"{name}={value}"))
        return ("--master", self.master, *settings)

    def executors(self) -> list[int]:
        """Returns the process ids of the executors that run."""
        groups = {worker.pid for worker in self.workers}
        executors = []
        for status in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # the process has ended meanwhile
                parent = int(status.read_text().rpartition(")")[2].split()[1])
                if parent in groups and b"CoarseGrainedExecutorBackend" in (status.parent / "cmdline").read_bytes():
                    executors.append(int(status.parent.name))
        return sorted(executors)

    def cluster(self) -> Cluster:
        """Returns the cluster, for a Spark session of a test."""
        return Cluster(self.master, "127.0.0.1", tuple(self.settings.items()))
