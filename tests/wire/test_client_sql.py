"""Sends all 188 recorded statements of real clients to PostgreSQL 15 and to Tailgate.

Schema and rows are the same on both. Columns, types, rows (except oids), command tags, SQLSTATEs
and transaction states must agree in each protocol in which the statement was recorded.

`client_sql_differences.json` lists the numbers of the statements that still differ, with the
reason. The list may only shrink: a listed statement that agrees fails the test until it is removed.
"""

from __future__ import annotations

import json
import re
import select
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import pq

from tailgate.lake.catalog import Change, MaterializedView, Table, View
from tailgate.lake.system_relations import COLUMNS
from tailgate.lake.types import FLOAT8, INT4, INT8, TEXT, TIMESTAMP, Field
from testing.postgres import Postgres
from tests.wire.live import Live

STATEMENTS = [json.loads(line) for line in (Path(__file__).parents[1] / "fixtures" / "client-sql.jsonl").read_text().splitlines()]
DIFFERENT: dict[int, str] = {
    int(number): why for number, why in json.loads((Path(__file__).parent / "client_sql_differences.json").read_text()).items()
}
DATABASE = "client_sql"
OURS = re.compile(f"tailgate$|({'|'.join(COLUMNS)})$")  # values of rows about the schema tailgate, which PostgreSQL lacks
PATIENCE_S = 30.0  # for one answer
SCHEMA = """
CREATE TABLE kv (id bigint PRIMARY KEY, name text, amount double precision, cnt int, updated_at timestamp);
CREATE VIEW kv_view AS SELECT id, name FROM kv;
CREATE MATERIALIZED VIEW kv_mv AS SELECT cnt, count(*) AS n FROM kv GROUP BY cnt
"""
KV = (Field("id", INT8, False), Field("name", TEXT), Field("amount", FLOAT8), Field("cnt", INT4), Field("updated_at", TIMESTAMP))
VIEW = "SELECT kv.id,\n    kv.name\n   FROM kv"
COUNTS = "SELECT kv.cnt,\n    count(*) AS n\n   FROM kv\n  GROUP BY kv.cnt"
ROWS = [(n, f"name {n}" if n % 4 else None, n * 1.25, n % 3, datetime(2024, 1, 1) + timedelta(hours=n)) for n in range(20)]
# Parameters, and statements to run first, by number.
VALUES: dict[int, list[str | None]] = {
    5: [DATABASE], 6: [DATABASE, "public"], 7: ["public"], 11: ["5"], 12: ["name 5"], 13: ["2024-01-01 05:00:00"], 14: ["7"], 33: ["5"],
    34: ["7"], 36: ["5"], 108: ["off"], 142: ["int4"],
}  # fmt: skip
BEFORE = {
    **dict.fromkeys((3, 130, 144, 146), "begin"),
    44: 'begin; declare "SQL_CUR0x5595b6c4f4c0" cursor for select 1',
    48: 'prepare "_PLAN0x5634af1c54c0" as select 1',
    **dict.fromkeys((122,), "begin isolation level repeatable read"),
    **dict.fromkeys((137, 139, 148), "begin"),
    138: 'begin; declare "nc" cursor for select id from kv order by id limit 1000',
    140: 'begin; declare "mycur" cursor for select id from kv order by id limit 1000',
    141: 'begin; declare "mycur" cursor for select id from kv order by id limit 1000',
    149: 'begin; savepoint "_pg3_1"',
}


