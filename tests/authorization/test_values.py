"""Tests that status and activity show no rows to roles without SELECT, and secrets to nobody."""

from __future__ import annotations

import psycopg
import pytest

from tailgate.sql.lexer.secret_masking import mask_secrets
from tests.authorization.conftest import CANARY, refused
from tests.authorization.world import World

SECRET_TEXTS = [
    "ALTER ROLE helper PASSWORD 'unsaid'",
    "ALTER ROLE helper PASSWORD/**/'unsaid'",
    "ALTER ROLE helper PASSWORD--\n'unsaid'",
    "ALTER ROLE helper PASSWORD $$unsaid$$",
    "ALTER ROLE helper PASSWORD $x$unsaid$x$",
    "ALTER ROLE helper PASSWORD E'a\\'unsaid'",
    "ALTER ROLE helper PASSWORD U&'uns\\0061id unsaid'",
    "ALTER ROLE helper PASSWORD 'a'\n'unsaid'",
    "ALTER ROLE helper ENCRYPTED PASSWORD 'it''s unsaid'",
    "CREATE SECRET s AS 'unsaid'",
    "CREATE SECRET s AS/**/'unsaid'",
    "CREATE SECRET s AS $$unsaid$$",
    "CREATE SECRET IF NOT EXISTS s AS 'unsaid'",
    "ALTER SECRET s AS E'\\'unsaid'",
    "SELECT 1; CREATE SECRET s2 AS 'unsaid'",
    # the remaining statements fail
    "CREATE SECRET s AS unsaid",
    "ALTER ROLE helper PASSWORD unsaid",
    "ALTER ROLE helper PASSWORD 'unsaid",
    "ALTER ROLE helper 1x PASSWORD 'unsaid'",
    "ALTER ROLE helper PASSWORD $$unsaid",
    "ALTER ROLE helper /* PASSWORD 'unsaid'",
]


@pytest.mark.parametrize("text", SECRET_TEXTS)
def test_secrets_are_not_shown(text: str) -> None:
    assert "unsaid" not in mask_secrets(text)
    assert mask_secrets(text).split()[0] == text.split()[0]


def test_other_statements_are_shown_as_they_are() -> None:
    for text in ("SELECT 'x', 1 -- comment", "select $$x$$", "SELECT 'not ended", "/* hint */ select 1;", ""):
        assert mask_secrets(text) == text


