"""Shows a transaction's uncommitted writes on top of the mirrors, to that transaction only.

    r<id> in the transaction = the mirror's rows + the transaction's changes

A temporary view r<id> of the transaction's connection hides the mirror. For a keyed relation it
reads the mirror except the changed keys; for one without a key it sums the weights. A relation of
the schema tailgate has no mirror: its rows are those that the statement was given.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from tailgate.gateway.mirrors import mirror
from tailgate.gateway.mirrors.incoming import Incoming, registered
from tailgate.lake.catalog import Item
from tailgate.lake.types import WEIGHT

BASE = "memory.main."  # the schema of the mirrors; a relation that a transaction has copied is in `temp`


_generations = itertools.count(1)


def generation() -> int:
    """Returns a generation that no other changes have."""
    return next(_generations)


@dataclass(frozen=True, slots=True)
class UncommittedChanges:
    """Uncommitted net changes of a relation, or the rows of one that is not in the log.

    Within one `generation`, later changes are the earlier ones with rows appended. The rows of a relation of the schema
    tailgate have no weights.
    """

    item: Item
    changes: pa.Table
    generation: int = 0


def show(connection: duckdb.DuckDBPyConnection, shape: mirror.Shape, rows: pa.Table) -> None:
    """Makes the connection read a relation of the schema tailgate as these rows, without a copy."""
    connection.register(shape.table, rows.rename_columns(shape.names))


def append(incoming: Incoming, shape: mirror.Shape, more: pa.Table) -> None:
    """Appends changes to an existing overlay."""
    incoming.run(f"INSERT INTO w{shape.relation} SELECT * FROM {incoming.name}", mirror.positional(shape, more))


def lay(connection: duckdb.DuckDBPyConnection, shape: mirror.Shape, changes: pa.Table, *, copied: bool) -> None:
    """Adds or replaces the overlay; the connection then reads the relation with these net changes.

    `copied` says that the connection has a private copy of the relation.
    """
    base, written = f"{BASE}{shape.table}", f"w{shape.relation}"
    if copied:
        base = f"temp.b{shape.relation}"
        if not _exists(connection, f"b{shape.relation}"):
            connection.execute(f"ALTER TABLE temp.{shape.table} RENAME TO b{shape.relation}")
    connection.execute(f"DROP VIEW IF EXISTS temp.{shape.table}")
    connection.execute(f"DROP TABLE IF EXISTS temp.{written}")
    with registered(connection, "incoming", mirror.positional(shape, changes)) as name:
        connection.execute(f"CREATE TEMP TABLE {written} AS SELECT * FROM {name}")
    connection.execute(f"CREATE TEMP VIEW {shape.table} AS {overlaid(shape, base, written)}")


def overlaid(shape: mirror.Shape, base: str, changes: str) -> str:
    """Returns a query for the rows of a relation with net changes on top."""
    columns = ", ".join(shape.names)
    if shape.key is not None:
        keys = ", ".join(f"c{k}" for k in shape.key)
        return (
            f"SELECT {columns} FROM {base} ANTI JOIN {changes} USING ({keys}) UNION ALL SELECT {columns} FROM {changes} WHERE {WEIGHT} > 0"
        )
    return (
        f"SELECT {columns}, CAST(sum({WEIGHT}) AS BIGINT) AS {WEIGHT} FROM "
        f"(SELECT * FROM {base} UNION ALL SELECT * FROM {changes}) GROUP BY {columns} HAVING sum({WEIGHT}) > 0"
    )


def lift(connection: duckdb.DuckDBPyConnection, shape: mirror.Shape) -> None:
    """Removes the overlay; the connection then reads the relation without changes."""
    connection.execute(f"DROP VIEW IF EXISTS temp.{shape.table}")
    connection.execute(f"DROP TABLE IF EXISTS temp.w{shape.relation}")
    if _exists(connection, f"b{shape.relation}"):
        connection.execute(f"ALTER TABLE temp.b{shape.relation} RENAME TO {shape.table}")


def _exists(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    row = connection.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary AND table_name = $1", [name]).fetchone()
    return bool(row and row[0])
