"""The release before this one: its sources from the repository's history, and its Java library, built by Maven."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pyspark

import tailgate
from tailgate.embedded.children import Child

COMMIT = "4af6d229dccdb237abbbde6e7274ed1bb1898e9d"  # of 28 November 2026
ROOT = Path(tailgate.__file__).parents[1]
JARS = Path("tailgate/jars")


class PreviousRelease:
    """A folder with the release, whose commands run with the packages of this one. `other_plans`: it plans joins in another way."""

    def __init__(self, folder: Path, *, other_plans: bool) -> None:
        self.folder = folder
        folder.mkdir()
        archive = folder / "source.tar"
        subprocess.run(["git", "-C", ROOT, "archive", "--output", archive, COMMIT], check=True, timeout=60)
        with tarfile.open(archive) as source:
            source.extractall(folder, filter="data")
        if other_plans:
            digest = folder / "tailgate/engine/plan/views/digest.py"
            text = digest.read_text()
            assert "JOIN_LAYOUT = 3" in text
            digest.write_text(text.replace("JOIN_LAYOUT = 3", "JOIN_LAYOUT = 2"))
        spark = Path(pyspark.__file__).parent / "jars"
        pom = folder / "tailgate/engine/java/pom.xml"
        build = [os.environ.get("MVN", "mvn"), "-B", "-q", "-f", pom, "package", "-DskipTests", f"-Dpyspark.jars={spark}"]
        subprocess.run(build, check=True, timeout=300)
        (folder / JARS).mkdir()
        for name in ("spark", "kafka"):
            (folder / JARS / name).symlink_to(ROOT / JARS / name)
        (folder / "tailgate/engine/java/target/tailgate.jar").rename(folder / JARS / "tailgate.jar")

    def command(self, *words: str) -> Child:
        """Starts a command of the release."""
        # the folder in which Python starts comes first in its search path
        environment = {"SPARK_DIST_CLASSPATH": "", "PYTHONPATH": str(self.folder)}
        command = [sys.executable, "-m", "tailgate", *words]
        log = self.folder / f"{words[0]}.log"
        return Child(words[0], command, log=log, environment=environment, folder=self.folder, announces="ready ")
