"""Fixtures for all tests: servers, started once per session when a test needs them, and a random seed.

They are `postgres` (a DSN), `kafka` (an `embedded.kafka.Kafka`), `registry` (an
`embedded.registry.Registry`), `s3` (a `testing.s3.S3`) with `bucket` (a store), and `seed`, which is
printed. TAILGATE_SEED=s repeats the random choices of a run. TAILGATE_SEEDS=n runs each test that
uses `seed` or hypothesis (marked `random`) n times, with the seeds s, s + 1, ….
"""

from __future__ import annotations

import gc
import itertools
import os
import platform
import random
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from testing import fork_server
from tests import distribution, limits

if TYPE_CHECKING:
    from tailgate.embedded.kafka import Kafka
    from tailgate.embedded.registry import Registry
    from tailgate.lake.store.bucket import BucketStore
    from testing.s3 import S3

# Test engines do not run long enough to need the JVM's second compiler. The first compiler alone
# reduces the CPU time to a third. The archive of classes is mapped where it was written, which saves 0.08 s for each start.
os.environ.setdefault("TAILGATE_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0")

# In the environment, so that all worker processes of a session have the same seed.
SEED = int(os.environ.setdefault("TAILGATE_SEED", str(random.SystemRandom().randrange(2**32))))
SEEDS = int(os.environ.get("TAILGATE_SEEDS", "1"))
# Test classes for Spark's JVM (tailgate/engine/java/src/test), for all sessions of this process: a JVM
# cannot change its class path later.
os.environ.setdefault(
    "SPARK_DIST_CLASSPATH", str(Path(__file__).parent.parent / "tailgate" / "engine" / "java" / "target" / "test-classes")
)
NAMED_IN_HEADER = ("pyspark", "delta-spark", "deltalake", "duckdb", "pyarrow", "sqlglot", "confluent-kafka")
_prefixes = itertools.count()  # of the lakes in the bucket


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "missing"


def _java_version() -> str:
    try:
        output = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except OSError:
        return "missing"
    return output.split('"')[1] if '"' in output else output.strip()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(distribution)
    config.pluginmanager.register(limits)
    fork_server.install()


def pytest_unconfigure() -> None:
    fork_server.uninstall()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Formats a failure without the garbage collector: a warning of a finalizer would parse source text while pytest does.

    CPython 3.11 cannot parse within a parse, and the internal error would end the run.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_report_header() -> list[str]:
    versions = ", ".join(f"{name} {_version(name)}" for name in NAMED_IN_HEADER)
    return [
        f"python {platform.python_version()}, java {_java_version()}, {versions}",
        f"random seed {SEED}: again with TAILGATE_SEED={SEED}",
    ]


def is_random(function: Any, fixtures: Sequence[str]) -> bool:
    return "seed" in fixtures or hasattr(function, "hypothesis")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if SEEDS > 1 and is_random(metafunc.function, metafunc.fixturenames):
        metafunc.fixturenames += [] if "seed" in metafunc.fixturenames else ["seed"]
        metafunc.parametrize("seed", range(SEED, SEED + SEEDS), indirect=True, scope="module")


@pytest.fixture(scope="module")
def seed(request: pytest.FixtureRequest) -> int:
    return getattr(request, "param", SEED)


@pytest.fixture(autouse=True)
def _seeded(request: pytest.FixtureRequest) -> None:
    seed = request.getfixturevalue("seed")
    random.seed(seed)
    if "hypothesis" in sys.modules:
        sys.modules["hypothesis.core"].global_force_seed = seed


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Returns the DSN of a shared PostgreSQL 15; a test creates and drops its own tables or database."""
    from testing.postgres import Postgres

    server = Postgres()
    try:
        server.start()
        yield server.dsn
    finally:
        server.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Starts a broker for all tests; each test uses its own topics."""
    from tailgate.embedded.kafka import Kafka

    broker = Kafka(tmp_path_factory.mktemp("kafka"))
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """Starts a schema registry for all tests; each test uses its own subjects."""
    from tailgate.embedded.registry import Registry

    server = Registry(tmp_path_factory.mktemp("registry"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """Starts a server with the S3 API for all tests; each test uses its own prefix."""
    from testing.s3 import S3

    server = S3(tmp_path_factory.mktemp("s3"))
    yield server
    server.stop()


@pytest.fixture
def bucket(s3: S3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[BucketStore]:
    """Returns a store below a new prefix. Lakes in it have their working folder in a temporary folder."""
    from tailgate.lake import folder
    from tailgate.lake.store.bucket import BucketStore
    from testing.s3 import BUCKET

    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(folder, "WORK_DIR", tmp_path / "work")
    yield BucketStore(f"s3://{BUCKET}/test/{next(_prefixes)}")
    s3.set()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test that uses the broker, and each that makes random choices."""
    for item in items:
        if "kafka" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.kafka)
        if isinstance(item, pytest.Function) and is_random(item.function, item.fixturenames):
            item.add_marker(pytest.mark.random)


@pytest.fixture
def repository() -> Path:
    return Path(__file__).parent.parent