def test_pg_stat_activity_shows_no_secret(shared: World) -> None:
    with shared.connect("tailgate") as one, shared.connect("tailgate") as other:
        pid = other.info.backend_pid
        for text in SECRET_TEXTS:
            other.pgconn.exec_(text.encode())
            (row,) = one.execute("SELECT * FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchall()
            assert "unsaid" not in str(row), text
            assert row[[c.name for c in one.execute("SELECT * FROM pg_stat_activity").description or ()].index("query")]


def test_pg_stat_activity_of_others_is_not_for_everybody(shared: World) -> None:
    with shared.connect("boss") as boss, shared.connect("low") as low:
        boss.execute(f"SELECT * FROM salaries WHERE n = {CANARY}")
        assert str(CANARY) in str(shared.sql("boss", "SELECT * FROM pg_stat_activity"))
        assert str(CANARY) not in str(low.execute("SELECT * FROM pg_stat_activity").fetchall())


STATUS = [
    "SHOW MATERIALIZED VIEWS FROM own",
    "SELECT * FROM tailgate.materialized_views",
    "SELECT * FROM tailgate.materialized_views v JOIN pg_class c ON c.relname = v.name",
    "SHOW SOURCES FROM own",
    "SELECT * FROM tailgate.sources",
    "SHOW SINKS FROM own",
    "SELECT * FROM tailgate.sinks",
]


def test_errors_of_views_sources_and_sinks_are_for_their_readers(world: World) -> None:
    """Regression: SHOW MATERIALIZED VIEWS quoted the value of a row that could not be cast."""
    world.sql("boss", "CREATE MATERIALIZED VIEW own.m AS SELECT n FROM salaries")
    world.sql("boss", "CREATE SOURCE own.s FROM KAFKA BROKER 'k' TOPIC 't' FORMAT TEXT")
    world.sql("boss", "CREATE SINK own.k FROM own.m INTO KAFKA BROKER 'k' TOPIC 't' KEY (n) NOT ENFORCED FORMAT JSON ENVELOPE UPSERT")
    error = f'invalid input syntax for type integer: "{CANARY}" (22P02)'
    world.errors["views"]["own.m"] = {"status": "failing", "error": error}
    world.errors["sources"]["own.s"] = {"status": "failed", "error": error, "last_error": error, "records": 5}
    world.errors["sinks"]["own.k"] = {"status": "failing", "error": error}
    for text in STATUS:
        assert str(CANARY) in str(world.sql("boss", text)), text
        assert str(CANARY) in str(world.sql("tailgate", text)), text
        answer = str(world.sql("low", text))
        assert str(CANARY) not in answer, text
        assert "fail" in answer, text  # every role may see the status
    world.sql("boss", "GRANT USAGE ON SCHEMA own TO low", "GRANT SELECT ON own.m TO low", "GRANT SELECT ON own.s TO low")
    for text in STATUS:
        assert str(CANARY) in str(world.sql("low", text)), text


def test_errors_and_dead_letters_are_relations_of_their_own(world: World) -> None:
    world.sql("boss", "CREATE MATERIALIZED VIEW m AS SELECT n FROM salaries")
    world.sql("boss", "CREATE SOURCE s FROM KAFKA BROKER 'k' TOPIC 't' FORMAT TEXT")
    for text in ("TABLE m_errors", "SHOW ERRORS FROM m", "TABLE s_dead_letters", "TAIL m_errors", "SUBSCRIBE s_dead_letters"):
        refused(world, "low", text)
    assert world.sql("low", "SHOW ERRORS") == []


def test_verifiers_of_passwords_are_for_superusers(shared: World) -> None:
    shared.sql("tailgate", "ALTER ROLE helper PASSWORD 'unsaid'")
    for text in (
        "SELECT * FROM pg_authid",
        "TABLE pg_shadow",
        "SELECT (SELECT rolpassword FROM pg_authid WHERE rolname = 'helper')",
        "SELECT * FROM pg_class WHERE EXISTS (SELECT FROM pg_catalog.pg_authid WHERE rolpassword LIKE 'SCRAM%')",
        "WITH a AS (SELECT * FROM pg_authid) SELECT * FROM a, pg_class",
        "PREPARE p AS SELECT * FROM pg_authid",
        "COPY (SELECT rolpassword FROM pg_authid) TO STDOUT",
    ):
        refused(shared, "low", text)
    for text in ("SELECT * FROM pg.made_roles, pg_class", "SELECT * FROM made_roles, pg_class"):
        refused(shared, "low", text, sqlstate="42P01")
    assert "SCRAM" not in str(shared.sql("low", "SELECT * FROM pg_roles")) + str(shared.sql("low", "SELECT * FROM pg_user"))


def test_the_system_catalog_is_only_read(shared: World) -> None:
    """Statements that only the catalog's parser accepts are queries or syntax errors."""
    for text in (
        "UPDATE pg_authid SET rolsuper = true FROM ONLY pg_class AS c WHERE (c.oid).x = 1",
        "WITH x AS (DELETE FROM pg_class RETURNING *) SELECT * FROM x",
        "CREATE TABLE pg_x AS SELECT * FROM pg_class",
        "DELETE FROM pg_class USING ONLY pg_type",
        "MERGE INTO pg_class USING pg_type ON true WHEN MATCHED THEN DELETE",
    ):
        with shared.connect("tailgate") as operator, pytest.raises(psycopg.Error) as raised:
            operator.execute(text.encode())
        assert raised.value.sqlstate[:2] in ("42", "0A"), (text, raised.value)
