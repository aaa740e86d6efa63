"""The law with the whole engine, which is killed at random while a gateway writes to random tables.

Between the kills and at the end, each view is compared with its query over the rows of the tables
at the same time.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import time as time_of_day
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.embedded.children import Child, free_port
from tailgate.lake import catalog as lake_catalog
from tailgate.lake.catalog import MaterializedView
from tailgate.lake.errors import TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading
from tailgate.lake.types import Field
from tailgate.sql import plan
from tailgate.sql.bind import bind_query
from testing.engine_process import EngineProcess, until
from testing.random_queries import Row, Table, Value
from testing.reference.evaluation import at, by_value, evaluate
from testing.reference.general import read
from testing.views import _plain
from tests.engine.plan.forms import Forms
from tests.engine.plan.wide_world import Wide

pytestmark = [pytest.mark.spark, pytest.mark.long]

CASES = int(os.environ.get("TAILGATE_CASES", "20"))
KILLS = int(os.environ.get("TAILGATE_KILLS", "5"))
LIFE_S = (0.5, 6.0)  # time until an engine is killed


class Shop:
    """An engine and a gateway over random tables and views. `write` runs in a separate thread. `bucket`: the location of the lake."""

    def __init__(self, folder: Path, seed: int, bucket: str | None) -> None:
        self.random = random.Random(seed)
        self.world = Wide(seed)
        self.work_dir = work_dir = None if bucket is None else folder / "work"
        self.engine = EngineProcess(bucket or folder / "lake", work_dir=work_dir)
        self.engine.start()
        self.lake = Lake(self.engine.data, work_dir)
        self.port = free_port()
        command = [sys.executable, "-m", "tailgate", "gateway", "--data", str(self.engine.data), "--listen", f"127.0.0.1:{self.port}"]
        command += [] if work_dir is None else ["--work-dir", str(work_dir)]
        self.gateway = Child("gateway", command, log=folder / "gateway.log")
        until(lambda: self.connect().close() is None)
        self.written = 0
        self.going = True
        self.thread = threading.Thread(target=self.write, daemon=True)
        for table in self.world.tables:
            columns = ", ".join(f"{c.name} {c.type}" for c in table.columns)
            key = "" if table.key is None else f", PRIMARY KEY ({', '.join(table.columns[k].name for k in table.key)})"
            self.engine.execute(f"CREATE TABLE {table.name} ({columns}{key})")
        forms, number, view_count = Forms(self.world.random, self.world.tables), 0, 0
        while view_count < CASES:
            query, _ = forms(number)
            number += 1
            try:
                self.engine.execute(f"CREATE MATERIALIZED VIEW v{view_count} AS {query}")
            except TailgateError as e:
                if not e.sqlstate.startswith(("22", "42")):  # errors of constants or types
                    raise
                continue
            view_count += 1

    def connect(self) -> psycopg.Connection[Any]:
        try:
            return psycopg.connect(f"host=127.0.0.1 port={self.port} user=a dbname=b", autocommit=True, connect_timeout=5)
        except psycopg.OperationalError as error:
            raise OSError(str(error)) from error

    def write(self) -> None:
        """Inserts, updates and deletes rows until `going` is False, and ignores errors."""
        while self.going:
            try:
                with self.connect() as connection:
                    while self.going:
                        connection.execute(self.statement(connection))  # type: ignore[arg-type]
                        self.written += 1
            except (OSError, psycopg.Error):
                continue

    def statement(self, connection: psycopg.Connection[Any]) -> str:
        r = self.random
        table = r.choice(self.world.tables)
        cursor = psycopg.ClientCursor(connection)
        column = r.choice([c for c in table.columns if not c.type.is_array and c.type.name in ("int4", "text", "numeric", "bool")])
        some = cursor.mogrify(f"{column.name} IS NOT DISTINCT FROM %s::{column.type}", [self.value(table, column)])
        choice = r.random()
        if choice < 0.2:
            return f"DELETE FROM {table.name} WHERE {some}"
        keys = () if table.key is None else tuple(table.columns[k].name for k in table.key)
        others = [c for c in table.columns if c.name not in keys]
        if choice < 0.35 and others:
            set_to = r.choice(others)
            return cursor.mogrify(f"UPDATE {table.name} SET {set_to.name} = %s WHERE {some}", [self.value(table, set_to)])
        row = self.world.random_row(table)
        values = [literal(v, c) for v, c in zip(row, table.columns, strict=True)]
        conflict = f" ON CONFLICT ({', '.join(keys)}) DO NOTHING" if keys else ""
        return cursor.mogrify(f"INSERT INTO {table.name} VALUES ({', '.join(['%s'] * len(row))}){conflict}", values)

    def value(self, table: Table, column: Field) -> Value:
        row = self.world.random_row(table)
        return literal(row[table.columns.index(column)], column)

    def rows(self, id: int, time: int) -> Counter[Row]:
        result: Counter[Row] = Counter()
        for *values, weight in zip(*(c.to_pylist() for c in reading.snapshot(self.lake, id, at=time).columns), strict=True):
            result[tuple(map(_plain, values))] += weight
        return result

    def check(self) -> int:
        """Compares the views with their queries. Returns how many had no failing row."""
        header = self.lake.log.newest()
        assert header is not None
        catalog, compared = self.lake.catalog(), 0
        tables = {i.id: self.rows(i.id, header.time) for i in catalog.items.values() if isinstance(i, lake_catalog.Table)}
        assert sum(map(len, tables.values())) > 0
        for item in catalog.items.values():
            if not isinstance(item, MaterializedView):
                continue
            assert item.ready
            expected = evaluate(at(bind_query(item.query, catalog, view=True, numeric_rules=item.numeric_rules).plan, header.time), tables)
            actual, errors = self.rows(item.id, header.time), self.rows(item.errors, header.time)
            assert expected.errors or not errors, (item.query, errors)
            if not expected.errors:
                held = evaluate(plan.Scan(item.id, item.columns, None), {item.id: actual}).rows
                wanted, has = by_value(expected.rows), by_value(held)
                assert has == wanted, (item.query, wanted - has, has - wanted)
                compared += 1
        return compared

    def end(self) -> None:
        self.going = False
        self.gateway.stop()
        self.engine.stop()


def literal(value: Value, column: Field) -> Value:
    """Converts a value for psycopg."""
    if value is None or (isinstance(value, tuple) and column.type.is_array):
        return None if value is None else list(value)
    if column.type.general:
        return str(read(value))
    match column.type.name:
        case "interval":
            return timedelta(days=value[1], microseconds=value[2])
        case "time":
            return time_of_day(value // 3_600_000_000)
    return value


@pytest.fixture(params=["folder", "bucket"])
def shop(request: pytest.FixtureRequest, tmp_path: Path, seed: int) -> Iterator[Shop]:
    """Yields a shop of a lake in a folder, and of one in a bucket, where one in 50 requests fails."""
    location = None
    if request.param == "bucket":
        location = request.getfixturevalue("bucket").location("")
        request.getfixturevalue("s3").set(failures=50, seed=seed)
    shop = Shop(tmp_path, seed, location)
    yield shop
    shop.end()


def test_views_are_their_queries_whenever_the_engine_is_killed(shop: Shop) -> None:
    compared = 0
    shop.thread.start()
    for _ in range(KILLS):
        written_before = shop.written
        until(lambda written_before=written_before: shop.written > written_before + 5)  # type: ignore[misc]
        threading.Event().wait(shop.random.uniform(*LIFE_S))
        shop.engine.kill(jvm=shop.random.random() < 0.7)
        compared += shop.check()
        if shop.work_dir is not None and shop.random.random() < 0.5:
            shutil.rmtree(shop.work_dir / "state", ignore_errors=True)  # as on another machine
        shop.engine.start()
    written_before = shop.written
    until(lambda: shop.written > written_before + 5)
    compared += shop.check()
    assert compared > CASES
