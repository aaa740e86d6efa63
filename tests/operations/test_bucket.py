"""Tests all processes over a lake in a bucket, with an S3 server on loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import Row

from tailgate.embedded.children import free_port
from tailgate.embedded.supervisor import Plan, Supervisor
from tailgate.lake import peers
from tailgate.lake.folder import Lake
from tailgate.lake.host import credentials
from tailgate.lake.store.bucket import BucketStore
from tailgate.lake.writer.engines import announced
from testing.engine_process import until
from testing.s3 import S3

READY = timedelta(seconds=120)
STOPPED_S = 60.0
DEMO_S = 300.0


class Up:
    """The processes of `tailgate up`, and their lake. The credentials are in files."""

    def __init__(self, store: BucketStore, folder: Path, secrets: Path) -> None:
        self.location, self.folder, self.secrets, self.port, self.control = store.location(""), folder, secrets, free_port(), free_port(2)
        reached = f"127.0.0.1:{self.control}"
        plan = Plan(self.location, f"127.0.0.1:{self.port}", work_dir=folder, secrets_dir=secrets, control_listen=reached)
        self.supervisor = Supervisor(plan, lambda _: None)

    def run(self, *statements: str) -> list[Row]:
        """Runs statements in a session. Returns the rows of the last one."""
        with psycopg.connect(f"host=127.0.0.1 port={self.port} user=ann dbname=tailgate", autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def answers(self, query: str, expected: list[Row]) -> None:
        """Waits until a query returns these rows."""

        def equal() -> bool:
            try:
                return self.run(query) == expected
            except psycopg.Error as error:
                raise OSError(str(error)) from error

        until(equal)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs a command on the lake, and waits for its end."""
        lake = ["--data", self.location, "--work-dir", str(self.folder), "--secrets-dir", str(self.secrets)]
        arguments = [sys.executable, "-m", "tailgate", *words, *lake]
        return subprocess.run(arguments, capture_output=True, text=True, timeout=STOPPED_S, check=False)


def secrets_dir(folder: Path, environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder with the credentials, which it removes from the environment of this process."""
    secrets = folder / "secrets"
    (secrets / credentials.FOLDER).mkdir(parents=True)
    for name in (credentials.KEY, credentials.SECRET):
        (secrets / credentials.FOLDER / name).write_text(environment[name])
        monkeypatch.delenv(name)
    return secrets


@pytest.fixture
def up(bucket: BucketStore, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Up]:
    secrets = secrets_dir(tmp_path, s3.environment, monkeypatch)
    up = Up(bucket, tmp_path / "up", secrets)
    credentials.use(secrets)  # as the command `up` does in the process of the supervisor
    with up.supervisor:
        yield up
    credentials.use(None)


@pytest.mark.spark
def test_all_processes(up: Up, s3: S3) -> None:
    """Reads and writes, history, a restart without the working folder's state, and the commands for operators."""
    assert up.run(
        "CREATE TABLE orders (id int PRIMARY KEY, product text, amount int)",
        "CREATE MATERIALIZED VIEW totals AS SELECT product, sum(amount) AS total FROM orders GROUP BY product",
        "CREATE SUBSCRIPTION feed FROM totals",
        "INSERT INTO orders VALUES (1, 'tea', 5), (2, 'tea', 7), (3, 'jam', 1)",
        "SELECT * FROM totals ORDER BY product",
    ) == [("jam", 1), ("tea", 12)]
    [(before,)] = up.run("SELECT mz_now()::text::bigint")
    up.run("UPDATE orders SET amount = 6 WHERE id = 1")
    assert up.run("SELECT * FROM totals ORDER BY product") == [("jam", 1), ("tea", 13)]
    assert up.run(f"SELECT * FROM totals ORDER BY product AS OF {before}") == [("jam", 1), ("tea", 12)]
    up.run("ALTER SYSTEM SET engine.history = '2h'")
    lake = Lake(up.location, up.folder)
    others = [announced(lake), *peers.announced(lake)]  # as processes on other machines find them
    assert [(other.address, other.certificate is not None) for other in others if other is not None] == [
        (f"127.0.0.1:{up.control}", True),
        (f"127.0.0.1:{up.control + 1}", True),
    ]

    engine = up.supervisor.pid("engine")
    shutil.rmtree(up.folder / "state")
    os.kill(engine, signal.SIGKILL)
    until(lambda: (up.supervisor.watch(), up.supervisor.ends["engine"] == 1 and up.supervisor.ready("engine"))[1], READY.total_seconds())
    up.run("INSERT INTO orders VALUES (4, 'jam', 2)")
    up.answers("SELECT * FROM totals ORDER BY product", [("jam", 3), ("tea", 13)])

    # the watch may have seen the engine's end, and then its alert is resolved soon
    until(lambda: (status := up.command("status", "--json")).returncode == 0 and json.loads(status.stdout)["problems"] == [])
    verified = up.command("verify")
    assert (verified.returncode, verified.stdout.splitlines()[-1]) == (0, "problems: 0")
    secret = s3.environment["AWS_SECRET_ACCESS_KEY"]
    assert [path.name for path in (up.folder / "logs").glob("*.log") if secret in path.read_text()] == []


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.long
def test_the_demo(bucket: BucketStore, tmp_path: Path) -> None:
    """View and sink equal a recompute of the topics."""
    words = ["demo", "--data", bucket.location(""), "--work-dir", str(tmp_path / "demo"), "--listen", f"127.0.0.1:{free_port()}"]
    demo = subprocess.run(
        [sys.executable, "-m", "tailgate", *words, "--for", "10", "--check"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        timeout=DEMO_S,
        check=False,
    )
    assert (demo.returncode, json.loads(demo.stdout)["equal"]) == (0, True)


def command_error(location: str) -> str:
    result = subprocess.run([sys.executable, "-m", "tailgate", "status", "--data", location], capture_output=True, text=True, check=False)
    assert result.returncode in (1, 2)
    return result.stderr


def test_a_command_with_credentials_in_files(bucket: BucketStore, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its requests use them, also that for the settings of ALTER SYSTEM. The folder is a setting as others are."""
    lake = Lake.create(bucket.location(""))
    secrets_dir(tmp_path, s3.environment | {credentials.KEY: "file"}, monkeypatch)
    folder = str(tmp_path / "secrets")
    of_lake = ["--data", lake.location, "--work-dir", str(tmp_path / "work")]
    for words, variables in (
        (["log", "ls", "--secrets-dir", folder], {}),
        (["log", "ls"], {"TAILGATE_SECRETS_DIR": folder}),
        (["bundle", "--to", str(tmp_path / "report.tar.gz"), "--secrets-dir", folder], {}),
    ):
        s3.requests()
        command = [sys.executable, "-m", "tailgate", *words, *of_lake]
        environment = {**os.environ, **variables}
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=STOPPED_S, check=False)
        assert (result.returncode, result.stderr) == (0, "")
        assert {request.process for request in s3.request_log()} == {"file"}


def test_a_bucket_that_cannot_be_reached(bucket: BucketStore, s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands end with an error that does not contain the credentials."""
    assert "there is no lake in s3://" in command_error(bucket.location(""))
    error = command_error("s3://other/lake")
    assert "could not list the objects in s3://other/lake\n" in error
    assert "\nHINT:  Check the name of the bucket" in error
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    error = command_error(bucket.location(""))
    assert "could not list the objects in s3://" in error
    assert "Traceback" not in error
    assert s3.environment["AWS_SECRET_ACCESS_KEY"] not in error
