"""A Spark cluster whose executors run the ticks: its master, and the settings that executors in other processes need.

    driver (this machine) ──── jobs, records of Kafka, secrets ───► executors (workers of the master)
        └── inbox, state: one folder, which all machines have under the same path ──────┘
              (the lake, or the working folder of a lake in a bucket)

All connections between them are authenticated and encrypted. The secret for it is in a file, which only
the driver and the daemons of Spark read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tailgate.engine.runtime.spark.jvm import CLASSES, COMPILER, METASPACE, class_path
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.lake.host import java
from tailgate.operations.settings.addresses import EVERY_ADDRESS

STANDALONE = "spark://"
OTHER_MASTERS = ("k8s://", "yarn", "mesos://", "local")
SECRET, SECRET_FILE = "spark.authenticate.secret", "spark.authenticate.secret.file"
CLASS_PATH, JAVA_OPTIONS = "spark.executor.extraClassPath", "spark.executor.defaultJavaOptions"
SECRET_BYTES_MAX = 4096
ADDRESSES = ("spark.driver.host", "spark.driver.bindAddress")
MASTERS = ("spark.master", "spark.remote")  # the option --master
SECRET_NAME = re.compile("secret|password|token|access[.]?key", re.IGNORECASE)  # as spark.redaction.regex

# Set for every cluster, and not by --spark-conf.
FIXED: dict[str, str] = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",  # otherwise a peer that fails to encrypt connects without encryption
    "spark.plugins": "tailgate.security.SecretsPlugin",
}
# A lost executor is noticed within this time, and its tasks run elsewhere.
DEFAULTS: dict[str, str] = {
    "spark.network.timeout": "30s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "5s",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A master, the address at which executors reach the driver, and settings of Spark."""

    master: str
    driver_host: str
    conf: tuple[tuple[str, str], ...]

    def settings(self, reserved: Iterable[str]) -> dict[str, str]:
        """Returns all settings of Spark for this cluster.

        Raises 22023 for a setting that is `reserved`, because the engine sets it, for one that is a secret, and for a
        secret of the cluster that is missing or not readable.
        """
        conf = dict(self.conf)
        for name in conf:
            if SECRET_NAME.search(name) and name != SECRET_FILE:
                raise InvalidParameterValue(
                    f"{name} cannot be an option, which other users of the machine can read",
                    hint=f"Write the secret to a file with mode 0600, and set {SECRET_FILE}." if name == SECRET else None,
                )
            if name in FIXED or name in ADDRESSES or name in MASTERS or name in reserved:
                raise InvalidParameterValue(f'the setting "{name}" of Spark cannot be changed: the engine sets it')
        addresses = dict.fromkeys(ADDRESSES, self.driver_host)
        secret = _secret(conf.pop(SECRET_FILE, None))
        has_own_jars = CLASS_PATH in conf
        options = [METASPACE, *COMPILER, *([] if has_own_jars else java.archive_options(CLASSES))]  # the archive fits our class path only
        here = {JAVA_OPTIONS: " ".join(options)} | ({} if has_own_jars else {CLASS_PATH: class_path()})
        return {**addresses, **DEFAULTS, **here, **conf, **FIXED, SECRET: secret}


def cluster(master: str | None, driver_host: str, conf: Iterable[tuple[str, str]]) -> Cluster | None:
    """Returns the cluster of these options, or None without a master. Raises 0A000 for other masters, 22023 for invalid options."""
    settings = tuple(conf)
    if master is None:
        if settings:
            raise InvalidParameterValue("--spark-conf needs --master")
        return None
    if master.startswith(STANDALONE):
        if driver_host in EVERY_ADDRESS:
            raise InvalidParameterValue(
                f'executors cannot connect to the address "{driver_host}"',
                hint="Set --driver-host to the address of this machine that the workers of the cluster reach.",
            )
        return Cluster(master, driver_host, settings)
    hint = "Use a standalone master, spark://HOST:PORT; without --master, Spark runs in the engine's process."
    if master.startswith(OTHER_MASTERS):
        raise FeatureNotSupported(f'the Spark master "{master}" is not supported', hint=hint)
    raise InvalidParameterValue(f'"{master}" is not the address of a Spark master', hint=hint)


def _secret(file: str | None) -> str:
    """Returns the secret in a file. Raises 22023 if there is none, or if other users can read it."""
    if file is None:
        raise InvalidParameterValue(
            "a Spark master needs a secret", hint=f"Set --spark-conf {SECRET_FILE}=FILE to the secret of the master and its workers."
        )
    try:
        with Path(file).open("rb") as opened:
            if os.fstat(opened.fileno()).st_mode & 0o077:
                raise InvalidParameterValue(f'the file "{file}" can be read by other users', hint="Change its mode to 0600.")
            content = opened.read(SECRET_BYTES_MAX + 1)
            secret = content.decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as e:
        raise InvalidParameterValue(f'the secret of Spark cannot be read from "{file}": {e}') from e
    if not secret:
        raise InvalidParameterValue(f'the file "{file}" is empty')
    if len(content) > SECRET_BYTES_MAX:
        raise InvalidParameterValue(f'the file "{file}" is longer than {SECRET_BYTES_MAX} bytes')
    return secret
