"""Tests roles: who may sign in, and the privileges on every path to rows or to the catalog."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import asyncpg
import psycopg
import psycopg2
import pytest
from psycopg import errors

from tailgate.lake.catalog.codec import decode_catalog, encode_catalog
from tailgate.lake.catalog.roles import OPERATOR
from tailgate.lake.passwords import parse, verifier
from tests.wire.live import Live
from tests.wire.statements import Statements

PASSWORD = "s3cret, ünusual\u00a0"


@pytest.fixture
def operator(live: Live, statements: Statements) -> Iterator[psycopg.Connection]:
    """Connects as the superuser, with two more roles: ann may read v, bob has no privileges."""
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        connection.execute(f"create role ann login password '{PASSWORD}'")
        connection.execute("create role bob login")
        connection.execute("grant select on v to ann")
        yield connection


def signed_in(live: Live, user: str, password: str | None = None) -> psycopg.Connection:
    return psycopg.connect(host=live.host, port=live.port, user=user, dbname="shop", password=password, autocommit=True)


def test_without_roles_this_machine_is_trusted(live: Live) -> None:
    with signed_in(live, "anybody") as connection:
        assert connection.execute("show is_superuser").fetchone() == ("on",)


def test_sign_in(live: Live, operator: psycopg.Connection) -> None:
    with signed_in(live, "ann", PASSWORD) as connection:
        assert connection.execute("select count(*) from v").fetchone() == (4,)
        assert connection.execute("show is_superuser").fetchone() == ("off",)
        assert connection.pgconn.used_password
    psycopg2.connect(host=live.host, port=live.port, user="ann", dbname="shop", password=PASSWORD).close()
    with signed_in(live, "tailgate"):  # the owner of the machine is not locked out
        pass


def test_asyncpg_signs_in(live: Live, operator: psycopg.Connection) -> None:
    async def ask() -> int:
        connection = await asyncpg.connect(host=live.host, port=live.port, user="ann", database="shop", password=PASSWORD)
        try:
            return await connection.fetchval("select count(*) from v")
        finally:
            await connection.close()

    assert live.call(ask()) == 4


@pytest.mark.parametrize(("user", "password"), [("ann", "wrong"), ("ann", ""), ("nobody", "x"), ("public", "x")])
def test_wrong_passwords(live: Live, operator: psycopg.Connection, user: str, password: str) -> None:
    """The error and the delay do not show whether the role exists."""
    start = time.monotonic()
    with pytest.raises(psycopg.OperationalError) as raised:
        signed_in(live, user, password or "none")
    assert f'password authentication failed for user "{user}"' in str(raised.value)
    assert time.monotonic() - start >= 0.2


def test_a_role_that_may_not_log_in(live: Live, operator: psycopg.Connection) -> None:
    operator.execute("create role group_of_people password 'x'")
    with pytest.raises(psycopg.OperationalError, match='role "group_of_people" is not permitted to log in'):
        signed_in(live, "group_of_people", "x")


def test_passwords_are_kept_as_verifiers(
    live: Live, operator: psycopg.Connection, statements: Statements, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    operator.execute("alter role ann with encrypted password 'another one'; select 1")
    with pytest.raises(psycopg.OperationalError):
        signed_in(live, "ann", PASSWORD)
    signed_in(live, "ann", "another one").close()
    role = live.model.lake.catalog().role("ann")
    assert role.verifier is not None
    assert parse(role.verifier) is not None
    assert not any("another" in sql or "s3cret" in sql for sql, _ in statements.seen)
    for path in live.model.lake.path.rglob("*"):
        assert not path.is_file() or b"another one" not in path.read_bytes(), path
    assert "another" not in caplog.text
    # an existing verifier is stored unchanged
    operator.execute(f"alter role ann password '{verifier('elsewhere')}'")
    signed_in(live, "ann", "elsewhere").close()
    operator.execute("alter role ann password null")
    signed_in(live, "ann").close()


READING = [
    "select count(*) from v",
    "select id from v where id = 1",
    "select x.n from (select id as n from v) as x",
    "with a as (select * from v) select * from a",
    "select a.id from (values (1)) as a (id) join v on v.id = a.id",
    "tail v",
    "tail (select name from v)",
    "subscribe to v",
    "copy (select * from v) to stdout",
    "copy v to stdout",
    "copy (tail v) to stdout",
    "explain select * from v",
    "explain materialized view v",
    "begin; declare c cursor for select * from v; fetch 1 c",
    "begin; declare c cursor for tail v; fetch 1 c",
    "prepare p as select * from v; execute p",
    "select count(*) from v as of (select 1)",
]


@pytest.mark.parametrize("statement", READING)
def test_reading_needs_select(live: Live, operator: psycopg.Connection, statement: str) -> None:
    if "as of" in statement:
        statement = f"select count(*) from v as of {live.serving.progress.time}"
    with signed_in(live, "bob") as connection:
        result = connection.pgconn.exec_(statement.encode())
        assert result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"42501", statement
        assert result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY) == b"permission denied for materialized view v"


def test_errors_are_shown_to_roles_with_select(live: Live, operator: psycopg.Connection) -> None:
    live.model.tick({live.v.errors: [(("22P02", 'invalid input syntax for type integer: "secret"'), 1)]})
    live.tick()
    expected = [("v", "22P02", 'invalid input syntax for type integer: "secret"', 1)]
    with signed_in(live, "ann", PASSWORD) as ann:
        assert ann.execute("show errors").fetchall() == expected
        assert operator.execute("show errors").fetchall() == expected
        operator.execute("revoke select on v from ann")
        assert ann.execute("show errors").fetchall() == []
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied for materialized view v"):
            ann.execute("show errors from v")


def test_ready_bytes_are_not_for_everybody(live: Live, operator: psycopg.Connection) -> None:
    """Privileges are checked on all three paths that return cached results."""
    statement = "select id, name from v where id = 1"
    with (
        signed_in(live, "ann", PASSWORD) as ann,
        signed_in(live, "bob") as bob,
        psycopg.connect(live.dsn + " user=bob", autocommit=True, prepare_threshold=0) as prepared,
    ):
        live.tick([((n, "x", 0.0), 1) for n in range(100, 110)])
        for n in range(60):
            ann.pgconn.exec_(f"select id, name from v where id = {n}".encode())
            ann.execute("select id, name from v where id = %s", (n,))
        for _ in range(3):
            assert ann.pgconn.exec_(statement.encode()).ntuples == 1
            assert ann.pgconn.exec_(b"select count(*) from v").ntuples == 1
            for text in (statement, "select count(*) from v"):
                assert bob.pgconn.exec_(text.encode()).error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"42501"
                with pytest.raises(errors.InsufficientPrivilege):
                    prepared.execute(text)
        assert live.gateway.answers.lookups._templates
        assert live.gateway.answers.lookups._indexes
        operator.execute("revoke select on v from ann")
        assert ann.pgconn.exec_(statement.encode()).error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"42501"
        operator.execute("grant select on v to public")
        assert bob.pgconn.exec_(statement.encode()).ntuples == 1


def test_sessions_begin_with_stored_settings(live: Live, operator: psycopg.Connection) -> None:
    """Settings of the role precede those of the database, and those of the startup message precede both."""
    shown = "show timezone; show statement_timeout; show log_statement; show app.tenant"

    def values(user: str, options: str = "") -> list[str]:
        with psycopg.connect(f"{live.dsn} user={user} password='{PASSWORD}' options='{options}'", autocommit=True) as connection:
            cursor = connection.execute(shown)
            rows = []
            while True:
                rows.append(str((cursor.fetchone() or ("",))[0]))
                if not cursor.nextset():
                    return rows

    operator.execute("alter database shop set timezone = 'Asia/Tokyo'")
    operator.execute("alter database shop set app.tenant = 'all'")
    operator.execute("alter role ann set timezone to 'Europe/Berlin'; alter role ann set log_statement = 'ddl'")
    assert values("ann") == ["Europe/Berlin", "0", "ddl", "all"]
    assert values("bob", "-c statement_timeout=5s") == ["Asia/Tokyo", "5s", "none", "all"]
    assert values("ann", "-c timezone=UTC") == ["UTC", "0", "ddl", "all"]
    with signed_in(live, "ann", PASSWORD) as ann:
        assert ann.info.parameter_status("TimeZone") == "Europe/Berlin"
        ann.execute("set timezone = 'UTC'; reset timezone")
        ann.execute("alter role ann set search_path = 'nowhere'; alter role ann set statement_timeout = '70s'")
        assert ann.execute("show timezone").fetchone() == ("Europe/Berlin",)
        with pytest.raises(errors.InsufficientPrivilege, match='permission denied to set parameter "log_statement"'):
            ann.execute("alter role ann reset all")
        settings = "select setdatabase > 0, setrole > 0, setconfig from pg_db_role_setting order by 1"
        assert ann.execute(settings).fetchall() == [
            (False, True, ["TimeZone=Europe/Berlin", "log_statement=ddl", "search_path=nowhere", "statement_timeout=70s"]),
            (True, False, ["TimeZone=Asia/Tokyo", "app.tenant=all"]),
        ]
    operator.execute("alter role ann reset all; alter role ann set role = 'bob'")  # ann is no member: a warning
    with signed_in(live, "ann", PASSWORD) as ann:
        assert ann.execute("select current_user").fetchone() == ("ann",)
    operator.execute("alter role all set timezone = 'Asia/Kabul'; alter role all set statement_timeout = '80s'")
    operator.execute("alter role ann in database shop set timezone = 'Asia/Seoul'; alter role ann set timezone = 'UTC'")
    assert values("ann") == ["Asia/Seoul", "80s", "none", "all"]
    assert values("bob") == ["Asia/Tokyo", "80s", "none", "all"]
    settings = "select setdatabase > 0, setrole > 0, setconfig from pg_db_role_setting order by 1, 2"
    assert operator.execute(settings).fetchall() == [
        (False, False, ["TimeZone=Asia/Kabul", "statement_timeout=80s"]),
        (False, True, ["role=bob", "TimeZone=UTC"]),
        (True, False, ["TimeZone=Asia/Tokyo", "app.tenant=all"]),
        (True, True, ["TimeZone=Asia/Seoul"]),
    ]
    operator.execute("alter role ann in database shop set log_statement = 'ddl'")
    with signed_in(live, "ann", PASSWORD) as ann:
        ann.execute("alter role ann reset all")
        with pytest.raises(errors.InsufficientPrivilege, match='permission denied to set parameter "log_statement"'):
            ann.execute("alter role ann in database shop reset all")
    operator.execute("alter role all reset all; alter role ann in database shop reset all")
    operator.execute("alter role ann reset all; alter database shop reset timezone; comment on database shop is 'the shop'")
    assert values("ann") == ["UTC", "0", "none", "all"]
    comment = "select shobj_description(oid, 'pg_database'), shobj_description(0, 'pg_authid') from pg_database where datname = 'shop'"
    assert operator.execute(comment).fetchone() == ("the shop", None)
    assert decode_catalog(encode_catalog(live.model.lake.catalog())) == live.model.lake.catalog()


def test_settings_of_a_role_need_roles(live: Live, statements: Statements) -> None:
    """A lake without roles stays one: a stored setting of the built-in role would end that."""
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        for statement in ("alter role tailgate set timezone = 'UTC'", "comment on role tailgate is 'x'"):
            with pytest.raises(errors.ObjectNotInPrerequisiteState):
                connection.execute(statement)
        connection.execute("alter database shop set timezone = 'Asia/Tokyo'")
        assert not live.model.lake.catalog().has_roles


CHANGING = [
    ("create view w as select 1 as a", "permission denied for schema public"),
    ("create materialized view w as select id from v", "permission denied for schema public"),
    ("drop materialized view v", "must be owner of materialized view v"),
    ("drop materialized view if exists v cascade", "must be owner of materialized view v"),
    ("create role eve superuser login", "must be superuser to create superusers"),
    ("alter role bob superuser", "must be superuser to alter superuser roles or change superuser attribute"),
    ("alter role ann password 'x'", "permission denied"),
    ("alter role bob login password 'x'", "permission denied"),
    ("drop role ann", "permission denied to drop role"),
    ("alter role ann set timezone = 'UTC'", "permission denied"),
    ("alter role ann reset all", "permission denied"),
    ("alter role bob set log_statement = 'all'", 'permission denied to set parameter "log_statement"'),
    ("alter role bob set role = 'tailgate'", 'permission denied to set role "tailgate"'),
    ("alter database shop set timezone = 'UTC'", "must be owner of database shop"),
    ("alter role all set timezone = 'UTC'", "permission denied to alter settings globally"),
    ("alter role all in database shop set timezone = 'UTC'", "must be owner of database shop"),
    ("alter role ann in database shop set timezone = 'UTC'", "permission denied"),
    ("comment on database shop is 'x'", "must be owner of database shop"),
    ("comment on role ann is 'x'", "must have CREATEROLE privilege"),
    ("set role ann", 'permission denied to set role "ann"'),
    ("set role tailgate", 'permission denied to set role "tailgate"'),
]


@pytest.mark.parametrize(("statement", "message"), CHANGING)
def test_changing_needs_more(live: Live, operator: psycopg.Connection, statements: Statements, statement: str, message: str) -> None:
    count = len(statements.seen)
    with signed_in(live, "bob") as connection:
        with pytest.raises(errors.InsufficientPrivilege) as raised:
            connection.execute(statement)
        assert raised.value.diag.message_primary == message
    assert len(statements.seen) == count


def test_grants_need_grant_option(live: Live, operator: psycopg.Connection) -> None:
    """The engine refuses them, with PostgreSQL's messages, which call every relation a table.

    A role that has a privilege on the object, here USAGE through PUBLIC, gets a warning.
    """
    before = live.model.lake.catalog().access
    warnings: list[tuple[str | None, str | None]] = []
    with signed_in(live, "bob") as bob:
        bob.add_notice_handler(lambda d: warnings.append((d.sqlstate, d.message_primary)))
        for statement in ("grant select on v to bob", "revoke all on v from ann", "grant all on all tables in schema public to bob"):
            with pytest.raises(errors.InsufficientPrivilege, match="permission denied for table v"):
                bob.execute(statement)
        bob.execute("grant create on schema public to bob")
        bob.execute("revoke create on schema public from ann")
        assert warnings == [
            ("01007", 'no privileges were granted for "public"'),
            ("01006", 'no privileges could be revoked for "public"'),
        ]
        assert live.model.lake.catalog().access == before
        operator.execute("revoke usage on schema public from public")
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied for schema public"):
            bob.execute("grant create on schema public to bob")


@pytest.mark.parametrize("how", ["select set_config('role', 'tailgate', false)", "options"])
def test_no_way_around_set_role(live: Live, operator: psycopg.Connection, how: str) -> None:
    def rows(connection: psycopg.Connection) -> object:
        return connection.execute("select count(*) from v").fetchone()

    if how == "options":
        with pytest.raises(psycopg.OperationalError, match='permission denied to set role "tailgate"'):
            psycopg.connect(live.dsn + " user=bob options='-c role=tailgate'")
        return
    with signed_in(live, "bob") as connection:
        with pytest.raises(errors.InsufficientPrivilege, match='permission denied to set role "tailgate"'):
            connection.execute(how)
        with pytest.raises(errors.InsufficientPrivilege):
            rows(connection)


def test_owners(live: Live, operator: psycopg.Connection) -> None:
    """The creator of an object owns it. Readers of a view need no privilege on the relations that it reads."""
    operator.execute("grant create on schema public to ann")
    operator.execute("grant create on schema public to bob")
    with signed_in(live, "ann", PASSWORD) as ann, signed_in(live, "bob") as bob:
        with pytest.raises(errors.InsufficientPrivilege):
            bob.execute("create materialized view w as select id from v")
        ann.execute("create materialized view w as select id from v")
        assert live.model.lake.catalog().relation("w").owner == live.model.lake.catalog().role("ann").id
        with pytest.raises(errors.InsufficientPrivilege):
            bob.execute("select * from w")
        ann.execute("grant select on w to bob")
        assert bob.execute("select * from w").fetchall() == []
        with pytest.raises(errors.DependentObjectsStillExist) as raised:
            operator.execute("drop role ann")
        assert raised.value.diag.message_detail == (
            "privileges for schema public\nprivileges for materialized view v\nowner of materialized view w\nowner of view errors w_errors"
        )
        ann.execute("drop materialized view w")
        operator.execute("revoke select on v from ann; revoke all on schema public from ann")
        operator.execute("drop role ann")
        with pytest.raises(errors.InvalidAuthorizationSpecification):
            ann.execute("select 1 from v")


def test_one_s_own_password(live: Live, operator: psycopg.Connection) -> None:
    with signed_in(live, "ann", PASSWORD) as ann:
        ann.execute("alter role ann password 'mine'")
    signed_in(live, "ann", "mine").close()


def test_set_role(live: Live, operator: psycopg.Connection) -> None:
    """A superuser may SET ROLE to test another role's privileges."""
    operator.execute("set role bob")
    with pytest.raises(errors.InsufficientPrivilege):
        operator.execute("select * from v")
    operator.execute("reset role")
    assert operator.execute("select count(*) from v").fetchone() == (4,)
    with pytest.raises(errors.InvalidParameterValue, match='role "nobody" does not exist'):
        operator.execute("set role nobody")
    operator.execute("reset role")


