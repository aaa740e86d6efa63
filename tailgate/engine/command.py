"""The options of commands for the limits of the engine, and for the cluster that it runs on."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tailgate.operations.settings.quantities import MEMORY, TIME, InvalidValue, Quantity

if TYPE_CHECKING:
    from tailgate.engine.runtime.spark.cluster import Cluster
    from tailgate.engine.runtime.spark.jvm import Limits

GB, TB, DAY = 1024, 1024**2, 86_400
LOOPBACK = "127.0.0.1"
PARTITIONS = Quantity(1, 1024)  # of the state; each has a RocksDB for each level of operators
CLUSTER = ("master", "driver-host")  # and spark-conf, which may be repeated
OPTIONS = ("heap", "state-memory", "index-memory", "tick-rows", "held-log", "history")


def add_options(command: argparse.ArgumentParser) -> None:
    """Adds the options."""
    _add_memory(command)
    held, index = Quantity(GB, 1024 * TB, MEMORY), Quantity(1, TB, MEMORY)
    add = command.add_argument
    add("--index-memory", type=index, default=256, metavar="SIZE", help="the memory of the indexes of large tables, 1MB or more (256MB)")
    add("--tick-rows", type=Quantity(100, 10_000_000), default=50_000, metavar="N", help="records that a tick takes from a reader (50000)")
    add("--held-log", type=held, default=20 * GB, metavar="SIZE", help="how much of the log a sink or subscription may hold (20GB)")
    add("--history", type=Quantity(1, 30 * DAY, TIME), default=3600, metavar="TIME", help="how long past states can be read (1h)")


def _add_memory(command: argparse.ArgumentParser) -> None:
    heap, state = Quantity(512, TB, MEMORY), Quantity(32, TB, MEMORY)
    command.add_argument("--heap", type=heap, default=2048, metavar="SIZE", help="the heap of the engine's JVM, 512MB or more (2GB)")
    command.add_argument("--state-memory", type=state, default=256, metavar="SIZE", help="the memory of RocksDB, 32MB or more (256MB)")


def add_cluster_options(command: argparse.ArgumentParser) -> None:
    """Adds the options for a Spark cluster."""
    add = command.add_argument
    add("--master", metavar="URL", help="the Spark master whose executors run the ticks: spark://HOST:PORT (threads of the engine)")
    add("--driver-host", default=LOOPBACK, metavar="HOST", help=f"where executors reach the engine ({LOOPBACK})")
    add(
        "--spark-conf",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help="a setting of Spark for --master; may be repeated",
    )


def add_jars_options(command: argparse.ArgumentParser) -> None:
    """Adds the options of `tailgate jars`."""
    command.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="the folder; it is created")


def _setting(text: str) -> str:
    """Returns a setting of Spark. Raises InvalidValue unless it is NAME=VALUE."""
    name, sign, _ = text.partition("=")
    if not sign or not name.startswith("spark."):
        raise InvalidValue(f'"{text}" is not a setting of Spark: spark.NAME=VALUE')
    return text


def arguments(options: argparse.Namespace) -> tuple[str, ...]:
    """Returns those options that are set, as arguments for a child engine."""
    return (*_words(options, OPTIONS), *cluster_arguments(options))


def cluster_arguments(options: argparse.Namespace) -> tuple[str, ...]:
    """Returns those options for a Spark cluster that are set, as arguments for a child engine."""
    return (*_words(options, CLUSTER), *(word for setting in options.spark_conf for word in ("--spark-conf", setting)))


def _words(options: argparse.Namespace, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if (value := getattr(options, name.replace("-", "_"))) is not None:
            yield from (f"--{name}", str(value))


def check_cluster(options: argparse.Namespace) -> None:
    """Checks the options for a Spark cluster, and its secret, before an engine is started. Raises 22023, and 0A000 for other masters."""
    from tailgate.operations import data_folder

    chosen = cluster(options)
    if chosen is None:
        return
    chosen.settings(())
    if options.data is not None:
        data_folder.shared(options)


def limits(options: argparse.Namespace) -> Limits:
    """Returns the limits of the JVM."""
    from tailgate.engine.runtime.spark.jvm import Limits

    return Limits(options.heap, options.state_memory, options.tick_rows)


def cluster(options: argparse.Namespace) -> Cluster | None:
    """Returns the cluster of the options, or None. Raises 22023 and 0A000."""
    from tailgate.engine.runtime.spark import cluster as clusters

    settings = (setting.partition("=")[::2] for setting in options.spark_conf)
    return clusters.cluster(options.master, options.driver_host, settings)


def add_repartition_options(command: argparse.ArgumentParser) -> None:
    """Adds the options of `tailgate repartition`."""
    command.add_argument("--parallelism", type=PARTITIONS, required=True, metavar="N", help="partitions of the state afterwards")
    _add_memory(command)


def repartition(options: argparse.Namespace) -> int:
    """Moves the state of a lake to another number of partitions, and prints the number of its entries. Returns exit code 0."""
    from tailgate.engine.runtime.spark.jvm import Limits, launched
    from tailgate.lake.folder import Lake
    from tailgate.lake.host.scratch import ROOT
    from tailgate.operations import data_folder

    lake = Lake.open(options.data, options.work_dir)
    with launched(options.scratch or data_folder.local(options) / ROOT, Limits(options.heap, options.state_memory)) as jvm:
        from tailgate.engine.runtime import repartition
        from tailgate.lake.catalog.secrets import Vault

        vault = Vault(options.secret_key_file, options.secrets_dir)
        result = repartition.run(lake, options.parallelism, vault, jvm)
    if result.entries is None:
        print(f"the state has {result.after} partitions")
    else:
        operators = f"{sum(result.entries.values())} entries of {len(result.entries)} operators"
        print(f"the state has {result.after} partitions instead of {result.before}: {operators}")
    return 0


def check(options: argparse.Namespace) -> int:
    """Prints which views an engine of this version fills again, and why. Returns 1 if there is one, otherwise 0."""
    from tailgate.engine.plan.views.replacements import planning_findings
    from tailgate.lake.folder import Lake

    findings = planning_findings(Lake.open(options.data, options.work_dir).catalog())
    for finding in findings:
        print(f"{finding.view}: {finding.reason}")
    print(f"views to be filled again: {len(findings)}")
    return 1 if findings else 0


def copy_jars(options: argparse.Namespace) -> int:
    """Copies the jars that executors need to a folder. A jar is complete before it has its name. Returns exit code 0."""
    from tailgate.engine.runtime.spark.jvm import jars

    options.to.mkdir(parents=True, exist_ok=True)
    for jar in jars():
        unfinished = options.to / f".{jar.name}.{os.getpid()}"
        shutil.copyfile(jar, unfinished)
        unfinished.replace(options.to / jar.name)
    print(f"{len(jars())} jars are in {options.to}")
    return 0
