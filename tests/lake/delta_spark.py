"""Delta's own implementation for Spark, as an outside reader and writer of the tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def delta_spark(repository: Path) -> Iterator[SparkSession]:
    """Yields a session of one core that reads and writes Delta tables, and stops it."""
    from pyspark.sql import SparkSession

    jars = sorted((repository / "tailgate" / "jars" / "spark").glob("*.jar"))
    spark = (
        SparkSession.builder.master("local[1]")
        .appName("test")
        .config("spark.driver.extraClassPath", os.pathsep.join(map(str, jars)))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    try:
        yield spark
    finally:
        spark.stop()
