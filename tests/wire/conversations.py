"""The conversations that are recorded: each is a list of steps, and each step waits for its answer.

A step is bytes, or one of the values below. After bytes, the client reads one ReadyForQuery for each
Query and Sync message in them.

    Quiet(bytes)      read until the server is silent
    Unread(bytes)     read nothing
    CANCEL            send a cancel request on another connection after a pause; read up to ReadyForQuery
    Raw(bytes)        the first bytes of a connection, without a start-up message before
"""

# ruff: noqa: E501  # statements stand as they are sent

from __future__ import annotations

from dataclasses import dataclass
from struct import pack

from tailgate.gateway.protocol.backend import frame
from tests.wire.wire import Bind, Close, Describe, Execute, Flush, Parse, Query, Sync


@dataclass(frozen=True)
class Step:
    """A step of a conversation.

    `ready` is the number of ReadyForQuery to read; None reads until the server is silent. `first`
    means that nothing was sent before, not even a start-up message. `cancel` sends a cancel request
    first.
    """

    data: bytes
    ready: int | None
    first: bool = False
    cancel: bool = False


def Quiet(data: bytes) -> Step:
    return Step(data, None)


def Unread(data: bytes) -> Step:
    return Step(data, 0)


def Raw(data: bytes) -> Step:
    return Step(data, None, first=True)


CANCEL = Step(b"", 1, cancel=True)


def step(*messages: bytes) -> Step:
    data = b"".join(messages)
    return Step(data, sum(m[:1] in (b"Q", b"S") for m in messages))


def simple_queries(*texts: str) -> list[Step]:
    return [step(Query(text)) for text in texts]


def data(text: bytes) -> bytes:
    return frame(b"d", text)


def startup(*words: str, version: int = 196608) -> bytes:
    body = pack("!I", version) + b"".join(w.encode() + b"\0" for w in words) + b"\0"
    return pack("!I", len(body) + 4) + body


DONE = frame(b"c", b"")


def fail(why: str) -> bytes:
    return frame(b"f", why.encode() + b"\0")


def values(text: str, formats: list[int] | None = None) -> Step:
    """Returns a query in the extended protocol."""
    return step(Parse("", text), Bind("", "", (), (), formats or []), Describe("P", ""), Execute(), Sync())


# Runs before a conversation, on PostgreSQL and on Tailgate.
SETUP = """
create table t (id int primary key, name text, amount numeric(10,2), day date, at timestamptz, b bytea);
create table w (id int primary key, name text not null, n numeric(6,2), constraint positive check (n > 0));
create table wide (id bigint, f real, d double precision, ok boolean, u uuid, j jsonb, tags text[], small smallint, tm time, ts timestamp);
insert into t values (1, 'one', 1.50, '2024-02-29', '2024-02-29 12:00:00+00', '\\x00ff'), (2, 'zwö', -2, '1999-12-31', null, ''), (3, null, null, null, null, null);
insert into wide values (9223372036854775807, 1.5, -0.1, true, '00000000-0000-0000-0000-00000000000a', '{"a": [1, null]}', '{x,"y z",null}', -32768, '12:34:56.789', '2000-01-01 00:00:00.5')
"""

LITERALS = [
    "1", "9223372036854775807", "1.50", "'x'", "true", "null", "1.5::real", "1e100::float8", "'NaN'::float8", "'2024-02-29'::date",
    "'12:00:00.5'::time", "'2024-02-29 12:00:00'::timestamp", "'2024-02-29 12:00:00+02'::timestamptz",
    "'1 year 2 mons -3 days 04:05:06'::interval",
    "'\\x00ff'::bytea", "'{\"a\": 1}'::jsonb", "'00000000-0000-0000-0000-00000000000a'::uuid", "'{1,2,null}'::int[]",
    "'{a,\"b c\"}'::text[]",
    "123::smallint", "0.00::numeric(5,2)", "-123456789.123456789::numeric", "'abc'::varchar(5)", "'{}'::int[]",
]  # fmt: skip