def test_usage_of_the_schema(live: Live, operator: psycopg.Connection) -> None:
    operator.execute("revoke usage on schema public from public")
    with signed_in(live, "ann", PASSWORD) as ann:
        with pytest.raises(errors.UndefinedTable, match='relation "v" does not exist'):
            ann.execute("select * from v")  # the path omits schemas without USAGE
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied for schema public"):
            ann.execute("select * from public.v")
        operator.execute("grant usage on schema public to ann")
        assert len(ann.execute("select * from v").fetchall()) == 4


ERRORS: list[tuple[str, type[Exception] | str, str]] = [
    ("create role ann", "42710", 'role "ann" already exists'),
    ("create role public", "42939", 'role name "public" is reserved'),
    ("create role pg_me", "42939", 'role name "pg_me" is reserved'),
    ("drop role nobody", "42704", 'role "nobody" does not exist'),
    ("alter role nobody login", "42704", 'role "nobody" does not exist'),
    ("grant select on nothing to ann", "42P01", 'relation "nothing" does not exist'),
    ("grant create on v to ann", "0LP01", "invalid privilege type CREATE for relation"),
    ("grant select on schema public to ann", "0LP01", "invalid privilege type SELECT for schema"),
    ("create role x login nologin", "42601", "conflicting or redundant options"),
    ("create role x wizard", "42601", 'unrecognized role option "wizard"'),
    ("create role x members y", "42601", 'unrecognized role option "members"'),
    ("create role x noinherit", "0A000", "role option NOINHERIT is not supported"),
    ("grant pg_monitor to bob", "0A000", 'membership in role "pg_monitor" is not supported'),
    ("grant select on v to public with grant option", "0LP01", "grant options can only be granted to roles"),
]


