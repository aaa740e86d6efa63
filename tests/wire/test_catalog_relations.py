"""A superuser can read every relation of the system catalog, with all its columns."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg

from tailgate.gateway.catalog import relations
from tailgate.lake.passwords import verifier
from tests.tables.world import World

RELATIONS: dict[str, dict[str, str]] = json.loads((Path(relations.__file__).parent / "relations.json").read_text())
ITEMS = (
    f"CREATE ROLE ann LOGIN PASSWORD '{verifier('secret')}'",
    "CREATE TABLE t (k int PRIMARY KEY, v text DEFAULT 'x')",
    "CREATE INDEX ON t (v)",
    "CREATE VIEW w AS SELECT k FROM t",
    "CREATE FUNCTION f() RETURNS int LANGUAGE SQL AS 'SELECT 1'",
    "COMMENT ON TABLE t IS 'a table'",
)


def test_every_relation_can_be_read(tmp_path: Path) -> None:
    world = World(tmp_path / "lake")
    try:
        with psycopg.connect(world.dsn, user="tailgate", autocommit=True) as connection:
            for text in ITEMS:
                connection.execute(text.encode())
            failed = {}
            for name in RELATIONS:
                try:
                    connection.execute(f"SELECT * FROM {name}".encode()).fetchall()
                except psycopg.Error as error:
                    failed[name] = f"{error.sqlstate} {error.diag.message_primary}"
        assert not failed, "\n".join(f"{name}: {error}" for name, error in failed.items())
    finally:
        world.close()
