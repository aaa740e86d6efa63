"""Finds or fetches what `make test-cdc` needs besides `make setup`.

It needs two servers packaged by Debian, and jars from Maven Central.

.cdc/<plugin>/*.jar    a folder for each plugin of Kafka Connect, with a separate class path; fetched
                       again when its pom has changed
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
POMS = Path(__file__).parent / "jars"
CACHE = REPOSITORY / ".cdc"
DEBIAN = "apt-get install mariadb-server postgresql"
MARIADB = ("mariadbd", "mariadb-install-db", "mariadb")
# The worker has these; a second copy in a plugin breaks its discovery.
WORKERS_OWN = "org.apache.kafka,org.slf4j,org.lz4,org.xerial.snappy,com.github.luben"
FETCH_TIMEOUT_S = 600.0  # 30 s measured


class Missing(Exception):
    """The error for a missing program; the message says how to install it."""


def program(name: str) -> Path:
    """Returns the path of a program, also from the sbin folders."""
    path = shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/bin") or shutil.which(name)
    if path is None:
        raise Missing(f"{name} is not on this machine; on Debian and Ubuntu: {DEBIAN}")
    return Path(path)


def postgresql() -> Path:
    """Returns the folder of the newest PostgreSQL server's programs, which Debian keeps off the PATH."""
    versions = sorted((path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")), key=lambda bin: float(bin.parent.name))
    if not versions:
        raise Missing(f"there is no PostgreSQL server in /usr/lib/postgresql; on Debian and Ubuntu: {DEBIAN}")
    return versions[-1]


def jars(name: str) -> Path:
    """Returns the folder with the jars of a database's connector."""
    pom, folder = POMS / name / "pom.xml", CACHE / name
    stamp = folder / ".fetched"
    if stamp.exists() and stamp.read_text() == pom.read_text():
        return folder
    print(f"test-cdc: fetching {name} from Maven Central", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    command = ["mvn", "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    command.append(f"-DexcludeGroupIds={WORKERS_OWN}")
    subprocess.run(command, check=True, timeout=FETCH_TIMEOUT_S)
    stamp.write_text(pom.read_text())
    return folder
