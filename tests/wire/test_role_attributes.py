"""Tests the attributes of roles and the privileges on the database against PostgreSQL 15."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tailgate.gateway.protocol.limits import AUTHENTICATION_BYTES_MAX
from tailgate.lake.catalog.codec import decode_catalog, encode_catalog
from tailgate.lake.errors import OutOfMemory
from tests.tables.world import World
from tests.wire.live import Live
from tests.wire.statements import Statements
from tests.wire.test_membership import Both

DATABASE = "attributes"
ROLES = ("ann", "bob", "boss", "maker", "made", "other", "renamed", "group_one", "group_two")
ATTRIBUTES = (
    "SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls, rolconnlimit, "
    "rolvaliduntil::text FROM pg_roles WHERE rolname !~ '^(pg_|postgres|tailgate)' ORDER BY rolname"
)
MEMBERS = (
    "SELECT r.rolname, m.rolname, admin_option FROM pg_auth_members a JOIN pg_roles r ON r.oid = a.roleid "
    "JOIN pg_roles m ON m.oid = a.member WHERE r.rolname !~ '^pg_' ORDER BY 1, 2"
)
OWNER = "(SELECT rolname::text FROM pg_roles WHERE oid = 10)"
ACL = f"SELECT replace(datacl::text, {OWNER}, 'operator') FROM pg_database WHERE datname = '{DATABASE}'"
HAS = (
    "SELECT r, p, has_database_privilege(r, current_database(), p) FROM (VALUES ('ann'), ('bob'), ('boss')) AS r (r), "
    "(VALUES ('CREATE'), ('TEMP'), ('temporary'), ('CONNECT'), ('CONNECT WITH GRANT OPTION')) AS p (p) ORDER BY r, p"
)


@pytest.fixture
def both(live: Live, statements: Statements, postgres: str) -> Iterator[Both]:
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {DATABASE}")
    both = Both(make_conninfo(postgres, dbname=DATABASE), make_conninfo(live.dsn, dbname=DATABASE))
    both("", "CREATE ROLE ann LOGIN", "CREATE ROLE bob LOGIN", "CREATE ROLE boss LOGIN SUPERUSER")
    yield both
    both.close()
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
        admin.execute(f"DROP ROLE IF EXISTS {', '.join(ROLES)}")


def sign_in(dsn: str, user: str, password: str | None = None) -> str:
    """Returns the error of a connection, empty if it begins."""
    try:
        psycopg.connect(make_conninfo(dsn, user=user, password=password)).close()
    except psycopg.OperationalError as error:
        return str(error).partition("FATAL:  ")[2].strip()
    return ""


def test_attributes(both: Both, live: Live) -> None:
    both(
        "",
        "CREATE ROLE made WITH CREATEROLE CREATEDB REPLICATION BYPASSRLS NOLOGIN INHERIT CONNECTION LIMIT 3",
        "CREATE USER other VALID UNTIL '2031-02-03 04:05:06+01' NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS",
        ATTRIBUTES,
        "ALTER ROLE made NOCREATEROLE NOCREATEDB NOREPLICATION NOBYPASSRLS CONNECTION LIMIT -1",
        "ALTER ROLE other VALID UNTIL 'infinity' CREATEDB",
        ATTRIBUTES,
        "SET timezone = 'Asia/Tokyo'",
        "ALTER ROLE other VALID UNTIL '2031-02-03'",
        "SET timezone = 'UTC'",
        ATTRIBUTES,
        "SELECT usename, usecreatedb, usesuper, userepl, usebypassrls, valuntil::text FROM pg_user WHERE usename = 'other'",
        "SELECT usename, usecreatedb, usesuper, userepl, usebypassrls, valuntil::text FROM pg_shadow WHERE usename = 'other'",
        "SELECT rolname, rolconnlimit, rolvaliduntil::text FROM pg_authid WHERE rolname = 'other'",
        "ALTER ROLE other VALID UNTIL 'tomorrow or so'",
        "ALTER ROLE other VALID UNTIL",
        "ALTER ROLE other CONNECTION LIMIT -2",
        "ALTER ROLE other CONNECTION LIMIT x",
        "ALTER ROLE other CONNECTION LIMIT 2147483648",
        "ALTER ROLE other CONNECTION LIMIT -2147483648",
        "ALTER ROLE other CONNECTION LIMIT 2147483647 VALID UNTIL '-infinity'",
        ATTRIBUTES,
        "CREATE ROLE x CREATEDB NOCREATEDB",
        "CREATE ROLE x CONNECTION LIMIT 1 CONNECTION LIMIT 2",
        "CREATE ROLE x VALID UNTIL 'infinity' VALID UNTIL 'infinity'",
        "ALTER ROLE other IN ROLE ann",
    )
    catalog = live.model.lake.catalog()
    assert decode_catalog(encode_catalog(catalog)) == catalog


def test_memberships_of_a_new_role(both: Both) -> None:
    both(
        "",
        "CREATE ROLE group_one",
        "CREATE ROLE group_two IN ROLE group_one ROLE ann ADMIN bob",
        "CREATE USER made IN GROUP group_one, group_two",
        MEMBERS,
        "CREATE ROLE x IN ROLE nobody",
        "CREATE ROLE x IN ROLE group_one ROLE group_one",
        "CREATE ROLE x IN ROLE group_one IN ROLE group_two",
        "SELECT count(*) FROM pg_roles WHERE rolname = 'x'",
    )


def test_names(both: Both) -> None:
    both(
        "",
        "CREATE ROLE made",
        "GRANT made TO ann",
        "ALTER ROLE made RENAME TO renamed",
        MEMBERS,
        "ALTER USER nobody RENAME TO x",
        "ALTER ROLE renamed RENAME TO ann",
        "ALTER ROLE renamed RENAME TO pg_x",
        "ALTER ROLE renamed RENAME TO public",
        "ALTER ROLE renamed RENAME TO made",
    )
    both("boss", "ALTER ROLE boss RENAME TO x", "ALTER ROLE made RENAME TO renamed", "DROP ROLE boss")
    both("ann", "ALTER ROLE renamed RENAME TO made")


def test_createrole(both: Both) -> None:
    both("", "CREATE ROLE maker LOGIN CREATEROLE")
    refused = (
        "CREATE ROLE x SUPERUSER",
        "CREATE ROLE x REPLICATION",
        "CREATE ROLE x BYPASSRLS",
        "ALTER ROLE boss LOGIN",
        "ALTER ROLE boss RENAME TO x",
        "ALTER ROLE boss SET timezone = 'UTC'",
        "ALTER ROLE ann SUPERUSER",
        "ALTER ROLE ann NOSUPERUSER",
        "ALTER ROLE ann REPLICATION",
        "ALTER ROLE ann BYPASSRLS",
        "DROP ROLE boss",
        "GRANT boss TO ann",
        "CREATE ROLE x IN ROLE boss",
        "COMMENT ON ROLE boss IS 'x'",
        "ALTER ROLE ALL SET timezone = 'UTC'",
    )
    both(
        "maker",
        "CREATE ROLE made LOGIN CREATEDB CREATEROLE CONNECTION LIMIT 2 VALID UNTIL '2040-01-01 00:00+00' IN ROLE ann",
        "ALTER ROLE made NOCREATEROLE",
        "ALTER ROLE made PASSWORD 'x'",
        "ALTER ROLE made PASSWORD NULL",
        "ALTER ROLE made SET timezone = 'UTC'",
        "COMMENT ON ROLE made IS 'x'",
        "GRANT bob TO made",
        MEMBERS,
        "REVOKE bob FROM made",
        "ALTER ROLE made RENAME TO renamed",
        *refused,
        ATTRIBUTES,
        "DROP ROLE renamed",
        "DROP ROLE maker",
    )
    both(
        "ann",
        *refused,
        "CREATE ROLE x",
        "ALTER ROLE bob LOGIN",
        "ALTER ROLE bob PASSWORD 'x'",
        "ALTER ROLE ann VALID UNTIL 'infinity'",
        "ALTER ROLE ann CREATEROLE",
        "ALTER ROLE ann CONNECTION LIMIT 5",
        "ALTER ROLE ann PASSWORD NULL",
        "ALTER ROLE bob SET timezone = 'UTC'",
        "ALTER ROLE ann SET timezone = 'UTC'",
        "COMMENT ON ROLE ann IS 'x'",
        "DROP ROLE bob",
        "GRANT bob TO ann",
        "ALTER ROLE bob RENAME TO x",
    )
    both("", "GRANT maker TO ann")
    both("ann", "CREATE ROLE x", "SET ROLE maker", "CREATE ROLE other", "DROP ROLE other")


def test_privileges_on_the_database(both: Both) -> None:
    both(
        "",
        ACL,
        HAS,
        f"GRANT CREATE ON DATABASE {DATABASE} TO ann WITH GRANT OPTION",
        f"REVOKE TEMP ON DATABASE {DATABASE} FROM PUBLIC",
        ACL,
        HAS,
        f"GRANT ALL ON DATABASE {DATABASE} TO bob",
        f"REVOKE ALL PRIVILEGES ON DATABASE {DATABASE} FROM bob",
        f"GRANT CONNECT, TEMPORARY ON DATABASE {DATABASE} TO bob",
        f"GRANT SELECT ON DATABASE {DATABASE} TO bob",
        "GRANT CONNECT ON DATABASE nowhere TO bob",
        "GRANT CONNECT ON SCHEMA public TO bob",
        f"GRANT CONNECT ON DATABASE {DATABASE} TO nobody",
        "SELECT has_database_privilege('nowhere', 'CONNECT')",
        "SELECT has_database_privilege(123456, 'CONNECT')",
        "SELECT has_database_privilege(current_database(), 'SELECT')",
        "SELECT has_database_privilege('ann', 'template1', 'CONNECT'), has_database_privilege('ann', 'template1', 'TEMP')",
        "SELECT has_database_privilege('ann', oid, 'CREATE') FROM pg_database WHERE datname = current_database()",
        ACL,
        HAS,
    )
    both(
        "ann",
        "CREATE SCHEMA of_ann",
        "CREATE SCHEMA AUTHORIZATION bob",
        "ALTER SCHEMA of_ann OWNER TO bob",
        "ALTER SCHEMA of_ann RENAME TO of_her",
        "CREATE TABLE of_her.t (id int PRIMARY KEY)",
        "CREATE TEMP TABLE x (id int)",
        "CREATE TEMP SEQUENCE x",
        "CREATE TEMP TABLE x AS SELECT 1 AS id",
        f"GRANT CREATE ON DATABASE {DATABASE} TO bob",
        f"GRANT CONNECT ON DATABASE {DATABASE} TO bob",
    )
    both("bob", "CREATE SCHEMA of_bob", "CREATE TEMP TABLE x (id int)", f"GRANT CREATE ON DATABASE {DATABASE} TO ann")
    both(
        "",
        ACL,
        f"REVOKE CREATE ON DATABASE {DATABASE} FROM ann",
        f"REVOKE CREATE ON DATABASE {DATABASE} FROM ann CASCADE",
        ACL,
        "DROP SCHEMA of_her CASCADE",
        "DROP SCHEMA of_bob CASCADE",
        "DROP OWNED BY bob",
        ACL,
        "DROP ROLE bob",
    )
    both("ann", "CREATE SCHEMA of_ann")


def test_connect(both: Both, live: Live, postgres: str) -> None:
    ours, theirs = (make_conninfo(dsn, dbname=DATABASE) for dsn in (live.dsn, postgres))
    both("", f"REVOKE CONNECT ON DATABASE {DATABASE} FROM PUBLIC", f"GRANT CONNECT ON DATABASE {DATABASE} TO bob")
    for user in ("ann", "bob", "boss"):
        assert sign_in(ours, user) == sign_in(theirs, user)
    assert sign_in(ours, "ann") == f'permission denied for database "{DATABASE}"\nDETAIL:  User does not have CONNECT privilege.'


def test_a_password_ends(live: Live, statements: Statements) -> None:
    """A token, and a sign-in that needs no password, do not depend on it."""
    with psycopg.connect(live.dsn, autocommit=True) as operator:
        operator.execute("CREATE ROLE ann LOGIN PASSWORD 'x' VALID UNTIL '2001-01-01'")
        operator.execute("CREATE ROLE bob LOGIN VALID UNTIL '2001-01-01'")
        assert sign_in(live.dsn, "ann", "x") == 'password authentication failed for user "ann"'
        assert sign_in(live.dsn, "bob") == ""
        operator.execute("ALTER ROLE ann VALID UNTIL 'infinity'")
        assert sign_in(live.dsn, "ann", "x") == ""


@pytest.mark.parametrize("password", [None, "secret"])
def test_sessions_of_a_role_with_a_limit(live: Live, statements: Statements, password: str | None) -> None:
    """Runs statements of its sessions, also a first one that is longer than a message of the authentication may be."""
    text = "x" * (2 * AUTHENTICATION_BYTES_MAX)
    with psycopg.connect(live.dsn, autocommit=True) as operator:
        operator.execute("CREATE ROLE ann LOGIN CONNECTION LIMIT 1")
        if password is not None:
            operator.execute("ALTER ROLE ann PASSWORD 'secret'")
    for first in ("SELECT 'short'", f"SELECT '{text}'"):
        with psycopg.connect(make_conninfo(live.dsn, user="ann", password=password), autocommit=True) as connection:
            assert connection.execute(first.encode()).fetchone() == (first[8:-1],)
            assert connection.execute("SELECT 1").fetchone() == (1,)
        deadline = time.monotonic() + 10
        while live.gateway.sessions and time.monotonic() < deadline:
            time.sleep(0.01)


def test_an_error_while_sessions_are_counted_ends_the_sign_in(live: Live, statements: Statements, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(request: object) -> None:
        raise OutOfMemory("out of memory")

    with psycopg.connect(live.dsn, autocommit=True) as operator:
        operator.execute("CREATE ROLE ann LOGIN CONNECTION LIMIT 1")
        monkeypatch.setattr(live.gateway.peers, "ask", ask)
        assert sign_in(live.dsn, "ann") == "out of memory"
        assert live.gateway.internal_errors.rows() == []


def until_sign_in(dsn: str, role: str, expected: str) -> bool:
    """Returns whether signing in has this error, or '', within ten seconds: the gateway may not know the newest catalog yet."""
    deadline = time.monotonic() + 10
    while sign_in(dsn, role) != expected:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_the_limit_of_connections(tmp_path: Path) -> None:
    """The sessions on all gateways of the lake count."""
    world = World(tmp_path / "lake", gateways=2)
    try:
        first, second = (gateway.dsn for gateway in world.gateways)
        with psycopg.connect(first, autocommit=True) as operator:
            operator.execute("CREATE ROLE ann LOGIN CONNECTION LIMIT 2")
            operator.execute("CREATE ROLE boss LOGIN SUPERUSER CONNECTION LIMIT 0")
            connections = [psycopg.connect(make_conninfo(dsn, user="ann")) for dsn in (first, second)]
            for dsn in (first, second):
                assert until_sign_in(dsn, "ann", 'too many connections for role "ann"')
                assert sign_in(dsn, "boss") == ""
            connections.pop().close()
            assert until_sign_in(first, "ann", "")
            operator.execute("ALTER ROLE ann CONNECTION LIMIT 0")
            assert until_sign_in(second, "ann", 'too many connections for role "ann"')
            connections.pop().close()
    finally:
        world.close()
