"""Enum types in materialized views: the rows equal PostgreSQL's, and changes of a type fill only views that print its labels."""

from __future__ import annotations

import psycopg
import pytest

from tests.statements.conftest import World
from tests.statements.maintained import check_views, rows

MAINTAINED = {
    "filtered": "SELECT id, m FROM person WHERE m > 'sad'",
    "literal": "SELECT id, m = 'ok'::mood AS is_ok, coalesce(m, 'ok') AS m, CASE WHEN id = 1 THEN m ELSE 'sad' END AS k FROM person",
    "grouped": "SELECT m, count(*) AS n, min(id) AS id FROM person GROUP BY m",
    "extremes": "SELECT id % 2 AS i, min(m) AS a, max(m) AS b, count(DISTINCT m) AS d FROM person GROUP BY 1",
    "distinct_moods": "SELECT DISTINCT m FROM person",
    "joined": "SELECT a.id, b.id AS other FROM person a JOIN person b ON a.m = b.m",
    "best": "SELECT DISTINCT ON (m) m, id FROM person ORDER BY m, id",
    "top": "SELECT id, m FROM person ORDER BY m DESC NULLS LAST, id LIMIT 2",
    "ranked": "SELECT id, rank() OVER (ORDER BY m) AS r, lag(m) OVER (ORDER BY id) AS l FROM person",
    "printed": "SELECT id, m::text AS t, m || '!' AS s, upper(m::text) AS u FROM person",
    "parsed": "SELECT id, name::mood AS m FROM person WHERE name IN ('sad', 'ok')",
    "collected": "SELECT array_agg(m ORDER BY m) AS a FROM person",
    "united": "SELECT m FROM person UNION SELECT 'happy'",
    "arrays": "SELECT id, ms, ms[1] AS first, m = ANY (ms) AS has, ms::text AS t FROM person",
    "elements": "SELECT id, u.m FROM person, unnest(ms) AS u (m)",
    "ranges": "SELECT id, enum_range(m, 'happy') AS r, enum_first(m) AS f FROM person",
    "documents": "SELECT id, to_jsonb(m) AS j, jsonb_build_object('m', m) AS o FROM person",
}
PRINTING = {"printed", "parsed", "arrays", "ranges", "documents"}  # views whose plan contains the labels
SCHEMA = """
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s {0}', 'happy');
    CREATE TABLE person (id int PRIMARY KEY, name text, m mood, ms mood[]);
    INSERT INTO person VALUES
    (1, 'ok', 'happy', '{ok,sad}'), (2, 'sad', 'sad', NULL), (3, 'x', NULL, '{}'), (4, 'y', 'it''s {0}', '{happy}');
"""
CHANGES = (
    "INSERT INTO person VALUES (5, 'ok', 'ok', '{ok,NULL}'), (6, 'z', 'happy', '{sad}')",
    "UPDATE person SET m = 'ok' WHERE id = 1",
    "DELETE FROM person WHERE id = 2",
    "UPDATE person SET m = 'sad', name = 'sad' WHERE m IS NULL",
)


def test_views(sql: psycopg.Connection, postgres: str) -> None:
    check_views(sql, postgres, SCHEMA, MAINTAINED, CHANGES)
    # values of the type that are read back as text
    sql.execute("INSERT INTO person VALUES (9, 'nosuch', NULL, NULL)")
    sql.execute("CREATE MATERIALIZED VIEW wrong AS SELECT name::mood AS m FROM person WHERE id = 9")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation, match='invalid input value for enum mood: "nosuch"'):
        sql.execute("SELECT * FROM wrong")
    sql.execute("DROP MATERIALIZED VIEW wrong")


def test_new_and_renamed_labels(world: World, sql: psycopg.Connection, postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as theirs:
        theirs.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        for connection in (theirs, sql):
            connection.execute(SCHEMA)
        names = {name: query for name, query in MAINTAINED.items() if name in ("filtered", "grouped", "top", "printed", "documents")}
        for name, query in names.items():
            theirs.execute(f"CREATE VIEW {name} AS {query}")
            sql.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for statement in (
            "ALTER TYPE mood ADD VALUE 'awful' BEFORE 'sad'",
            "ALTER TYPE mood ADD VALUE 'fine' AFTER 'ok'",
            "INSERT INTO person VALUES (7, 'a', 'awful', NULL), (8, 'f', 'fine', '{fine,awful}')",
            "ALTER TYPE mood RENAME VALUE 'fine' TO 'good'",
            "INSERT INTO person VALUES (9, 'g', 'good', NULL)",
        ):
            fills = {item.name: item.numberings for item in world.lake.catalog().items.values() if item.kind == "materialized view"}
            theirs.execute(statement)
            sql.execute(statement)
            for name in names:
                assert rows(sql, f"SELECT * FROM {name}") == rows(theirs, f"SELECT * FROM {name}"), (name, statement)
            after = {item.name: item.numberings for item in world.lake.catalog().items.values() if item.kind == "materialized view"}
            assert {name for name in names if fills[name] != after[name]} <= PRINTING, statement
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="renaming a label that materialized view filtered names"):
            sql.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'down'")
        assert sql.execute("SELECT 'sad'::mood").fetchall() == [("sad",)]


