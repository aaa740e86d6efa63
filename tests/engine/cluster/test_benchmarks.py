"""The queries of TPC-H and Nexmark as views whose ticks run in executors, some of which are killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testing.spark_cluster import SparkCluster
from testing.tpch import Shop, generated
from testing.views import Views
from tests.engine.cluster.law import Distributed
from tests.engine.plan import test_nexmark as nexmark
from tests.engine.plan import test_tpch as tpch

pytestmark = [pytest.mark.spark, pytest.mark.long]

PARTITIONS = 2
KILLS = 1.0  # of the ticks
SCALE = 0.005  # of TPC-H


def distributed(session: Any, cluster: SparkCluster, folder: Path, world: Any) -> Distributed:
    views = Distributed(session, folder, world, PARTITIONS)
    views.refusals, views.cluster, views.kills = [], cluster, KILLS
    return views


def test_tpch(session: Any, spark_cluster: SparkCluster, tmp_path: Path, seed: int) -> None:
    pytest.importorskip("duckdb_extension_tpch")
    killed = Distributed.killed
    with generated(SCALE) as server:
        tpch.check_maintained(distributed(session, spark_cluster, tmp_path, Shop(server, seed)), server)
    assert Distributed.killed > killed


def test_nexmark(session: Any, spark_cluster: SparkCluster, tmp_path: Path, seed: int) -> None:
    killed = Distributed.killed
    views = distributed(session, spark_cluster, tmp_path, nexmark.streams())
    views.numeric_rules = Views.numeric_rules
    nexmark.check_maintained(views, seed)
    assert Distributed.killed > killed
