"""Queries and writes of sessions with other time zones than UTC, compared with PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.adapt import Loader

from tailgate.sql.time_zones import SAME_AS_UTC
from tailgate.values.times.zones import offset, setting
from tests.tables.world import World

Connection = psycopg.Connection[Any]
ZONES = ("America/Los_Angeles", "Asia/Kolkata", "-7")
QUERIES = """
select '[2022-01-01,2022-01-02)'::text::tstzrange, '{[2022-01-01,2022-01-02)}'::tstzmultirange::text,
    '{[2022-01-01,2022-01-02)}'::text::tstzmultirange, int4range(1,2)::text
select '2022-01-01 00:00:00'::timestamptz
select '2022-01-01'::date::timestamptz, '2022-07-01 10:00'::timestamp::timestamptz, '2022-07-01
    10:00'::timestamp::timestamptz::timestamp
select '2022-01-01 00:00:00+00'::timestamptz::date, '2022-01-01 00:00:00+00'::timestamptz::time, '2022-01-01
    00:00:00+00'::timestamptz::timetz, '2022-01-01 00:00:00+00'::timestamptz::text, 'x' || '2022-01-01 00:00:00+00'::timestamptz
select '2022-01-01 00:00:00-08:00'::timestamptz = '2022-01-01'::date, '2022-01-01 00:00:00-08:00'::timestamptz =
    '2022-01-01'::timestamp
