"""ksqlDB's HTTP API in front of a gateway, over a lake that an engine without Spark and Kafka writes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import uvloop

from tailgate.gateway.ksqldb.server.main import HttpServer
from tailgate.gateway.ksqldb.server.options import Options
from tailgate.lake.types import WEIGHT, arrow_schema
from tests.gateway.requests import Requests
from tests.tables.world import World

STREAM = "CREATE STREAM readings (sensor VARCHAR KEY, area VARCHAR, reading INT) WITH (kafka_topic = 'r', value_format = 'json');"
TABLE = "CREATE TABLE averages AS SELECT sensor, AVG(reading) AS average, COUNT(*) AS n FROM readings GROUP BY sensor EMIT CHANGES;"


class Api(Requests):
    """A server of the HTTP API in a thread with its own event loop."""

    def __init__(self, world: World, **options: Any) -> None:
        self.world = world
        self._options = Options("127.0.0.1", 0, f"127.0.0.1:{world.gateways[0].port}", **options)
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ksqldb", daemon=True)
        self._thread.start()
        assert self._started.wait(30)

    def _run(self) -> None:
        self.loop = uvloop.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._serve())
        self.loop.close()

    async def _serve(self) -> None:
        self.server, self._stop = HttpServer(self._options), asyncio.Event()
        await self.server.start()
        self.port = self.server.port
        self._started.set()
        await self._stop.wait()
        await self.server.stop()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        assert not self._thread.is_alive()

    # --- requests over HTTP/1.1

    def ksql(self, text: str, **members: Any) -> list[dict[str, Any]]:
        """Returns the entities of successful statements."""
        status, _, body = self.request("POST", "/ksql", {"ksql": text, **members})
        assert status == 200, body
        entities: list[dict[str, Any]] = json.loads(body)
        return entities

    def failed(self, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
        """Returns status and document of a request that fails."""
        status, _, data = self.request("POST", path, body, **headers)
        assert status >= 400, data
        return status, json.loads(data)

    def lines(self, sql: str, path: str = "/query-stream", **members: Any) -> list[Any]:
        """Returns the lines of a query that ends, as JSON."""
        status, _, body = self.request("POST", path, {"sql": sql, **members})
        assert status == 200, body
        return [json.loads(line) for line in body.splitlines()]


class KsqldbWorld(World):
    """A lake with a table `t` of PostgreSQL, a stream READINGS of ksqlDB and a table AVERAGES derived from it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for text in ("CREATE TABLE t (id int PRIMARY KEY, name text, price numeric(6, 2))", STREAM, TABLE):
                connection.execute(text.encode())

    @staticmethod
    def filled(path: Path) -> KsqldbWorld:
        """Returns a lake whose table AVERAGES has two rows."""
        world = KsqldbWorld(path)
        world.append("averages", [("s1", 1.5, 2), ("s2", None, 7)])
        return world

    def append(self, name: str, rows: Sequence[tuple[Any, ...]], weight: int = 1, **fields: Any) -> None:
        """Adds rows to a view, or removes them, as a tick does. Rows without ROWTIME have that of 1970. `fields`: of the entry."""
        item = self.engine.writer.catalog.relation(name)
        rest = ["" if column.name == "_arrival" else 0 for column in item.columns]
        rows = [(*row, *rest[len(row) :]) for row in rows]
        columns = [*zip(*rows, strict=True), [weight] * len(rows)]
        table = pa.table([pa.array(list(c), f.type) for c, f in zip(columns, [*arrow_schema(item.columns), WEIGHT_FIELD], strict=True)],
                         names=[*(c.name for c in item.columns), WEIGHT])  # fmt: skip
        self.engine.writer.append([(item.id, table)], **fields)
        self.together()


WEIGHT_FIELD = pa.field(WEIGHT, pa.int64())
