"""Tests members of roles against PostgreSQL 15: privileges, visible objects, SET ROLE."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tailgate.lake.catalog.codec import decode_catalog, encode_catalog
from tests.wire.answers import answer
from tests.wire.live import ROWS, Live
from tests.wire.statements import Statements

ROLES = ("staff", "readers", "ann", "bob", "boss")


class Both:
    """Runs statements as a role on both servers and asserts equal answers."""

    def __init__(self, *dsns: str) -> None:
        self._dsns = dsns
        self._open: dict[str, list[psycopg.Connection]] = {}

    def __call__(self, who: str, *texts: str) -> list[object]:
        if who not in self._open:
            users = [make_conninfo(dsn, user=who) if who else dsn for dsn in self._dsns]
            self._open[who] = [psycopg.connect(dsn, autocommit=True) for dsn in users]
        answers: list[object] = []
        for text in texts:
            theirs, ours = (self._answer(connection, text) for connection in self._open[who])
            assert ours == theirs, f"{who}: {text}"
            answers.append(theirs)
        return answers

    @staticmethod
    def _answer(connection: psycopg.Connection, text: str) -> object:
        notices: list[tuple[str | None, str | None]] = []

        def tell(notice: psycopg.errors.Diagnostic) -> None:
            notices.append((notice.sqlstate, notice.message_primary))

        connection.add_notice_handler(tell)
        try:
            return [*answer(connection, text), notices]
        finally:
            connection.remove_notice_handler(tell)

    def close(self) -> None:
        for connections in self._open.values():
            for connection in connections:
                connection.close()


@pytest.fixture
def both(live: Live, statements: Statements, postgres: str) -> Iterator[Both]:
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("CREATE DATABASE membership")
    dsn = make_conninfo(postgres, dbname="membership")
    with psycopg.connect(dsn, autocommit=True) as theirs:
        theirs.execute("CREATE TABLE v (id bigint PRIMARY KEY, name text, amount double precision)")
        theirs.cursor().executemany("INSERT INTO v VALUES (%s, %s, %s)", ROWS)
    both = Both(dsn, live.dsn)
    both("", *(f"CREATE ROLE {role} LOGIN" for role in ROLES[:4]), "CREATE ROLE boss LOGIN SUPERUSER")
    yield both
    both.close()
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("DROP DATABASE membership WITH (FORCE)")
        admin.execute(f"DROP ROLE IF EXISTS {', '.join(ROLES)}")


NAMED = "('staff', 'readers', 'ann', 'bob', 'boss')"
MEMBERS = (
    "SELECT r.rolname, m.rolname, admin_option FROM pg_auth_members a JOIN pg_roles r ON r.oid = a.roleid "
    "JOIN pg_roles m ON m.oid = a.member WHERE r.rolname !~ '^pg_' ORDER BY 1, 2"
)
HAS = (
    "SELECT rolname, pg_has_role(rolname, 'USAGE'), pg_has_role(rolname, 'member'), pg_has_role(rolname, 'MEMBER WITH ADMIN OPTION'), "
    f"pg_has_role('ann', rolname, 'USAGE') FROM pg_roles WHERE rolname IN {NAMED} ORDER BY 1"
)
SEEN = (
    MEMBERS,
    HAS,
    "SELECT has_table_privilege('v', 'SELECT'), has_table_privilege('bob', 'v', 'SELECT'), has_table_privilege('ann', 'v', 'UPDATE')",
    "SELECT * FROM information_schema.applicable_roles WHERE role_name !~ '^pg_' ORDER BY 1, 2",
    "SELECT * FROM information_schema.administrable_role_authorizations ORDER BY 1, 2",
    f"SELECT * FROM information_schema.enabled_roles WHERE role_name IN {NAMED} ORDER BY 1",
    "SELECT groname, array_length(grolist, 1) FROM pg_group WHERE groname !~ '^pg_' ORDER BY 1",
)


def test_members_have_the_rights(both: Both) -> None:
    both("ann", "SELECT count(*) FROM v", *SEEN)
    both("", "GRANT SELECT ON v TO readers", "GRANT readers TO staff", "GRANT staff TO ann WITH ADMIN OPTION", *SEEN)
    assert both("ann", "SELECT count(*) FROM v")[0] == ["SELECT 1", [(4,)], []]
    both("ann", *SEEN)
    both("bob", "SELECT count(*) FROM v", *SEEN, "GRANT staff TO bob")
    both("ann", "GRANT readers TO bob", "GRANT staff TO bob", *SEEN)
    both("bob", "SELECT count(*) FROM v", "SELECT name FROM v WHERE id = 1", *SEEN)
    both("", "REVOKE readers FROM staff", *SEEN)
    both("ann", "SELECT count(*) FROM v")
    both("bob", "SELECT name FROM v WHERE id = 1", "SET ROLE staff", "SELECT count(*) FROM v")


def test_set_role(both: Both) -> None:
    both("", "GRANT SELECT ON v TO readers", "GRANT readers TO ann", "GRANT boss TO bob")
    user = "SELECT current_user, session_user"
    both("ann", "SET ROLE readers", user, "SELECT count(*) FROM v", "SET ROLE bob", "SET ROLE boss", user, "RESET ROLE", user)
    both("ann", "SET ROLE 'nobody'", "SET ROLE NONE", user, "BEGIN", "SET LOCAL ROLE readers", user, "COMMIT", user)
    both("bob", "SELECT count(*) FROM v", "GRANT readers TO bob", "SET ROLE boss", "SELECT count(*) FROM v", "GRANT readers TO bob")
    both("boss", "SET ROLE ann", user, "SET ROLE bob", user)
    both("", "REVOKE readers FROM ann")
    both("ann", "SET ROLE readers")


def test_session_authorization(both: Both) -> None:
    user = "SELECT current_user, session_user"
    state = (user, "SHOW session_authorization", "SHOW role", "SHOW is_superuser")
    both("", "GRANT readers TO ann", "GRANT SELECT ON v TO readers")
    both("boss", "SET SESSION AUTHORIZATION ann", *state, "SELECT count(*) FROM v", "SET ROLE readers", *state, "SET ROLE boss")
    both("boss", "SET SESSION AUTHORIZATION 'bob'", *state, "SELECT count(*) FROM v", "SET SESSION AUTHORIZATION nobody", user)
    both("boss", "RESET SESSION AUTHORIZATION", *state, "SET ROLE bob", *state, "SET SESSION AUTHORIZATION DEFAULT", *state)
    both("boss", "BEGIN", "SET LOCAL SESSION AUTHORIZATION ann", *state, "COMMIT", *state)
    both("boss", "BEGIN", "SET SESSION SESSION AUTHORIZATION ann", *state, "ROLLBACK", *state)
    both("boss", "SET SESSION AUTHORIZATION ann", "RESET ALL", *state, "SET ROLE readers", "RESET ALL", *state, "DISCARD ALL", *state)
    both("boss", "SET session_authorization = bob", *state, "SELECT set_config('session_authorization', 'ann', false)", *state)
    both("ann", "SET SESSION AUTHORIZATION bob", "SET SESSION AUTHORIZATION ann", "SET SESSION AUTHORIZATION nobody", *state)
    both("ann", "SELECT set_config('session_authorization', 'bob', false)", *state)
    both("ann", "SET ROLE readers", "SET SESSION AUTHORIZATION ann", *state)


def test_set_config_checks_the_role(both: Both) -> None:
    user = "SELECT current_user, session_user"
    both("", "GRANT readers TO ann")
    both("ann", "SELECT set_config('role', 'bob', false)", user, "SELECT set_config('role', 'nobody', false)", user)
    both("ann", "SELECT set_config('role', 'readers', false)", user, "SELECT set_config('role', 'none', false)", user)
    both("", "CREATE ROLE gone", "GRANT gone TO ann", "DROP ROLE gone")
    both("ann", "SET ROLE gone", user)


def test_prepared_statements_and_cursors(both: Both) -> None:
    prepared = "SELECT name, statement, parameter_types::text, from_sql, now() >= prepare_time FROM pg_prepared_statements ORDER BY name"
    both("", prepared, "PREPARE one (int, text[]) AS SELECT $1, $2", "PREPARE  two AS SELECT id FROM v WHERE id = $1", prepared)
    both("", "DEALLOCATE one", prepared, "DEALLOCATE ALL", prepared)
    cursors = "SELECT name, statement, is_holdable, is_binary, is_scrollable, creation_time <= clock_timestamp() FROM pg_cursors ORDER BY 1"
    both("", cursors, "BEGIN", "DECLARE a CURSOR FOR SELECT id FROM v", "DECLARE b BINARY NO SCROLL CURSOR FOR SELECT 1", cursors)
    both("", "DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT id FROM v", "FETCH 1 FROM a", cursors, "CLOSE a", cursors, "COMMIT", cursors)
    both("", "CLOSE ALL", cursors)


def test_grants_of_roles(both: Both) -> None:
    both(
        "",
        "GRANT readers TO staff, ann",
        "GRANT readers TO ann",
        "GRANT readers TO ann WITH ADMIN OPTION",
        "GRANT readers TO ann",
        MEMBERS,
        "GRANT staff TO readers",
        "GRANT staff TO staff",
        "REVOKE ADMIN OPTION FOR readers FROM ann",
        MEMBERS,
        "REVOKE readers, staff FROM ann, bob",
        MEMBERS,
        "GRANT nobody TO ann",
        "GRANT readers TO nobody",
        "GRANT readers TO public",
        'GRANT "readers" TO GROUP bob',
        "SELECT pg_has_role('bob', 'readers', 'nonsense')",
        "SELECT pg_has_role('bob', 'nobody', 'USAGE')",
        "DROP ROLE readers",
        MEMBERS,
    )
    both("bob", "GRANT boss TO bob", "GRANT staff TO bob", "GRANT bob TO ann", "REVOKE staff FROM ann")


def test_members_of_a_role_own_its_objects(both: Both, live: Live) -> None:
    both("", "GRANT CREATE ON SCHEMA public TO staff", "GRANT SELECT ON v TO staff", "GRANT staff TO ann")
    both("ann", "CREATE VIEW of_ann AS SELECT id FROM v", "SET ROLE staff", "CREATE VIEW of_staff AS SELECT id FROM v", "RESET ROLE")
    both("bob", "SELECT count(*) FROM of_staff")
    both("ann", "SELECT count(*) FROM of_staff", "GRANT SELECT ON of_staff TO bob", "DROP VIEW of_staff")
    both("", "SET ROLE staff", "DROP VIEW of_ann", "RESET ROLE", "DROP VIEW of_ann", "DROP ROLE staff")


def test_they_are_there_after_a_restart(both: Both, live: Live) -> None:
    both("", "GRANT readers TO staff", "GRANT staff TO ann WITH ADMIN OPTION")
    catalog = live.model.lake.catalog()
    ann, readers, staff = (catalog.role(name) for name in ("ann", "readers", "staff"))
    assert dict(ann.member_of) == {staff.id: True}
    assert catalog.acting(ann.id) == {ann.id, staff.id, readers.id}
    assert decode_catalog(encode_catalog(catalog)).role("ann") == ann


@pytest.mark.parametrize("text", ["GRANT pg_read_all_data TO ann", "GRANT readers TO ann GRANTED BY bob"])
def test_what_is_refused(live: Live, statements: Statements, text: str) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        for role in ("readers", "ann", "bob"):
            connection.execute(f"CREATE ROLE {role}".encode())
        assert answer(connection, text)[0] == "0A000"