select extract(hour from t), extract(timezone from t), extract(timezone_hour from t), extract(timezone_minute from t),
    date_part('dow', t), date_part('timezone_hour', t), date_part('second', t), extract(doy from t) from (values ('2022-06-30
    23:30:01.5Z'::timestamptz), ('2022-01-01 02:30:00Z'), (null), ('infinity')) v(t)
select date_trunc('day', t), date_trunc('month', t), date_trunc('hour', t), date_trunc('week', t), date_trunc('millennium',
    t), date_trunc('da'||'y', t), date_trunc('day', t, 'Asia/Tokyo') from (values ('2022-06-30 23:30:01.5Z'::timestamptz),
    ('2022-11-06 08:30:00Z'), ('2022-11-06 09:30Z'), ('infinity')) v(t)
select t + interval '1 day', t - interval '1 month', interval '24 hours' + t, t + i, t - i from (values ('2022-03-12
    20:30:01.5Z'::timestamptz, interval '1 mon 2 days 03:04'), ('2022-11-05 08:30:00Z', '-1 day'), ('-infinity', '1 s')) v(t, i)
select age('2022-03-14 00:00'::timestamptz, '2022-03-12 00:00Z'::timestamptz), '2022-03-14 00:00'::timestamptz - '2022-03-12
    00:00'::timestamptz
select current_date = now()::date, localtimestamp = now()::timestamp, current_time = now()::timetz, localtime = now()::time,
    age(now() - interval '2 days') = age(now()::timestamp - interval '2 days')
select make_timestamptz(1973, 07, 15, 08, 15, 55.33), make_timestamptz(1973, 07, 15, 08, 15, 55.33, 'Asia/Manila') =
    '1973-07-14 20:15:55.33'::timestamptz
select to_char('2021-04-01 00:00Z'::timestamptz, 'Mon DD, YYYY HH12:MI:SS am TZH:TZM OF TZ tz'), to_char('2021-12-01
    00:00Z'::timestamptz, 'HH24 TZ OF')
select to_timestamp('2021/12/30 14:52:49', 'YYYY/MM/DD HH24:MI:SS'), to_timestamp('2021/12/30 14:52:49 +0330', 'YYYY/MM/DD
    HH24:MI:SS TZHTZM')
select * from generate_series('2022-03-12 00:00'::timestamptz, '2022-03-15', '1 day')
select * from generate_series('2022-03-14 00:00'::timestamptz, '2022-03-12', '-12 hours')
select count(*) from generate_series('2022-03-14 00:00'::timestamptz, '2022-03-12', '0 hours')
select count(*) from generate_series('2022-03-14 00:00'::timestamptz, '2022-03-12', '1 day -24 hours')
select '2022-02-13 02:30'::timestamptz + interval '1 mon 1 day', to_json('1800-01-01 00:00'::timestamptz)
select generate_series('2022-03-12 00:00'::timestamptz, '2022-03-15', '1 day')::date
select '10:00'::timetz, '10:00'::time::timetz, timetz '11:00+01'
select t::date, count(*) from (values ('2022-06-30 23:30:01.5Z'::timestamptz), ('2022-11-06 08:30:00Z')) v(t) group by
    t::date order by 1
select ('2022-06-30 23:30'::text)::timestamptz, ('2022-06-30 23:30'||'')::timestamptz, '2022-06-30
    23:30'::varchar::timestamptz
select to_json('2014-05-28 12:22:35.614298'::timestamptz), to_jsonb('2014-05-28 12:22:35.614298'::timestamptz),
    row_to_json(r), json_agg(t), jsonb_build_object('a', t), concat(t, 'x'), format('%s', t), quote_literal(t), array[t]::text,
    row(t)::text, array_to_string(array[t], ',') from (values ('2022-06-30 23:30:01.5Z'::timestamptz)) r(t) group by r, t
select max(t)::text, min(t::date), string_agg(t::text, ',') from (values ('2022-06-30 23:30:01.5Z'::timestamptz)) r(t)
select tstzrange('2022-01-01', '2022-01-02'), '[2022-01-01,2022-01-02)'::tstzrange, tstzrange('2022-01-01',
    '2022-01-02')::text, lower('[2022-01-01,2022-01-02)'::tstzrange)
select '{2022-01-01,2022-01-02 10:00}'::timestamptz[], '{2022-01-01}'::text::timestamptz[]
select t from (values ('2022-06-30 23:30'::timestamptz)) r(t) where t between '2022-06-30' and '2022-07-01' and t::time =
    '23:30'
select case when t > '2022-06-30 12:00' then t::date end, coalesce(t::date, '2000-01-01') from (values ('2022-06-30
    23:30'::timestamptz)) r(t)
select sum(1) over (order by t range between '1 day' preceding and current row) from (values ('2022-03-13
    00:00'::timestamptz), ('2022-03-14 00:00')) r(t)
select '2022-03-14 00:00'::timestamptz in ('2022-03-14 07:00Z', '2022-03-14'), greatest('2022-03-14'::timestamptz,
    '2022-03-14 03:00Z'), '2022-03-14'::timestamptz(0), localtimestamp(0)::time(0) = now()::timestamp(0)::time
select date_bin('1 day', '2022-03-14 00:00'::timestamptz, '2022-01-01'), isfinite('2022-03-14 00:00'::timestamptz), (date
    '2022-01-01', date '2022-01-03') overlaps (timestamptz '2022-01-02', interval '1 day')
select '2022-01-01'::date + '10:00'::timetz, date '2022-01-01' + time '10:00' = '2022-01-01 10:00'::timestamptz, '2022-01-01
    10:00'::timestamptz - '2022-01-01 10:00'::timestamp
select ('2022-01-01 10:00'::timestamptz at time zone 'UTC'), ('2022-01-01 10:00'::timestamp at time zone 'UTC'),
    timezone('Asia/Tokyo', '2022-01-01 10:00'::timestamptz)
"""
# in a session of the zone, each after the one before it
STATEMENTS = """
CREATE TABLE t (id int PRIMARY KEY, at timestamptz, day date, local timestamp, clock timetz, m date DEFAULT timestamptz '2000-01-01 03Z')
INSERT INTO t VALUES (1, '2022-07-01 10:00', '2022-07-01 23:30Z'::timestamptz, '2022-07-01 23:30Z'::timestamptz, '10:00')
INSERT INTO t (id, at, day) VALUES (2, '2022-01-01', timestamptz '2022-01-01 03Z'), (3, date '2022-01-02', NULL), (4, '2022-01-03', NULL)
INSERT INTO t (id, at, local) SELECT 5, timestamp '2022-01-04', timestamptz '2022-01-04 00:00Z'
INSERT INTO t VALUES (1, '2022-07-02') ON CONFLICT (id) DO UPDATE SET at = excluded.at, day = t.at RETURNING *
UPDATE t SET day = at, local = at + interval '1 day' WHERE at < '2022-01-02' RETURNING id, day, local
UPDATE t SET at = local WHERE id = 5 RETURNING at, at::text
MERGE INTO t USING (VALUES (6, '2022-05-05'::timestamp)) n (id, at) ON t.id = n.id WHEN NOT MATCHED THEN INSERT (id, at) VALUES (n.id, n.at)
DELETE FROM t WHERE at = date '2022-01-03' RETURNING at::date
WITH gone AS (DELETE FROM t WHERE at::date = '2022-01-02' RETURNING at) SELECT at::text, at::time FROM gone
SELECT id, at, day, local, clock, m FROM t ORDER BY id
CREATE VIEW v AS SELECT id, at::date AS day, date_trunc('day', at) AS begin FROM t
SELECT * FROM v ORDER BY id
CREATE TEMPORARY VIEW own AS SELECT id, at::date AS day FROM t WHERE at > '2022-01-01 09:00Z'
SELECT * FROM own ORDER BY id
CREATE TABLE days AS SELECT id, at::date AS day, at::text AS shown FROM t
SELECT * FROM days ORDER BY id
PREPARE p AS SELECT at::date FROM t WHERE id = $1
EXECUTE p (1)
PREPARE q (timestamptz, timestamptz, date, timestamp, timetz) AS SELECT $1, $2, $3, $4, $5
EXECUTE q (date '2022-07-01', timestamp '2022-07-01', '2022-07-01 03Z'::timestamptz, '2022-07-01 03Z'::timestamptz, timetz '03Z')
ALTER TABLE days ALTER day TYPE timestamptz, ADD local timestamp DEFAULT timestamptz '2022-07-01 03Z'
SELECT * FROM days ORDER BY id
ALTER TABLE days ALTER day TYPE date USING day + interval '1 day'
SELECT * FROM days ORDER BY id
SET timezone = 'Asia/Tokyo'
EXECUTE p (1)
SELECT * FROM v ORDER BY id
SELECT at::date FROM t WHERE id = 1
BEGIN
SET LOCAL timezone = 'America/Los_Angeles'
SELECT at::date, at FROM t WHERE id = 1
DECLARE c CURSOR FOR SELECT at::text FROM t ORDER BY id
FETCH ALL FROM c
ROLLBACK
SELECT at::date, at FROM t WHERE id = 1
CREATE FUNCTION f(x timestamptz) RETURNS date LANGUAGE sql AS 'SELECT x::date'
SELECT f(at) FROM t ORDER BY id
""".strip().splitlines()


# without a zone, literals of stored conditions and expressions are in UTC, in a session of any zone
STORED = """
CREATE DOMAIN late AS timestamptz CHECK (value >= '2022-01-01')
CREATE TABLE s (a int, at timestamptz CHECK (at >= '2022-01-01'), own late, is_old bool GENERATED ALWAYS AS (at < '2022-02-01') STORED)
CREATE UNIQUE INDEX ON s (a) WHERE at >= '2022-01-01'
INSERT INTO s VALUES (1, '2022-01-01 00:00Z', '2022-01-01 00:00Z'), (2, '2022-01-31 23:59Z', '2022-01-02 00:00Z')
INSERT INTO s VALUES (3, '2022-02-01 00:00Z')
""".strip().splitlines()


class Shown(Loader):
    def load(self, data: Any) -> bytes:
        return bytes(data)


@pytest.fixture
def servers(world: World, postgres: str) -> Iterator[tuple[Connection, Connection]]:
    """Yields connections to PostgreSQL and Tailgate whose values are the texts that the servers send."""
    with (
        psycopg.connect(postgres, autocommit=True, prepare_threshold=None) as theirs,
        psycopg.connect(world.dsn, autocommit=True, prepare_threshold=None) as ours,
    ):
        theirs.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        for connection in (theirs, ours):
            for type in connection.adapters.types:
                for oid in filter(None, (type.oid, type.array_oid)):
                    connection.adapters.register_loader(oid, Shown)
        yield theirs, ours


def answer(connection: Connection, sql: str) -> Any:
    try:
        cursor = connection.execute(sql.encode())
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary
    return cursor.statusmessage, cursor.description and ([c.type_code for c in cursor.description], cursor.fetchall())


def different(servers: tuple[Connection, Connection], zone: str, statements: list[str]) -> list[tuple[str, Any, Any]]:
    """Returns the statements with different answers, and the answers of PostgreSQL and Tailgate."""
    for connection in servers:
        connection.execute(f"SET timezone = '{zone}'".encode())
    answers = ((sql, *(answer(connection, sql) for connection in servers)) for sql in statements)
    return [(sql, expected, got) for sql, expected, got in answers if got != expected]


@pytest.mark.parametrize("zone", ZONES)
def test_queries(servers: tuple[Connection, Connection], zone: str) -> None:
    assert not different(servers, zone, QUERIES.replace("\n    ", " ").strip().splitlines())


@pytest.mark.parametrize("zone", ZONES)
def test_writes(servers: tuple[Connection, Connection], zone: str) -> None:
    assert not different(servers, zone, STATEMENTS)


@pytest.mark.parametrize("zone", ZONES)
def test_stored_conditions(world: World, zone: str) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as session:
        session.execute(f"SET timezone = '{zone}'".encode())
        for sql in STORED:
            session.execute(sql.encode())
        assert session.execute("SELECT a, is_old FROM s ORDER BY a").fetchall() == [(1, True), (2, True), (3, False)]
        with pytest.raises(psycopg.errors.UniqueViolation):
            session.execute("INSERT INTO s VALUES (1, '2022-01-01 00:00Z')")
        for values in ("(4, '2021-12-31 23:59Z')", "(4, NULL, '2021-12-31 23:59Z')"):
            with pytest.raises(psycopg.errors.CheckViolation):
                session.execute(f"INSERT INTO s VALUES {values}".encode())
        session.execute("INSERT INTO s VALUES (1, '2022-03-01Z') ON CONFLICT (a) WHERE at >= '2022-01-01' DO NOTHING")


def test_zones_with_the_times_of_utc() -> None:
    zones = {zone for zone in SAME_AS_UTC if setting(zone) is not None}
    assert {"UTC", "GMT", "Etc/UTC"} <= zones
    assert {offset(zone, second) for zone in zones for second in (-4_000_000_000, 0, 1_660_000_000)} == {0}


def test_a_long_series_is_refused_before_it_is_computed(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as session:
        session.execute("SET timezone = 'Asia/Tokyo'")
        for last in ("9999-01-01", "infinity"):
            began = time.monotonic()
            with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="more than 10000000 rows"):
                session.execute(f"SELECT count(*) FROM generate_series('2000-01-01'::timestamptz, '{last}', '1 s')".encode())
            assert time.monotonic() - began < 5