@pytest.fixture(scope="module")
def theirs() -> Iterator[str]:
    """Starts a separate server, whose catalog has no databases and roles of other tests."""
    server = Postgres()
    try:
        server.start()
        with psycopg.connect(server.dsn, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {DATABASE}")
        dsn = psycopg.conninfo.make_conninfo(server.dsn, dbname=DATABASE)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(SCHEMA.split(";")[0].encode())
            connection.cursor().executemany("INSERT INTO kv VALUES (%s, %s, %s, %s, %s)", ROWS)
            for statement in SCHEMA.split(";")[1:]:
                connection.execute(statement.encode())
        yield dsn
    finally:
        server.stop()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    live = Live(tmp_path_factory.mktemp("client_sql") / "lake")
    try:
        model = live.model
        model.drop(live.v)
        kv = model.writer.catalog.next_id
        model.put(Table(kv, "kv", KV, (0,), stored=True, errors=kv + 1))
        view = model.writer.catalog.next_id
        model.writer.append(kind="catalog", catalog=Change(put=(View(view, "kv_view", KV[:2], depends=(kv,), query=VIEW),)))
        mv = model.writer.catalog.next_id
        fields = (Field("cnt", INT4), Field("n", INT8))
        model.put(MaterializedView(mv, "kv_mv", fields, None, stored=True, errors=mv + 1, depends=(kv,), query=COUNTS))
        counts = Counter(row[3] for row in ROWS)
        time = model.tick({kv: [(row, 1) for row in ROWS], mv: [(pair, 1) for pair in counts.items()]})
        live.call(live.serving.progress.wait(time - 1, 10))
        yield f"host={live.host} port={live.port} user=postgres dbname={DATABASE}"
    finally:
        live.close()


def oid_of_kv(connection: psycopg.Connection) -> str:
    row = connection.execute("select oid from pg_class where relname = 'kv'").fetchone()
    assert row is not None
    return str(row[0])


def answers(dsn: str, number: int) -> list[Any]:
    """Returns the answers to a statement in each of its protocols."""
    statement = STATEMENTS[number]
    results_by_step = []
    for protocol in sorted(statement["proto"]):
        with psycopg.connect(dsn, autocommit=True) as connection:
            sql = re.sub(r"\b16388\b", oid_of_kv(connection), statement["sql"]).encode()
            wire = connection.pgconn
            if number in BEFORE:
                wire.exec_(BEFORE[number].encode())
            count = max([0, *map(int, re.findall(r"\$(\d+)", statement["sql"]))])
            values = VALUES.get(number, [None] * count)
            if protocol == "simple" and not count:
                wire.send_query(sql)
            else:
                wire.send_query_params(sql, [None if v is None else v.encode() for v in values])
            results_by_step.append([*results(connection), wire.transaction_status])
    return results_by_step


def arrived(wire: Any) -> None:
    """Waits for the next result without holding the GIL, which the gateway's thread needs."""
    while wire.flush():
        select.select([], [wire.socket], [], PATIENCE_S)
    while wire.is_busy():
        assert select.select([wire.socket], [], [], PATIENCE_S)[0], "no answer"
        wire.consume_input()


def results(connection: psycopg.Connection) -> Iterator[Any]:
    wire = connection.pgconn
    while True:
        arrived(wire)
        result = wire.get_result()
        if result is None:
            return
        if result.status == pq.ExecStatus.COPY_OUT:
            data = b""
            while True:
                size, piece = wire.get_copy_data(1)
                if size < 0:
                    break
                if size == 0:
                    select.select([wire.socket], [], [], PATIENCE_S)
                    wire.consume_input()
                data += bytes(piece or b"")
            yield ("copy", data)
            continue
        if result.status == pq.ExecStatus.FATAL_ERROR:
            yield ("error", (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode())
            continue
        columns = [((result.fname(i) or b"").decode(), result.ftype(i)) for i in range(result.nfields)]
        rows = Counter(tuple(shown(result.get_value(n, i)) for i in range(result.nfields)) for n in range(result.ntuples))
        if columns == [("pg_backend_pid", 23)]:
            assert [result.get_value(0, 0)] == [str(connection.info.backend_pid).encode()]
            rows = Counter([("PROCESS",)])
        yield ("rows", columns, rows, re.sub(r"\d+$", "n", (result.command_status or b"").decode()))


def shown(value: bytes | None) -> str | None:
    """Returns a value with the oids of user objects and the names of snapshots masked."""
    if value is None:
        return None
    text = re.sub(r"\b[0-9A-F]{8}-[0-9A-F]{8}-\d+\b", "SNAPSHOT", value.decode())
    return re.sub(r"\b(1[6-9]\d{3}|[2-9]\d{4}|\d{6,})\b", "OID", text)


def differences(theirs: list[Any], ours: list[Any]) -> list[str]:
    out = []
    for expected, actual in zip(theirs, ours, strict=True):
        if expected[-1] != actual[-1]:
            out.append(f"transaction status {expected[-1]} there, {actual[-1]} here")
        if [r[0] for r in expected[:-1]] != [r[0] for r in actual[:-1]]:
            out.append(f"{[r[:2] if r[0] == 'error' else r[0] for r in expected[:-1]]} there, {[r[:2] for r in actual[:-1]]} here")
            continue
        for one, other in zip(expected[:-1], actual[:-1], strict=True):
            if one == other:
                continue
            if one[0] != "rows":
                out.append(f"{one} there, {other} here")
                continue
            if one[1] != other[1]:
                out.append(f"columns {[p for p in zip(one[1], other[1], strict=False) if p[0] != p[1]] or (one[1], other[1])}")
            if one[3] != other[3]:
                out.append(f"tag {one[3]} there, {other[3]} here")
            missing, more = one[2] - other[2], other[2] - one[2]
            more = Counter({row: count for row, count in more.items() if not any(map(OURS.match, filter(None, row)))})
            if missing or more:
                out.append(f"rows: {sum(missing.values())} missing {list(missing)[:1]}, {sum(more.values())} more {list(more)[:1]}")
    return out


@pytest.mark.parametrize("number", range(len(STATEMENTS)))
def test_as_postgresql_answers(theirs: str, ours: str, number: int) -> None:
    wrong = differences(answers(theirs, number), answers(ours, number))
    if number in DIFFERENT:
        assert wrong, f"statement {number} is the same now: take it from the list"
    else:
        assert not wrong, f"{STATEMENTS[number]['sql'][:500]}\n{wrong}"


def test_the_list_shrinks() -> None:
    assert len(STATEMENTS) == 188
    assert len(DIFFERENT) <= 8
