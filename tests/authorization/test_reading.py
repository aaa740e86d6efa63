"""Tests that SELECT is checked on every relation that a statement reads, in any expression or plan."""

from __future__ import annotations

import json
import urllib.request

import pytest
from psycopg import errors

from tailgate.gateway.presto import main as presto
from tailgate.lake.host.server_thread import ServerThread
from tests.authorization.conftest import CANARY, refused
from tests.authorization.world import World

# A constant time or argument must not contain a subquery, for any role.
CONSTANT = [
    ("PREPARE p(text) AS SELECT $1", "EXECUTE p((SELECT string_agg(n::text, ',') FROM salaries))"),
    ("PREPARE p(int) AS SELECT $1", "EXECUTE p(1 + (SELECT max(n) FROM public.salaries))"),
    ("PREPARE p(bool) AS SELECT $1", "EXECUTE p(EXISTS (SELECT FROM salaries))"),
    ("PREPARE p(text) AS SELECT $1", "EXECUTE p(array(SELECT n FROM salaries)::text)"),
    ("VALUES (1) AS OF (SELECT n FROM salaries)",),
    ("VALUES (1) AS OF (VALUES (1))",),
    ("VALUES (1) AS OF AT LEAST (SELECT n FROM salaries)",),
    ("TABLE lo.own AS OF (SELECT max(n)::bigint + 1 FROM salaries)",),
    ("TAIL (SELECT 1) AS OF (SELECT n FROM salaries)",),
    ("SUBSCRIBE (SELECT 1) AS OF (SELECT n FROM salaries)",),
    ("SUBSCRIBE (SELECT 1) UP TO (SELECT n FROM salaries)",),
    ("COPY (TAIL (SELECT 1) AS OF (SELECT n FROM salaries)) TO STDOUT",),
    ("BEGIN", "DECLARE c CURSOR FOR TAIL (SELECT 1) AS OF (SELECT n FROM salaries)", "FETCH c"),
    ("ACKNOWLEDGE lo.sub UP TO (SELECT n FROM salaries)",),
    ("ACKNOWLEDGE lo.sub UP TO 1 + (SELECT n FROM salaries)",),
]


@pytest.mark.parametrize("texts", CONSTANT, ids=lambda texts: texts[-1])
def test_constants_take_no_subquery(shared: World, texts: tuple[str, ...]) -> None:
    refused(shared, "low", *texts, sqlstate="0A000")
    refused(shared, "tailgate", *texts, sqlstate="0A000")


TIMES = [
    "TABLE lo.own AS OF lo.t()",
    "TAIL (SELECT 1) AS OF lo.t()",
    "SUBSCRIBE (SELECT 1) UP TO lo.t()",
    "ACKNOWLEDGE lo.sub UP TO lo.t()",
]


@pytest.mark.parametrize("text", TIMES)
def test_times_take_no_function_that_reads(shared: World, text: str) -> None:
    """A function that the role may call is refused, too."""
    refused(shared, "low", text, sqlstate="0A000")


def test_arguments_of_execute_may_call_readable_functions(world: World) -> None:
    world.sql("low", "CREATE TABLE lo.own (n int PRIMARY KEY)", "INSERT INTO lo.own VALUES (7)")
    world.sql("low", "CREATE FUNCTION lo.f() RETURNS int LANGUAGE SQL AS 'SELECT max(n) FROM lo.own'")
    prepare = "PREPARE p(int) AS SELECT $1 + 1"
    assert world.sql("low", prepare, "EXECUTE p(lo.f())") == [(8,)]
    world.sql("low", "GRANT USAGE ON SCHEMA lo TO helper")
    refused(world, "helper", prepare, "EXECUTE p(lo.f())")
    world.sql("low", "GRANT SELECT ON lo.own TO helper")
    assert world.sql("helper", prepare, "EXECUTE p(lo.f())") == [(8,)]


