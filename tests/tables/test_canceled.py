"""A statement that is canceled before its turn has no effect."""

from __future__ import annotations

import threading

import psycopg
import pytest
from psycopg import errors

from tests.tables.world import World


@pytest.mark.parametrize("text", ["CREATE TABLE t (k int)", "DROP TABLE old", "ALTER TABLE old RENAME TO other", "CREATE INDEX ON old (k)"])
def test_a_statement_whose_client_has_disconnected(world: World, text: str) -> None:
    """Another statement holds the lock of the catalog until the client has disconnected.

    Regression: the engine executed the statement later, after its client had dropped the object with
    IF EXISTS.
    """
    lock = world.engine._statements.installation.lock  # an RLock, which this thread holds
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE old (k int PRIMARY KEY)")
        before = world.lake.catalog()
        with lock:
            threading.Timer(0.5, connection.cancel_safe).start()
            with pytest.raises(errors.QueryCanceled):
                connection.execute(text.encode())
        connection.execute("COMMENT ON TABLE old IS 'a later statement'")
        after = world.lake.catalog()
        assert {i.name for i in after.visible} == {i.name for i in before.visible}