@pytest.mark.parametrize(("statement", "sqlstate", "message"), ERRORS)
def test_messages(live: Live, operator: psycopg.Connection, statement: str, sqlstate: str, message: str) -> None:
    with pytest.raises(psycopg.Error) as raised:
        operator.execute(statement)
    assert (raised.value.sqlstate, raised.value.diag.message_primary) == (sqlstate, message)


def test_drop_if_exists(live: Live, operator: psycopg.Connection) -> None:
    notices: list[str | None] = []
    operator.add_notice_handler(lambda d: notices.append(d.message_primary))
    operator.execute("drop role if exists nobody, bob")
    assert notices == ['role "nobody" does not exist, skipping']
    assert live.model.lake.catalog().find_role("bob") is None


def test_roles_of_an_older_catalog(live: Live) -> None:
    """A lake from before roles were introduced has no roles."""
    data = encode_catalog(live.model.lake.catalog())
    for item in data["items"]:
        del item["owner"]
    catalog = decode_catalog(data)
    assert not catalog.has_roles
    assert {i.owner for i in catalog.items.values()} == {OPERATOR.id}


def test_only_superusers_set_the_log_of_statements(live: Live, operator: psycopg.Connection) -> None:
    operator.execute("set log_statement = 'all'")
    operator.execute("reset log_statement")
    with signed_in(live, "bob") as bob:
        for statement in (
            "set log_statement = 'all'",
            "set local log_statement to default",
            "select set_config('log_statement', 'all', false)",
            "reset log_statement",
        ):
            with pytest.raises(errors.InsufficientPrivilege, match='permission denied to set parameter "log_statement"'), bob.transaction():
                bob.execute(statement)
        with pytest.raises(errors.InsufficientPrivilege, match='permission denied to set parameter "log_min_duration_statement"'):
            bob.execute("set log_min_duration_statement = 0")
        bob.execute("reset all")
        assert bob.execute("show log_statement").fetchone() == ("none",)
    with pytest.raises(psycopg.OperationalError, match='permission denied to set parameter "log_statement"'):
        psycopg.connect(host=live.host, port=live.port, user="bob", dbname="shop", options="-c log_statement=all")