READING = [
    ("TABLE salaries",),
    ("SELECT 1 FROM (VALUES (1)) AS x (n) WHERE EXISTS (SELECT FROM salaries)",),
    ("SELECT 1 FROM (SELECT n FROM salaries LIMIT 0) AS x WHERE false",),
    ("SELECT 1 LIMIT (SELECT n FROM salaries)",),
    ("SELECT 1 OFFSET (SELECT n FROM salaries)",),
    ("SELECT 1 FETCH FIRST (SELECT n FROM salaries) ROWS ONLY",),
    ("SELECT n FROM lo.own LIMIT own.f()",),
    ("SELECT (SELECT m.n FROM lo.own AS m LIMIT x.n) FROM salaries AS x",),
    ("CREATE VIEW lo.cut AS SELECT n FROM lo.own LIMIT (SELECT n FROM salaries)",),
    ("COPY (SELECT n FROM salaries) TO STDOUT",),
    ("COPY salaries TO STDOUT",),
    ("CREATE TABLE lo.copies AS SELECT * FROM salaries",),
    ("CREATE TABLE lo.copies AS SELECT * FROM salaries WITH NO DATA",),
    ("SELECT n INTO lo.copies FROM salaries",),
    ("CREATE TABLE own.copies AS SELECT 1 AS n",),
    ("BEGIN", "DECLARE c CURSOR FOR SELECT * FROM salaries", "FETCH c"),
    ("DECLARE c CURSOR WITH HOLD FOR SELECT * FROM salaries",),
    ("PREPARE p AS SELECT * FROM salaries", "EXECUTE p"),
    ("TAIL salaries",),
    ("SUBSCRIBE (SELECT n FROM salaries)",),
    ("EXPLAIN SELECT * FROM salaries",),
    ("EXPLAIN INSERT INTO lo.own SELECT n FROM salaries",),
    ("EXPLAIN ANALYZE UPDATE salaries SET n = 1",),
    ("PREPARE p AS DELETE FROM salaries", "EXPLAIN EXECUTE p"),
    ("INSERT INTO lo.own SELECT n FROM salaries",),
    ("INSERT INTO lo.own VALUES ((SELECT n FROM salaries))",),
    ("INSERT INTO lo.own VALUES (1) RETURNING (SELECT n FROM salaries)",),
    ("UPDATE lo.own SET n = 1 RETURNING (SELECT n FROM salaries)",),
    ("DELETE FROM lo.own RETURNING (SELECT n FROM salaries)",),
    ("UPDATE lo.own SET n = (SELECT n FROM salaries)",),
    ("UPDATE lo.own SET n = s.n FROM salaries AS s",),
    ("DELETE FROM lo.own WHERE n IN (SELECT n FROM salaries)",),
    ("INSERT INTO lo.own VALUES (1) ON CONFLICT (n) DO UPDATE SET n = (SELECT n FROM salaries)",),
    ("CREATE VIEW lo.v AS SELECT n FROM salaries",),
    ("CREATE TEMPORARY VIEW v AS SELECT n FROM salaries",),
    ("CREATE MATERIALIZED VIEW lo.v AS SELECT n FROM salaries",),
    ("CREATE SUBSCRIPTION lo.s FROM salaries",),
    ("CREATE SINK lo.s FROM salaries INTO KAFKA BROKER 'k' TOPIC 't' KEY (n) FORMAT JSON ENVELOPE UPSERT",),
    ("CREATE SINK lo.s FROM (SELECT n FROM salaries) INTO KAFKA BROKER 'k' TOPIC 't' FORMAT JSON ENVELOPE DEBEZIUM",),
    ("EXPLAIN CREATE MATERIALIZED VIEW x AS SELECT n FROM salaries",),
    ("EXPLAIN MATERIALIZED VIEW salaries",),
    ("CREATE FUNCTION lo.f() RETURNS bigint LANGUAGE SQL AS 'SELECT sum(n) FROM salaries'",),
]


