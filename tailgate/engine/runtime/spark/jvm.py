"""Starts the JVM before anything else, so that it starts up while Python imports the engine.

PySpark would do so after all imports, and start another JVM first to find out how: 2.5 s of 7.

    launch ──► java … PythonGatewayServer ──► a file: port and secret ──► PySpark connects to it

The JVM ends when its standard input ends, which this process holds open. This module imports only
`java`, `scratch` and the standard library.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tailgate.lake.host import java
from tailgate.lake.host.scratch import scratch

JARS = Path(__file__).parents[3] / "jars"  # from `make setup`, or part of an installed wheel
CLASSES = JARS / "classes.jsa"  # the archive of classes for `class_path()`, written by engine.runtime.classes
LOGGING = {"text": Path(__file__).parent / "log4j2.properties", "json": Path(__file__).parent / "log4j2-json.properties"}
UNUSED = "spark-mllib_"  # Spark's jar that would register functions in each session, with Scala's reflection: a tenth of a start
SERVER = "org.apache.spark.api.python.PythonGatewayServer"
NICE = 5  # gives the gateway and its queries priority: latency depends on scheduling
AUTOGROUP = Path("/proc/self/autogroup")  # of the session
READY_S = 60.0  # limit for the start: on two idle cores it takes 1 s
ENDED_S = 1.0  # limit between the end of the JVM's connections and that of the process
LOOK_S = 0.01  # between two checks; the JVM renames the finished file into place

# The JVM's second compiler starts ten times later than by default. On two cores it took a third of
# the start, and of the first minute's ticks, for code that runs a few thousand times. Loops over
# rows still reach these limits within milliseconds.
COMPILER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

YOUNG_MB = 256  # of new objects, at most a third of the heap: a tick's rows leave it dead, with 120 MB some of them were copied twice
METASPACE = "-XX:MetaspaceSize=192m"  # until then, more classes start no garbage collection; Spark's take 150 MB

# Java packages that Spark must access. A test compares this list with that of Spark's launcher
# (org.apache.spark.launcher.JavaModuleOptions).
MODULES = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.invoke=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.cs=ALL-UNNAMED",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    "--add-opens=java.base/sun.util.calendar=ALL-UNNAMED",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a JVM.

    `heap_mb`: the heap; Arrow and RocksDB allocate outside of it. `state_mb`: RocksDB's block cache and write buffers, of all state
    stores together. `tick_rows`: records of a reader of Kafka in one tick.
    """

    heap_mb: int = 2048
    state_mb: int = 256
    tick_rows: int = 50_000


class JvmFailed(RuntimeError):
    """Raised when the JVM ends or does not start in time."""


class Jvm:
    """A JVM that is starting or running.

    `scratch` is a folder for temporary files (shuffles, working copies of the state). `held` are
    file descriptors that the JVM inherits. `log`: the form of its log. TAILGATE_JAVA_OPTIONS adds options of the JVM.
    """

    def __init__(self, scratch: Path, held: tuple[int, ...] = (), limits: Limits | None = None, log: str = "text") -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self.scratch = scratch
        self.limits = limits or Limits()
        self._said = scratch / "gateway"
        self._said.unlink(missing_ok=True)
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        environment = {**os.environ, "SPARK_HOME": str(_pyspark()), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._said)}
        self.process = subprocess.Popen(
            [java.program(), *_options(scratch, self.limits, log), SERVER],
            stdin=subprocess.PIPE,
            env=environment,
            pass_fds=held,
            # set before there are threads: only this process handles Ctrl-C
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )

    def attach(self) -> None:
        """Waits until the JVM listens and sets the environment variables PySpark connects with."""
        deadline = time.monotonic() + READY_S
        while not self._said.exists():
            if self.process.poll() is not None:
                raise JvmFailed(f"the JVM ended with {self.process.returncode}")
            if time.monotonic() > deadline:
                raise JvmFailed(f"the JVM does not listen after {READY_S:.0f} s")
            time.sleep(LOOK_S)
        data = self._said.read_bytes()
        self._said.unlink()
        port, length = struct.unpack_from("!ii", data)
        os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
        os.environ["PYSPARK_GATEWAY_SECRET"] = data[8 : 8 + length].decode()

    def ended(self) -> bool:
        """Returns whether the process has ended. Its connections break a moment earlier, so this waits up to ENDED_S."""
        try:
            self.process.wait(ENDED_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> None:
        """Kills the JVM. All data that matters is on disk."""
        self.process.kill()
        self.process.communicate()


@contextmanager
def launched(root: Path, limits: Limits | None = None, log: str = "text") -> Iterator[Jvm]:
    """Yields a JVM and its scratch folder below `root`; both end with the block. `log`: the form of its log.

    Lowers the scheduling priority of this process, its threads and the JVM.
    """
    lower_priority()
    with scratch(root) as own:
        jvm = Jvm(own.path, (own.descriptor,), limits, log)
        try:
            yield jvm
        finally:
            jvm.end()


def lower_priority() -> None:
    """Lowers the scheduling priority of this process and of those that it starts.

    Linux may schedule sessions as groups (`sched_autogroup_enabled`, for processes that are in no other group). The priorities of
    processes then count within their session only. If this process leads its session, as below `tailgate up`, lowers that of the group.
    """
    os.nice(NICE)
    if os.getsid(0) == os.getpid():  # otherwise the session has processes of others, such as a shell
        with suppress(OSError):  # no such groups
            AUTOGROUP.write_text(str(NICE))


def attached() -> None:
    """Removes the secret from the environment, so that child processes do not get it."""
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
        os.environ.pop(name, None)


def jars() -> list[Path]:
    """Returns the engine's own jar and the jars that pyspark lacks."""
    connectors, own = sorted((JARS / "spark").glob("*.jar")), JARS / "tailgate.jar"
    if not connectors or not own.exists():
        raise FileNotFoundError(f"the engine's jars are not in {JARS}: run `make setup`")
    return [own, *connectors]


def _pyspark() -> Path:
    """Returns the folder of pyspark, without importing it."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def class_path() -> str:
    """Returns the class path of the engine's JVMs, here and in executors that have this installation under the same path."""
    theirs = sorted(jar for jar in (_pyspark() / "jars").glob("*.jar") if not jar.name.startswith(UNUSED))
    slf4j = [jar for jar in theirs if jar.name.startswith("slf4j-api-")]
    # Our jar comes first: DurableFiles is needed before Spark loads jars, and no jar is copied.
    more = os.environ.get("SPARK_DIST_CLASSPATH")
    return ":".join(dict.fromkeys(map(str, (*jars(), *slf4j, *theirs, *([more] if more else [])))))


def logging_options(log: str) -> list[str]:
    """Returns the options for the form of the JVM's log. Its events have the number of the engine's process."""
    return [f"-Dlog4j2.configurationFile={LOGGING[log]}", f"-Dtailgate.pid={os.getpid()}"]


def _heap(heap_mb: int) -> list[str]:
    return [f"-Xmx{heap_mb}m", f"-Xmn{min(YOUNG_MB, heap_mb // 3)}m", METASPACE, "-XX:+UseSerialGC"]


def _options(scratch: Path, limits: Limits, log: str) -> list[str]:
    """Returns the command-line options of the JVM."""
    options = ["-cp", class_path(), *_heap(limits.heap_mb), *COMPILER, f"-Djava.io.tmpdir={scratch}"]
    options += [f"-Dtailgate.tick.rows={limits.tick_rows}", *logging_options(log)]
    return [*options, *java.archive_options(CLASSES), *os.environ.get("TAILGATE_JAVA_OPTIONS", "").split(), *MODULES]