CONVERSATIONS: dict[str, list[Step]] = {
    "simple": simple_queries(
        "select 1 as a; select 'x' as b, true as c", "", ";", "-- nothing", "select id, name, amount from t order by id",
        "select id from t where id > 100", "values (1, 'a'), (2, null)", "select 1;;select 2", "select count(*), sum(amount) from t",
    ),
    "types in text": simple_queries(*(f"select {literal} as v" for literal in LITERALS), "select * from wide", "select * from t order by id"),
    "types in binary": [*(values(f"select {literal} as v", [1]) for literal in LITERALS), values("select * from wide", [1]),
                        values("select id, name, amount, day, at, b from t order by id", [1])],
    "errors": simple_queries(
        "select * from nobody", "select nam from t", "select 1 / 0", "select 'x'::int", "select nothing(1)", "selec 1", "select 1 +",
        "select 99999999999::int", "select id from t group by name", "select sum(name) from t", "select id from t, w",
        "select 'a' || 1 + 1", "select * from t where id = 'x'", "select (select id from t)", "select $1", "select 'abc", "select \"a",
        "select 1 limit -1", "select name from t order by 5", "select 1 union select 1, 2", "select t.nobody from t", "select x.id from t",
        "insert into nobody values (1)", "drop table nobody", "select '2024-13-01'::date", "select date '2024-02-30'", "select '{1'::int[]",
        "select '{'::jsonb", "select 'x'::boolean", "select 1000::smallint * 1000::smallint",
    ),
    "writes": simple_queries(
        "delete from w", "insert into w values (1, 'a', 1), (2, 'b', 2)", "insert into w values (1, 'again', 1)",
        "insert into w (id) values (5)", "insert into w values (6, 'x', -1)", "insert into w values (7, 'x', 123456)",
        "insert into w values (1, 'c', 3) on conflict (id) do update set name = excluded.name returning id, name",
        "insert into w values (1, 'd', 3) on conflict do nothing", "update w set n = n + 1 where id < 3", "update w set id = 1",
        "delete from w where id = 2 returning *", "delete from w where id = 77", "insert into w values (1, 2, 3, 4)",
        "insert into w (id, id) values (1, 2)", "insert into w (nobody) values (1)", "truncate w", "select * from w",
    ),
    "extended": [
        step(Parse("", "select 1 as a, null::text as b"), Bind("", ""), Describe("P", ""), Execute(), Sync()),
        step(Parse("s", "select $1::int4 + 1 as n, $2::text as t"), Describe("S", "s"), Sync()),
        step(Bind("", "s", ["41", "abc"]), Execute(), Sync()),
        step(Bind("", "s", [b"\0\0\0\x29", None], [1, 0], [1, 0]), Describe("P", ""), Execute(), Sync()),
        step(Parse("s", "select 2"), Sync()),
        step(Close("S", "s"), Close("S", "nobody"), Parse("s", "select 2 as two"), Sync()),
        step(Bind("", "s"), Execute(), Sync()),
        step(Bind("", "nobody"), Sync()),
        step(Describe("S", "nobody"), Sync()),
        step(Describe("P", "nobody"), Sync()),
        step(Execute("nobody"), Sync()),
        step(Parse("", "begin"), Describe("S", ""), Bind("", ""), Describe("P", ""), Execute(), Sync()),
        step(Parse("", "commit"), Bind("", ""), Execute(), Sync()),
        step(Parse("", ""), Bind("", ""), Describe("P", ""), Execute(), Sync()),
        step(Parse("", "select 1; select 2"), Sync()),
        step(Parse("", "select * from nobody"), Sync()),
        step(Parse("", "select id from t where name = $1"), Describe("S", ""), Bind("", "", ["one"]), Execute(), Sync()),
        step(Parse("", "insert into w values ($1, $2, $3)"), Describe("S", ""), Bind("", "", ["1", "a", "2.5"]), Execute(), Sync()),
        step(Parse("", "delete from w where id = $1 returning n", [23]), Bind("", "", [b"\0\0\0\1"], [1], [0]), Describe("P", ""), Execute(), Sync()),
        step(Bind("", "s", ["1"]), Sync()),
        step(Parse("", "select $1::int"), Bind("", "", ["x"]), Sync()),
        step(Parse("", "select $1::int"), Bind("", "", [b"\0"], [1]), Sync()),
    ],
    "parameters": [
        step(Parse("p", f"select $1::{type} as v"), Bind("", "p", [value]), Describe("P", ""), Execute(), Close("S", "p"), Sync())
        for type, value in (
            ("int8", "5"), ("numeric", "1.50"), ("text", "x"), ("bool", "yes"), ("date", "2024-02-29"),
            ("timestamptz", "2024-02-29 12:00:00+02"),
            ("float8", "1e3"), ("uuid", "00000000-0000-0000-0000-00000000000A"), ("bytea", "\\x0a"), ("jsonb", '{"b":1,"a":2}'),
            ("int[]", "{1,2}"), ("interval", "90 minutes"), ("time", "1:02"), ("numeric", "abc"), ("date", "tomorrowish"),
        )
    ],
    "portals": [
        step(Query("begin")),
        step(Parse("s", "select id from t order by id"), Bind("p", "s"), Execute("p", 1), Sync()),
        step(Execute("p", 1), Execute("p", 1), Execute("p", 1), Sync()),
        step(Execute("p", 5), Sync()),
        step(Bind("p", "s"), Sync()),
        step(Query("rollback")),
        step(Bind("p", "s"), Execute("p", 2), Execute("p", 0), Sync()),
        step(Execute("p"), Sync()),
        step(Bind("q", "s"), Close("P", "q"), Execute("q"), Sync()),
        step(Bind("", "s"), Execute("", 3), Sync()),
        step(Bind("", "s"), Execute("", 4), Sync()),
    ],
    "pipelines": [
        step(Parse("", "select 1"), Bind("", ""), Execute(), Parse("", "select 2"), Bind("", ""), Execute(), Sync()),
        step(Parse("", "select 1"), Bind("", ""), Execute(), Parse("", "select 1 / 0"), Bind("", ""), Execute(), Parse("", "select 3"), Bind("", ""),
             Execute(), Sync(), Parse("", "select 4"), Bind("", ""), Execute(), Sync()),
        step(Query("select 5"), Query("select 6; select 1 / 0; select 7"), Query("select 8")),
        Quiet(Parse("f", "select 9") + Describe("S", "f") + Flush()),
        step(Bind("", "f"), Execute(), Sync()),
        step(Parse("", "insert into w values (1, 'a', 1)"), Bind("", ""), Execute(), Parse("", "insert into w values (1, 'b', 1)"), Bind("", ""),
             Execute(), Sync()),
        step(Query("select count(*) from w")),
    ],
    "transactions": simple_queries(
        "begin", "select 1", "begin", "select 1 / 0", "select 1", "savepoint a", "commit", "commit", "rollback",
        "start transaction read only",
        "insert into w values (1, 'a', 1)", "rollback", "begin", "savepoint a", "select 1 / 0", "rollback to a", "select 2", "release a",
        "release a", "rollback", "savepoint a", "release a", "rollback to a", "set transaction read only",
        "begin isolation level serializable",
        "show transaction_isolation", "end", "begin; select 1 / 0; commit", "rollback", "select 1; begin; select 2", "abort",
        "insert into w values (8, 'a', 1); select 1 / 0", "select count(*) from w", "rollback and chain", "prepare transaction 'x'",
    ),
    "settings": simple_queries(
        "set timezone = 'Europe/Vienna'", "select '2024-02-29 12:00:00+00'::timestamptz as v", "set datestyle = 'German, DMY'",
        "select '2024-02-29'::date as v, '2024-02-29 12:00:00+00'::timestamptz as w", "reset datestyle",
        "set application_name = 'me'", "show application_name",
        "set intervalstyle = 'iso_8601'", "select '1 day 02:00'::interval as v", "set extra_float_digits = 0",
        "select 0.1::float8 + 0.2::float8 as v",
        "set bytea_output = 'escape'", "select '\\x00ff41'::bytea as v", "set nobody = 1", "show nobody",
        "set my.setting = 'x'", "show my.setting",
        "show other.setting", "set timezone = 'Nowhere/At_All'", "set datestyle = 'nonsense'",
        "set statement_timeout = '1s'", "show statement_timeout",
        "set statement_timeout = -1", "set statement_timeout = 'soon'", "set extra_float_digits = 99", "begin",
        "set local timezone = 'UTC'", "rollback",
        "show timezone", "begin", "set application_name = 'other'", "rollback", "show application_name", "set local timezone = 'UTC'",
        "set client_encoding = 'LATIN1'", "reset client_encoding", "set client_encoding = 'NOTHING'",
        "set server_version = '16'", "discard all", "show timezone",
        "show server_encoding", "set standard_conforming_strings = off",
        "set session characteristics as transaction read only", "reset nobody",
        "set default_transaction_isolation = 'nonsense'", "set transaction_isolation = 'serializable'",
    ),
    "notices": simple_queries(
        "drop table if exists nobody", "create table if not exists t (id int)", "commit", "set local timezone = 'UTC'",
        "drop view if exists a, b",
        "begin; begin; commit",
    ),
    "prepared": simple_queries(
        "prepare p (int) as select $1 + 1 as v", "execute p (1)", "execute p", "execute p (1, 2)",
        "prepare p as select 1", "execute nobody", "deallocate p",
        "deallocate p", "prepare q as select 1 as one", "execute q", "deallocate all",
        "prepare r (int) as select id from t where id = $1", "execute r ('2')",
        "execute r ('x')",
    ),
    "cursors": simple_queries(
        "declare c cursor for select 1", "begin", "declare c cursor for select id, name from t order by id",
        "declare c cursor for select 1", "rollback", "begin",
        "declare c cursor for select id, name from t order by id", "fetch c", "fetch 0 c", "move c",
        "fetch all from c", "fetch 5 c", "close c", "close c",
        "rollback", "begin; declare d binary cursor for select 1 as v; fetch d; close d; commit",
        "begin; fetch nobody", "rollback", "close all",
    ),
    "copy out": simple_queries(
        "copy t to stdout", "copy (select id, name from t order by id) to stdout with (format csv, header)",
        "copy (select id, day from t order by id) to stdout (format binary)",
        "copy (select name, null as n from t order by id) to stdout with (format csv, force_quote *, null 'N', delimiter ';')",
        "copy nobody to stdout",
        "copy (select 'a' || chr(9) || 'b', E'x\\ny', E'\\\\') to stdout", "copy t (id, nobody) to stdout", "copy (select 1 / 0) to stdout",
        "copy t to stdout (format nonsense)", "copy t to stdout (delimiter 'ab')", "copy w to stdout",
    ),
    "copy in": [
        step(Query("delete from w")),
        Quiet(Query("copy w from stdin")), step(data(b"1\tone\t1.5\n2\tt"), data(b"wo\t\\N\n"), DONE, Query("select * from w order by id")),
        Quiet(Query("copy w from stdin with (format csv, header)")),
        step(data(b'id,name,n\n3,"a ""b"", c",2\n'), DONE, Query("select * from w where id = 3")),
        Quiet(Query("copy w (id, name) from stdin (format binary)")),
        step(data(b"PGCOPY\n\xff\r\n\0" + bytes(8) + pack("!hiii", 2, 4, 4, 1) + b"x" + pack("!h", -1)), DONE, Query("select id, name from w where id = 4")),
        Quiet(Query("copy w from stdin")), step(data(b"5\tfive\t1\n"), fail("I changed my mind"), Query("select count(*) from w")),
        Quiet(Query("copy w from stdin")), step(data(b"6\tsix\n"), DONE, Query("select 1")),
        Quiet(Query("copy w from stdin")), step(data(b"x\tsix\t1\n"), DONE, Query("select 1")),
        Quiet(Query("copy w from stdin")), step(data(b"7\tseven\t1\textra\n"), DONE, Query("select 1")),
        Quiet(Query("copy w from stdin")), step(data(b"1\tagain\t1\n"), DONE, Query("select 1")),
        Quiet(Query("copy w from stdin")), step(data(b"8\t\\N\t1\n"), DONE, Query("select 1")),
        Quiet(Query("copy w from stdin")), step(data(b"9\tnine\t-1\n"), DONE, Query("select 1")),
        Quiet(Query("copy w from stdin with (format csv)")), step(data(b'10,"unterminated,1\n'), DONE, Query("select 1")),
        Quiet(Query("copy w from stdin")), step(data(b"\\.\n"), DONE, Query("select count(*) from w")),
        step(Query("copy nobody from stdin")), step(data(b"1\n"), DONE, Query("select 1")),
        Quiet(Parse("", "copy w from stdin") + Bind("", "") + Execute() + Flush()),
        step(data(b"11\televen\t1\n"), DONE, Sync(), Query("select count(*) from w")),
        Quiet(Query("copy w from stdin")), step(Query("select 1")),
    ],
    "cancel": [
        Unread(Query("select count(*) from generate_series(1, 3000000) a, generate_series(1, 3000000) b")),
        CANCEL,
        step(Query("select 1")),
        step(Query("begin")),
        Unread(Query("select count(*) from generate_series(1, 3000000) a, generate_series(1, 3000000) b")),
        CANCEL,
        step(Query("select 1")),
        step(Query("rollback")),
        step(Query("set statement_timeout = '200ms'")),
        step(Query("select count(*) from generate_series(1, 3000000) a, generate_series(1, 3000000) b")),
    ],
    "violations": [
        step(frame(b"B", b"\0\0\0\1\0\7\0\0\0\0"), Sync()),
        step(frame(b"P", b"x"), Sync()),
        step(frame(b"D", b"Xx\0"), Sync()),
        step(frame(b"C", b"Xx\0"), Sync()),
        step(data(b"stray"), DONE, fail("stray"), Query("select 1")),
        step(Parse("", "select $1::int"), Bind("", "", ["1", "2"]), Sync()),
        Quiet(frame(b"!", b"")),
    ],
    "a length below four": [Quiet(b"Q\0\0\0\3")],
    "a bad frame in a query": [Quiet(frame(b"Q", b"select 1"))],
    "terminate": [Quiet(frame(b"X", b""))],
    "startup": [Raw(startup("user", "postgres", "database", "wire", "client_encoding", "UTF8", "application_name", "me", "TimeZone", "UTC"))],
    "startup with options": [Raw(startup("user", "postgres", "database", "wire", "options", "-c statement_timeout=5s -c DateStyle=German"))],
    "startup without a user": [Raw(startup("database", "wire"))],
    "startup of protocol 4": [Raw(startup("user", "postgres", version=4 << 16))],
    "startup of protocol 3.9": [Raw(startup("user", "postgres", "database", "wire", "_pq_.thing", "1", version=(3 << 16) + 9))],
    "startup with an unknown setting": [Raw(startup("user", "postgres", "database", "wire", "nobody", "1"))],
    "startup with a bad value": [Raw(startup("user", "postgres", "database", "wire", "statement_timeout", "soon"))],
    "startup with a bad encoding": [Raw(startup("user", "postgres", "database", "wire", "client_encoding", "NOTHING"))],
    "startup without an end": [Raw(pack("!II", 12, 196608) + b"user")],
    "startup of ten bytes": [Raw(pack("!I", 3))],
    "startup too long": [Raw(pack("!I", 20000) + b"x" * 100)],
    "encryption": [Raw(pack("!II", 8, 80877104)), Quiet(pack("!II", 8, 80877103)), Quiet(startup("user", "postgres", "database", "wire", "TimeZone", "UTC"))],
    "a cancel request of nobody": [Raw(pack("!IIII", 16, 80877102, 1, 1))],
}  # fmt: skip