@pytest.mark.parametrize("texts", READING, ids=lambda texts: texts[-1])
def test_select_is_asked(shared: World, texts: tuple[str, ...]) -> None:
    refused(shared, "low", *texts)


# Clauses that never evaluate an expression that reads. `own.f()` reads the canary, `lo.t()` a table
# of low.
NOT_READING = [
    ("CREATE TABLE lo.x (n int PRIMARY KEY, m bigint DEFAULT (SELECT max(n) FROM salaries))", "0A000"),
    ("CREATE TABLE lo.x (n int PRIMARY KEY, m bigint DEFAULT own.f())", "42883"),
    ("CREATE TABLE lo.x (n int PRIMARY KEY, m bigint DEFAULT lo.t())", "42883"),
    ("CREATE TABLE lo.x (n int PRIMARY KEY CHECK (EXISTS (SELECT FROM salaries)))", "0A000"),
    ("CREATE TABLE lo.x (n int PRIMARY KEY, CHECK (n < own.f()))", "42883"),
    ("CREATE FUNCTION lo.g(a bigint DEFAULT (SELECT n FROM salaries)) RETURNS bigint LANGUAGE SQL AS 'SELECT a'", "0A000"),
    ("CREATE FUNCTION lo.g(a bigint DEFAULT own.f()) RETURNS bigint LANGUAGE SQL AS 'SELECT a'", "42501"),
    ("SET application_name = (SELECT n FROM salaries)", "42601"),
    ("SELECT set_config('application_name', (SELECT n::text FROM salaries), false)", "0A000"),
    ("SELECT set_config('application_name', own.f()::text, false)", "42883"),
    ("VALUES (1) AS OF own.f()", "0A000"),
    ("COPY lo.own FROM STDIN WHERE n < (SELECT n FROM salaries)", "0A000"),
    ("SELECT * FROM pg_class WHERE oid = (SELECT n FROM salaries)", "42501"),
    ("SELECT * FROM generate_series(1, own.f())", "42501"),
    ("SELECT sum(1) OVER (ORDER BY own.f())", "42501"),
]


@pytest.mark.parametrize(("text", "sqlstate"), NOT_READING, ids=lambda part: part)
def test_no_other_clause_reads(shared: World, text: str, sqlstate: str) -> None:
    refused(shared, "low", text, sqlstate=sqlstate)


def test_presto_asks_too(shared: World) -> None:
    server = presto.Server(0, f"127.0.0.1:{shared.served.port}")
    thread = ServerThread(server, "presto")
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/v1/statement"
        answers = {user: presto_answer(url, user, "SELECT n FROM public.salaries") for user in ("boss", "low")}
    finally:
        thread.stop()
    assert str(CANARY) in answers["boss"]
    assert str(CANARY) not in answers["low"]
    assert "permission denied for table salaries" in answers["low"]


def presto_answer(url: str, user: str, text: str) -> str:
    """Returns all pages of the answer."""
    pages, body = [], text.encode() or None
    while url:
        request = urllib.request.Request(url, body, {"X-Trino-User": user})
        with urllib.request.urlopen(request, timeout=60) as answer:
            document = json.loads(answer.read())
        pages.append(json.dumps(document))
        url, body = document.get("nextUri", ""), None
    return "".join(pages)


def test_a_view_reads_with_its_owner_s_privileges(world: World) -> None:
    """The owner's privileges are checked at each read, for every reader, as in PostgreSQL."""
    world.sql("boss", "GRANT SELECT ON salaries TO low")
    world.sql("low", "CREATE VIEW lo.v AS SELECT n FROM salaries", "CREATE VIEW lo.w AS SELECT n FROM lo.v")
    world.sql("low", "GRANT USAGE ON SCHEMA lo TO helper", "GRANT SELECT ON lo.w TO helper")
    assert world.sql("helper", "TABLE lo.w") == [(CANARY,)]
    refused(world, "helper", "TABLE lo.v")
    world.sql("boss", "REVOKE SELECT ON salaries FROM low")
    for user in ("low", "helper", "tailgate"):
        assert refused(world, user, "TABLE lo.w").diag.message_primary == "permission denied for table salaries"
    world.sql("boss", "GRANT SELECT ON salaries TO low")
    assert world.sql("helper", "TABLE lo.w") == [(CANARY,)]


