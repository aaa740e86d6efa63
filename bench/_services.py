"""The services that `service.py` measures: endpoints of Tailgate, and PostgreSQL 15 behind a plain asynchronous server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psycopg
import pyarrow as pa

from tailgate.embedded.children import Child, free_port
from tailgate.lake.catalog import Change, Endpoint, MaterializedView
from tailgate.lake.folder import Lake
from tailgate.lake.types import INT8, TEXT, WEIGHT, Field
from tailgate.lake.writer.log_writer import open_epoch
from testing.postgres import Postgres

ROOT = Path(__file__).parents[1]
READY_S = 120
COUNTS = ("tweet_count", "following_count", "follower_count", "like_count")
FORM = (Field("id", INT8, False), Field("username", TEXT), Field("name", TEXT), *(Field(name, INT8) for name in COUNTS))
QUERY = 'SELECT id::text AS "userId", username, name, tweet_count, following_count, follower_count, like_count AS "likeCount" '
QUERY += "FROM user_information WHERE id = $1"
TABLE = f"CREATE TABLE user_information (id bigint PRIMARY KEY, username text, name text, {', '.join(f'{c} bigint' for c in COUNTS)})"
LIKES = """CREATE ENDPOINT likes POST '/users/:id/likes' (:id bigint) AS UPDATE user_information SET like_count = like_count + 1
    WHERE id = :id RETURNING id::text AS "userId", like_count AS "likeCount\""""

Changed = Callable[[Sequence[int], Sequence[int]], float | None]  # ids and their versions before; returns the time of the commit


@dataclass(frozen=True, slots=True)
class Service:
    """A running service: its port, its processes, and what changes some users in one transaction."""

    port: int
    pids: tuple[int, ...]
    change: Changed


def rows(ids: Sequence[int], versions: Sequence[int], weight: int) -> pa.Table:
    """Returns users, with a number that depends on their version."""
    columns = [
        ids,
        [f"user{i}" for i in ids],
        [f"User {i}" for i in ids],
        *([i % 100 + v for i, v in zip(ids, versions, strict=True)],) * 4,
    ]
    arrays = [pa.array(c, f.type.arrow) for c, f in zip(columns, FORM, strict=True)]
    return pa.Table.from_arrays([*arrays, pa.array([weight] * len(ids), pa.int64())], names=[*(f.name for f in FORM), WEIGHT])


@contextmanager
def gateway(folder: Path, users: int, streams: int) -> Iterator[Service]:
    """Starts a gateway over a view that this process writes."""
    writer = open_epoch(Lake.create(folder / "lake"))
    view = MaterializedView(16384, "user_information", FORM, (0,), stored=True, errors=16385)
    endpoint = Endpoint(16386, "users", depends=(16384,), query=QUERY, method="GET", path="/users/:id", parameters=(Field("id", INT8),))
    writer.append(kind="catalog", catalog=Change(put=(view, endpoint)))
    writer.append([(view.id, rows(range(users), [0] * users, 1))])

    def change(ids: Sequence[int], before: Sequence[int]) -> float | None:
        after = [version + 1 for version in before]
        writer.append([(view.id, pa.concat_tables([rows(ids, before, -1), rows(ids, after, 1)]))])
        return writer.newest.time

    words = ["--data", str(folder / "lake"), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--http-streams", str(max(streams, 1))]
    command = [sys.executable, "-m", "tailgate", "gateway", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            served = re.search(r":(\d+)/", child.stdout.readline())
            assert served is not None, "the gateway did not start"
            assert child.stdout.readline().startswith("ready")
            yield Service(int(served[1]), (child.pid,), change)
        finally:
            child.terminate()
            child.wait()
            writer.close()


@contextmanager
def tailgate(folder: Path, users: int) -> Iterator[Service]:
    """Starts `tailgate up` with a table of users and an endpoint that writes it."""
    port, http = free_port(), free_port()
    words = ["up", "--data", str(folder / "lake"), "--listen", f"127.0.0.1:{port}", "--http", f"127.0.0.1:{http}"]
    child = Child("tailgate", [sys.executable, "-m", "tailgate", *words], log=folder / "up.log", folder=ROOT, announces="ready postgresql=")
    try:
        child.wait_ready(child.announced, timedelta(seconds=READY_S))
        with psycopg.connect(f"host=127.0.0.1 port={port} user=tailgate", autocommit=True) as connection:
            connection.execute(TABLE)
            _copy(connection, users)
            connection.execute(LIKES)
        yield Service(http, (child.pid,), lambda ids, before: None)
    finally:
        child.stop()


@contextmanager
def postgresql(users: int) -> Iterator[Service]:
    """Starts PostgreSQL and the plain server."""
    database = Postgres({"fsync": "on"})
    try:
        database.start()
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            connection.execute(TABLE)
            _copy(connection, users)
            connection.execute("VACUUM ANALYZE user_information")

            def change(ids: Sequence[int], before: Sequence[int]) -> float | None:
                sets = ", ".join(f"{name} = {name} + 1" for name in COUNTS)
                connection.execute(f"UPDATE user_information SET {sets} WHERE id = ANY(%s)", (list(ids),))
                return None

            command = [sys.executable, str(ROOT / "bench" / "_peer_service.py"), database.dsn]
            with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
                try:
                    assert child.stdout is not None
                    yield Service(int(child.stdout.readline()), (child.pid, database.pid), change)
                finally:
                    child.terminate()
                    child.wait()
    finally:
        database.stop()


def _copy(connection: psycopg.Connection[object], users: int) -> None:
    with connection.cursor() as cursor, cursor.copy("COPY user_information FROM STDIN") as copy:
        for id in range(users):
            copy.write_row((id, f"user{id}", f"User {id}", *(id % 100,) * len(COUNTS)))
