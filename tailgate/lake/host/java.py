"""Java on this machine: its program, and archives of classes, which JVMs map at their start.

With an archive, a JVM need not read, verify and link each class again. It ignores one that does not fit the jars. Source: JEP 350,
dynamic class data sharing archives.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

# Without them, the JVM warns about an archive of classes that does not fit, and about classes that it does not archive.
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")


def found() -> str | None:
    """Returns the `java` program: that of JAVA_HOME, as for Spark, else the first on PATH; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def program() -> str:
    """Returns the `java` program. Raises FileNotFoundError if there is none."""
    if (program := found()) is None:
        raise FileNotFoundError("java is not on PATH and JAVA_HOME is not set: Java 17 or newer is needed")
    return program


def archive_options(file: Path) -> list[str]:
    """Returns the options that make a JVM use an archive of classes, if there is one.

    An empty file is none: with it, a JVM would start without the archive of the JDK's classes, too.
    """
    return [f"-XX:SharedArchiveFile={file}", *QUIET] if file.exists() and file.stat().st_size else []


def do_without(file: Path, server: str, reason: object) -> None:
    """Prints why a server has no archive of classes, and writes an empty file, so that `make setup` does not try again."""
    print(f"setup: {reason}; {server} starts without an archive of classes", flush=True)
    file.touch()