def test_a_function_reads_with_its_owner_s_and_its_caller_s_privileges(world: World) -> None:
    """Both the function's owner and its caller need the privileges on the relations that it reads."""
    world.sql("boss", "CREATE FUNCTION own.f() RETURNS bigint LANGUAGE SQL AS 'SELECT sum(n) FROM salaries'")
    world.sql("boss", "GRANT USAGE ON SCHEMA own TO PUBLIC")
    refused(world, "low", "SELECT own.f()")
    refused(world, "low", "SELECT * FROM own.f() AS x")
    world.sql("low", "CREATE TABLE lo.mine (n int)", "INSERT INTO lo.mine VALUES (1)", "GRANT USAGE ON SCHEMA lo TO PUBLIC")
    world.sql("low", "CREATE FUNCTION lo.f() RETURNS bigint LANGUAGE SQL AS 'SELECT sum(n) FROM lo.mine'")
    refused(world, "boss", "SELECT lo.f()")
    assert world.sql("tailgate", "SELECT lo.f()") == [(1,)]
    # every role with SELECT on a view may read it, even if it calls its owner's function
    world.sql("boss", "CREATE VIEW own.v AS SELECT own.f()", "GRANT SELECT ON own.v TO low")
    assert world.sql("low", "TABLE own.v") == [(CANARY,)]


def test_a_function_cannot_borrow_from_a_view_that_calls_it(world: World) -> None:
    """The function cannot use the privileges of the view's owner, nor those of a superuser who calls it."""
    world.sql("low", "CREATE FUNCTION lo.f() RETURNS bigint LANGUAGE SQL AS 'SELECT 1::bigint'", "GRANT USAGE ON SCHEMA lo TO PUBLIC")
    world.sql("boss", "CREATE VIEW own.v AS SELECT lo.f()", "GRANT USAGE ON SCHEMA own TO low", "GRANT SELECT ON own.v TO low")
    assert world.sql("low", "TABLE own.v") == [(1,)]
    refused(world, "low", "CREATE OR REPLACE FUNCTION lo.f() RETURNS bigint LANGUAGE SQL AS 'SELECT sum(n) FROM salaries'")
    world.sql("boss", "GRANT SELECT ON salaries TO low")
    world.sql("low", "CREATE OR REPLACE FUNCTION lo.f() RETURNS bigint LANGUAGE SQL AS 'SELECT sum(n) FROM salaries'")
    world.sql("boss", "REVOKE SELECT ON salaries FROM low")
    for user, text in (("low", "TABLE own.v"), ("tailgate", "SELECT lo.f()"), ("tailgate", "TABLE own.v")):
        refused(world, user, text)


def test_the_default_of_an_argument_cannot_borrow_either(world: World) -> None:
    world.sql(
        "low", "CREATE FUNCTION lo.g(a bigint DEFAULT 1) RETURNS bigint LANGUAGE SQL AS 'SELECT a'", "GRANT USAGE ON SCHEMA lo TO PUBLIC"
    )
    world.sql(
        "boss",
        "CREATE FUNCTION own.f() RETURNS bigint LANGUAGE SQL AS 'SELECT sum(n) FROM salaries'",
        "GRANT USAGE ON SCHEMA own TO PUBLIC",
    )
    world.sql("boss", "CREATE VIEW own.v AS SELECT lo.g()", "GRANT SELECT ON own.v TO low")
    text = "CREATE OR REPLACE FUNCTION lo.g(a bigint DEFAULT own.f()) RETURNS bigint LANGUAGE SQL AS 'SELECT a'"
    refused(world, "low", text)
    world.sql("boss", "GRANT SELECT ON salaries TO low")
    world.sql("low", text)
    assert world.sql("low", "TABLE own.v") == [(CANARY,)]
    world.sql("boss", "REVOKE SELECT ON salaries FROM low")
    refused(world, "low", "TABLE own.v")


