"""Writes the classes of a running engine to an archive file, which the JVM maps at the next start.

A start then takes two thirds of the time. `make setup` runs this after it has built the jar; after an installation from a wheel it can be
run by hand. It needs no JDK.

    python -m tailgate.engine.runtime.classes
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from tailgate.engine.runtime.spark import session as spark
from tailgate.engine.runtime.spark.jvm import CLASSES, JvmFailed, launched
from tailgate.engine.runtime.warm_up import small_engine
from tailgate.lake.host import java

SERVER = "the engine"


def dump(file: Path) -> None:
    """Runs a small engine and writes an archive of the classes that it has loaded, and of those of Kafka's clients."""
    file.unlink(missing_ok=True)  # a JVM that uses an archive cannot record another one
    with tempfile.TemporaryDirectory() as folder:
        loaded = f"{folder}/loaded"  # the JVM lists its classes there
        os.environ["TAILGATE_JAVA_OPTIONS"] = " ".join(("-XX:+RecordDynamicDumpInfo", *java.QUIET, f"-Xlog:class+load:file={loaded}:none"))
        _dump(file, loaded)


def _dump(file: Path, loaded: str) -> None:
    """Writes the archive. `loaded`: the list of classes."""
    with launched(file.parent) as jvm:
        session = spark.start(jvm.scratch, 1, jvm)
        with small_engine(session, jvm.scratch / "lake"):
            archive: Any = session._jvm.tailgate.ClassArchive  # type: ignore[union-attr]  # PySpark declares it as optional
            try:
                archive.loadClients()
                archive.linkLoaded(loaded)
                archive.write(str(file))
            except Py4JJavaError as error:
                print(f"setup: {error.java_exception}", flush=True)
            if not file.exists():
                java.do_without(file, SERVER, "this JVM has written none")


if __name__ == "__main__":
    try:
        dump(CLASSES)
    except JvmFailed as error:  # a runtime without an archive of the JDK's classes cannot record others
        java.do_without(CLASSES, SERVER, error)
