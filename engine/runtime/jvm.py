"""The JVM, started before anything else: it comes up while Python imports what the engine is made of.

PySpark's own way, after all imports, starts a script that starts a JVM that says how the JVM is to be started: 2.5 s of a start of 7.

    launch ──► java … PythonGatewayServer ──► a file: port and secret ──► where PySpark looks for a gateway that is there already

It ends when its standard input does, which this process holds. Besides `scratch`, only the standard library is imported here.
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from lake.scratch import scratch

DRIVER_MEMORY = "2g"  # heap; Arrow and RocksDB live outside it
CLASSES = Path("engine", "java", "target", "classes.jsa")  # made by engine.runtime.classes
LOGGING = Path(__file__).parent / "log4j2.properties"
SERVER = "org.apache.spark.api.python.PythonGatewayServer"
NICE = 5  # the gateway and what it answers come first: latency is decided by who is scheduled
READY_S = 60.0  # until it says where it listens: 1 s on two idle cores
ENDED_S = 1.0  # between the end of its connections and that of the process
LOOK_S = 0.01  # the file is renamed into its place by the JVM

# The JVM's second compiler begins ten times later than by itself: on two cores it took a third of a start, and of the first minute's ticks,
# for what runs a few thousand times. Loops over rows reach these numbers within milliseconds all the same.
COMPILER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

# What Spark may open of Java: its launcher's list (org.apache.spark.launcher.JavaModuleOptions), which a test compares with this one.
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


class JvmFailed(RuntimeError):
    """It ended, or did not come up in time."""


class Jvm:
    """On its way up. `scratch` is for what may be lost (shuffles, working copies of the state); `held`: descriptors that it inherits.

    TAILGATE_JAVA_OPTIONS are options of the JVM besides ours.
    """

    def __init__(self, scratch: Path, held: tuple[int, ...] = ()) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self.scratch = scratch
        self._said = scratch / "gateway"
        self._said.unlink(missing_ok=True)
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        environment = {**os.environ, "SPARK_HOME": str(_pyspark()), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._said)}
        self.process = subprocess.Popen(
            [_java(), *_options(scratch), SERVER],
            stdin=subprocess.PIPE,
            env=environment,
            pass_fds=held,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # before there are threads; Ctrl-C is ours
        )

    def attach(self) -> None:
        """Waits until it listens, and tells PySpark, which connects when it is first used."""
        deadline = time.monotonic() + READY_S
        while not self._said.exists():
            if self.process.poll() is not None:
                raise JvmFailed(f"the JVM ended with {self.process.returncode}")
            if time.monotonic() > deadline:
                raise JvmFailed(f"the JVM does not listen after {READY_S:.0f} s")
            time.sleep(LOOK_S)
        said = self._said.read_bytes()
        self._said.unlink()
        port, length = struct.unpack_from("!ii", said)
        os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
        os.environ["PYSPARK_GATEWAY_SECRET"] = said[8 : 8 + length].decode()

    def ended(self) -> bool:
        """Returns whether the process has ended. Its connections break a moment earlier, so this waits up to ENDED_S."""
        try:
            self.process.wait(ENDED_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> None:
        """At once: everything of worth is on disk."""
        self.process.kill()
        self.process.communicate()


@contextmanager
def launched(root: Path) -> Iterator[Jvm]:
    """A JVM and its scratch folder below `root`, which end with the block. This process is niced, and so are its threads and the JVM."""
    os.nice(NICE)
    with scratch(root) as own:
        jvm = Jvm(own.path, (own.descriptor,))
        try:
            yield jvm
        finally:
            jvm.end()


def attached() -> None:
    """PySpark is connected: the secret is not for children of this process."""
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
        os.environ.pop(name, None)


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


def _pyspark() -> Path:
    """Its folder; it is not imported."""
    found = find_spec("pyspark")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent


def _java() -> str:
    """JAVA_HOME's, as Spark takes it, or else the first on the path."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found is None:
        raise FileNotFoundError("there is no java: install a JDK 17, or set JAVA_HOME")
    return found


def _options(scratch: Path) -> list[str]:
    theirs = _pyspark() / "jars"
    # ours first: DurableFiles is needed before Spark loads jars, and nothing is copied at start
    more = os.environ.get("SPARK_DIST_CLASSPATH")
    path = ":".join(map(str, (*jars(), *sorted(theirs.glob("slf4j-api-*.jar")), theirs / "*", *([more] if more else []))))
    options = ["-cp", path, f"-Xmx{DRIVER_MEMORY}", "-XX:+UseSerialGC", *COMPILER, f"-Djava.io.tmpdir={scratch}"]
    options.append(f"-Dlog4j2.configurationFile={LOGGING}")
    if (classes := home() / CLASSES).exists():  # without the last two, a file that does not fit is a warning
        options += [f"-XX:SharedArchiveFile={classes}", "-Xlog:disable", "-Xlog:all=error:stderr"]
    return [*options, *os.environ.get("TAILGATE_JAVA_OPTIONS", "").split(), *MODULES]