def test_a_temporary_view_reads_with_its_owner_s_privileges(world: World) -> None:
    world.sql("boss", "GRANT SELECT ON salaries TO low")
    with world.connect("low") as low:
        low.execute("CREATE TEMPORARY VIEW v AS SELECT n FROM salaries")
        assert low.execute("TABLE v").fetchall() == [(CANARY,)]
        world.sql("boss", "REVOKE SELECT ON salaries FROM low")
        with pytest.raises(errors.InsufficientPrivilege):
            low.execute("TABLE v")


def test_a_view_made_by_a_role_is_not_another_role_s_in_one_session(world: World) -> None:
    with world.connect("tailgate") as session:
        session.execute("CREATE TEMPORARY VIEW v AS SELECT n FROM salaries")
        session.execute("SET ROLE low")
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied for view v"):
            session.execute("TABLE v")
        session.execute("RESET ROLE")
        assert session.execute("TABLE v").fetchall() == [(CANARY,)]


def test_a_cursor_runs_with_the_role_that_opens_it(world: World) -> None:
    """DECLARE reads no rows; the first FETCH checks the privileges."""
    with world.connect("tailgate") as session:
        session.execute("BEGIN")
        session.execute("DECLARE c CURSOR FOR TABLE salaries")
        session.execute("SET ROLE low")
        with pytest.raises(errors.InsufficientPrivilege):
            session.execute("FETCH c")


def test_rows_in_errors_need_the_privilege_to_read(world: World) -> None:
    """For a role without SELECT, 23505 has no values, and 23502 and 23514 have those that the statement gives, as in PostgreSQL."""
    world.sql("boss", "CREATE TABLE own.t (n int PRIMARY KEY, hidden text NOT NULL DEFAULT 'of the table', CHECK (n > 0))")
    world.sql("boss", "GRANT USAGE ON SCHEMA own TO low", "GRANT INSERT ON own.t TO low", "INSERT INTO own.t VALUES (5)")
    for text, detail in (
        ("INSERT INTO own.t VALUES (5)", None),
        ("INSERT INTO own.t VALUES (-1)", "Failing row contains (n) = (-1)."),
        ("INSERT INTO own.t VALUES (NULL)", "Failing row contains (n) = (null)."),
    ):
        with world.connect("low") as low, pytest.raises(errors.IntegrityError) as raised:
            low.execute(text)
        assert raised.value.diag.message_detail == detail
    world.sql("boss", "GRANT SELECT ON own.t TO low")
    with world.connect("low") as low, pytest.raises(errors.IntegrityError) as raised:
        low.execute("INSERT INTO own.t VALUES (5)")
    assert raised.value.diag.message_detail == "Key (n)=(5) already exists."


# Cached results, look-ups and shared feeds check the privileges, too.
def test_cached_answers_need_privileges(world: World) -> None:
    with world.connect("boss") as boss, world.connect("low") as low:
        for _ in range(40):
            boss.execute(f"SELECT name FROM salaries WHERE n = {CANARY}")
            boss.execute("SELECT name FROM salaries WHERE n = %s", (CANARY,), prepare=True)
        for text in (f"SELECT name FROM salaries WHERE n = {CANARY}", "SELECT max(n) FROM salaries"):
            boss.execute(text.encode())
            with pytest.raises(errors.InsufficientPrivilege):
                low.execute(text.encode())
            with pytest.raises(errors.InsufficientPrivilege):
                low.execute(text.encode(), prepare=True)