def test_labels_in_blocks(sql: psycopg.Connection) -> None:
    sql.execute(SCHEMA)
    sql.execute("CREATE MATERIALIZED VIEW filtered AS SELECT id, m FROM person WHERE m > 'sad'")
    with sql.transaction():
        sql.execute("ALTER TYPE mood ADD VALUE 'calm' AFTER 'sad'")
        sql.execute("INSERT INTO person VALUES (5, 'calm', 'calm', '{calm}')")
    assert rows(sql, "SELECT id, m FROM filtered WHERE id = 5") == [(5, "calm")]
    sql.execute("CREATE MATERIALIZED VIEW printed AS SELECT id, m::text AS t FROM person")
    refused = pytest.raises(psycopg.errors.ActiveSqlTransaction, match='if materialized view "printed" reads or writes its labels')
    with refused, sql.transaction():
        sql.execute("ALTER TYPE mood ADD VALUE 'fine'")
    sql.execute("ALTER TYPE mood ADD VALUE 'fine'")
    assert rows(sql, "SELECT t FROM printed WHERE id = 5") == [("calm",)]


def test_drop(sql: psycopg.Connection) -> None:
    sql.execute(SCHEMA)
    sql.execute("CREATE MATERIALIZED VIEW v AS SELECT 'ok'::mood AS m")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as error:
        sql.execute("DROP TYPE mood")
    assert error.value.diag.message_detail == (
        "column ms of table person depends on type mood[]\ncolumn m of table person depends on type mood\n"
        "materialized view v depends on type mood"
    )


def test_drop_with_columns(sql: psycopg.Connection) -> None:
    sql.execute(SCHEMA)
    sql.execute("CREATE MATERIALIZED VIEW moods AS SELECT id, m FROM person")
    sql.execute("CREATE MATERIALIZED VIEW happy AS SELECT id FROM moods WHERE m = 'happy'")
    sql.execute("CREATE MATERIALIZED VIEW named AS SELECT name, count(*) AS n FROM person GROUP BY name")
    sql.execute("DROP TYPE mood CASCADE")
    views = "SELECT matviewname FROM pg_matviews WHERE matviewname IN ('moods', 'happy', 'named')"
    assert sql.execute(views).fetchall() == [("named",)]
    sql.execute("INSERT INTO person VALUES (5, 'ok'), (6, 'new')")
    sql.execute("DELETE FROM person WHERE name = 'x'")
    assert rows(sql, "SELECT * FROM named") == [("new", 1), ("ok", 2), ("sad", 1), ("y", 1)]
    assert rows(sql, "SELECT * FROM person") == [(1, "ok"), (2, "sad"), (4, "y"), (5, "ok"), (6, "new")]


def test_new_name(sql: psycopg.Connection) -> None:
    sql.execute(SCHEMA)
    sql.execute("CREATE MATERIALIZED VIEW v AS SELECT id, m FROM person WHERE m > 'sad'::mood")
    sql.execute("ALTER TYPE mood RENAME TO feeling")
    sql.execute("INSERT INTO person VALUES (5, 'x', 'ok', NULL)")
    assert rows(sql, "SELECT id FROM v") == [(1,), (4,), (5,)]
    (text,) = sql.execute("SHOW CREATE MATERIALIZED VIEW v").fetchone()[-1:]  # type: ignore[index]
    assert "'sad'::feeling" in text
    (text,) = sql.execute("SHOW CREATE TABLE person").fetchone()[-1:]  # type: ignore[index]
    assert "m feeling" in text and "ms feeling[]" in text
    sql.execute("ALTER TABLE person ADD COLUMN k feeling DEFAULT 'ok'::feeling")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="an expression of table person names"):
        sql.execute("ALTER TYPE feeling RENAME TO mood")
    sql.execute("ALTER TABLE person ALTER COLUMN k DROP DEFAULT")
    sql.execute("ALTER TYPE feeling RENAME TO mood")
    assert sql.execute("SELECT pg_typeof(k)::text FROM person LIMIT 1").fetchall() == [("mood",)]
