"""The shop and the user information service over a Spark cluster, and the latter over a bucket."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tailgate.embedded.children import free_port
from tailgate.lake.store.bucket import BucketStore
from testing.spark_cluster import SparkCluster
from tests.docs.system import System
from tests.docs.test_pages import EXAMPLES, check_examples

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

DEMO_S = 400.0
(USER_INFORMATION,) = (page for page in EXAMPLES if page.parent.name == "user_information")
PARALLELISM = ("--parallelism", "2")


def test_the_demo_on_a_cluster(tmp_path: Path) -> None:
    """View and sink equal a recompute of the topics."""
    with SparkCluster(tmp_path / "cluster") as cluster:
        words = ["demo", "--listen", f"127.0.0.1:{free_port()}", "--for", "10", "--check", *PARALLELISM, *cluster.arguments]
        command = [sys.executable, "-m", "tailgate", *words]
        demo = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, timeout=DEMO_S, check=False)
    assert (demo.returncode, json.loads(demo.stdout)["equal"]) == (0, True)


def test_the_user_information_service_on_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir(mode=0o700)
    with SparkCluster(tmp_path / "cluster") as cluster, System(tmp_path / "lake", engine=cluster.arguments) as system:
        check_examples(system, USER_INFORMATION)


def test_the_user_information_service_over_a_bucket(tmp_path: Path, bucket: BucketStore) -> None:
    with System(tmp_path, bucket.location("")) as system:
        check_examples(system, USER_INFORMATION)
