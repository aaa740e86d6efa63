"""What a block has written and not committed, laid over the mirrors for that block alone.

    r<id> of the block = the mirror's rows + the block's changes      a view of the block's own connection, which hides the mirror

A keyed relation is read from the mirror but for the keys that changed; one without a key is summed anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import pyarrow as pa

from gateway.serving import mirror
from lake.catalog import Item
from lake.types import WEIGHT

BASE = "memory.main."  # the mirrors' place; a relation that a block copied for itself is in `temp`


@dataclass(frozen=True, slots=True)
class Written:
    """Net changes of a relation. Of one `generation`, later changes are earlier ones with more rows behind."""

    item: Item
    changes: pa.Table
    generation: int = 0


def append(connection: duckdb.DuckDBPyConnection, shape: mirror.Shape, more: pa.Table) -> None:
    """Adds changes to those that are laid."""
    with mirror.registered(connection, "incoming", mirror.positional(shape, more)) as name:
        connection.execute(f"INSERT INTO w{shape.relation} SELECT * FROM {name}")


def lay(connection: duckdb.DuckDBPyConnection, shape: mirror.Shape, changes: pa.Table, *, copied: bool) -> None:
    """From here on the connection reads the relation with these net changes. `copied`: the connection has a copy of its own."""
    columns = ", ".join(shape.names)
    base, written = f"{BASE}{shape.table}", f"w{shape.relation}"
    if copied:
        base = f"temp.b{shape.relation}"
        if not _exists(connection, f"b{shape.relation}"):
            connection.execute(f"ALTER TABLE temp.{shape.table} RENAME TO b{shape.relation}")
    connection.execute(f"DROP VIEW IF EXISTS temp.{shape.table}")
    connection.execute(f"DROP TABLE IF EXISTS temp.{written}")
    with mirror.registered(connection, "incoming", mirror.positional(shape, changes)) as name:
        connection.execute(f"CREATE TEMP TABLE {written} AS SELECT * FROM {name}")
    if shape.key is not None:
        keys = ", ".join(f"c{k}" for k in shape.key)
        query = (
            f"SELECT {columns} FROM {base} ANTI JOIN {written} USING ({keys}) UNION ALL SELECT {columns} FROM {written} WHERE {WEIGHT} > 0"
        )
    else:
        query = (
            f"SELECT {columns}, CAST(sum({WEIGHT}) AS BIGINT) AS {WEIGHT} FROM "
            f"(SELECT * FROM {base} UNION ALL SELECT * FROM {written}) GROUP BY {columns} HAVING sum({WEIGHT}) > 0"
        )
    connection.execute(f"CREATE TEMP VIEW {shape.table} AS {query}")


def lift(connection: duckdb.DuckDBPyConnection, shape: mirror.Shape) -> None:
    """The relation is read without changes again."""
    connection.execute(f"DROP VIEW IF EXISTS temp.{shape.table}")
    connection.execute(f"DROP TABLE IF EXISTS temp.w{shape.relation}")
    if _exists(connection, f"b{shape.relation}"):
        connection.execute(f"ALTER TABLE temp.b{shape.relation} RENAME TO {shape.table}")


def _exists(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    found = connection.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary AND table_name = $1", [name]).fetchone()
    return bool(found and found[0])
