"""A mirror: the rows of a relation as a DuckDB table, updated by each tick.

A mirror is named r<id> (a table or a view, `tables`) and has columns c0, c1, …. A relation without a key may hold duplicates, so
its mirror also has a hidden column `__weight`: the number of copies of the row, always above zero.
The same row may occupy several lines, whose weights add up. All functions use the caller's
connection and transaction, so all mirrors advance together.

    keyed      DELETE removed rows by key, INSERT added rows; or UPDATE replaced rows in place (`tables` decides)
    no key     DELETE all lines of the removed rows, INSERT the remaining copies and the added rows
    all        statements read the rows of the changes from a stream (`incoming`)

A scan that joins 500 changed keys with 1,000,000 rows takes 9 ms, and more for a key of several columns. A large mirror has an
index of DuckDB (`tables` decides), which DuckDB uses for constants of one column: the key, or a hidden column `__hash`, the
hash of a key of several columns or of other types than integers and text. A DELETE has the removed keys, or their hashes,
as constants: 6 ms for 500 keys and any number of rows. A tick that removes more than KEYS_BY_INDEX_MAX keys has several
DELETEs, unless it removes so many that a scan takes less time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.mirrors.incoming import Incoming
from tailgate.lake.catalog import ERRORS, Item
from tailgate.lake.keywords import quoted_text
from tailgate.lake.tables.weights import formed
from tailgate.lake.types import WEIGHT, Field, arrow_schema

HASH = "__hash"  # the column with the hash of the key
PLAIN_TYPES = frozenset({"int2", "int4", "int8", "text", "varchar"})  # of a key whose values are constants, not their hashes
KEYS_BY_INDEX_MAX = 2_000  # of a DELETE by the index; DuckDB scans the table for more (index_scan_max_count)
ROWS_PER_KEY = 500  # that a scan reads in the time in which the index finds a key: 10 µs


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns and key of a mirrored relation. `key` is None if it may hold duplicates. `number`: of its table, 0 for the first."""

    relation: int
    columns: tuple[Field, ...]
    key: tuple[int, ...] | None
    number: int = 0

    @property
    def table(self) -> str:
        return f"r{self.relation}_{self.number}" if self.number else self.name

    @property
    def name(self) -> str:
        """Returns the name under which queries read the mirror."""
        return f"r{self.relation}"

    @property
    def names(self) -> list[str]:
        return [f"c{i}" for i in range(len(self.columns))]


def shape(item: Item) -> Shape:
    return Shape(item.id, item.columns, item.key)


def errors_shape(item: Item) -> Shape:
    return Shape(item.errors, ERRORS, None)


def create(connection: duckdb.DuckDBPyConnection, shape: Shape, *, temporary: bool = False, indexed: bool = False) -> None:
    """Creates the table of a mirror. `indexed`: with the columns as an index of the key needs them."""
    columns = [f"c{i} {shape.columns[i].type.duckdb}" for i in _placed(shape, indexed)]
    if shape.key is None:
        columns.append(f"{WEIGHT} BIGINT NOT NULL")
    if indexed and is_hashed(shape):
        columns.append(f"{HASH} UBIGINT NOT NULL")
    kind = "TEMP TABLE" if temporary else "TABLE"
    connection.execute(f"CREATE {kind} {shape.table} ({', '.join(columns) or 'c BOOLEAN'})")


def drop(connection: duckdb.DuckDBPyConnection, shape: Shape) -> None:
    connection.execute(f"DROP TABLE IF EXISTS {shape.table}")


def fill(incoming: Incoming, shape: Shape, rows: pa.Table, *, indexed: bool = False) -> None:
    """Inserts rows with weights above zero."""
    columns = _indexed_columns(shape) if indexed else _columns(shape)
    incoming.run(f"INSERT INTO {shape.table} SELECT {columns} FROM {incoming.name}", positional(shape, rows))


def create_index(connection: duckdb.DuckDBPyConnection, shape: Shape) -> None:
    """Creates the index of the key."""
    assert shape.key is not None
    column = HASH if is_hashed(shape) else f"c{shape.key[0]}"
    connection.execute(f"CREATE INDEX {shape.table}_key ON {shape.table} ({column})")


def apply_by_index(incoming: Incoming, shape: Shape, changes: pa.Table, rows: int) -> None:
    """Applies net changes to a mirror with an index. `rows`: of the mirror. A scan is used only if a tick removes many of them."""
    removed = positional(shape, changes.filter(pc.less(changes.column(WEIGHT), 0)))
    indexed = removed.num_rows <= max(KEYS_BY_INDEX_MAX, rows // ROWS_PER_KEY)
    at_once = KEYS_BY_INDEX_MAX if indexed else removed.num_rows
    for start in range(0, removed.num_rows, at_once):
        _delete(incoming, shape, removed.slice(start, at_once), indexed)
    added = changes.filter(pc.greater(changes.column(WEIGHT), 0))
    if added.num_rows:
        fill(incoming, shape, added, indexed=True)


def _delete(incoming: Incoming, shape: Shape, removed: pa.Table, indexed: bool) -> None:
    """Removes rows from a mirror with an index. `indexed`: by the index. DuckDB uses it only for constants."""
    assert shape.key is not None
    if indexed and not is_hashed(shape) and not removed.column(shape.key[0]).null_count:
        keys = ", ".join(map(_literal, removed.column(shape.key[0]).to_pylist()))
        incoming.connection.execute(f"DELETE FROM {shape.table} WHERE c{shape.key[0]} IN ({keys})")
        return
    condition = _same(shape, shape.key)
    if indexed and is_hashed(shape):
        hashes = incoming.run(f"SELECT {_hash(shape)} FROM {incoming.name}", removed).fetchall()
        # DuckDB uses the index only if its column is in the first condition
        condition = f"r.{HASH} IN ({', '.join(str(hash) for (hash,) in hashes)}) AND {condition}"
    incoming.run(f"DELETE FROM {shape.table} AS r USING {incoming.name} AS g WHERE {condition}", removed)


def _literal(key: int | str) -> str:
    """Returns the literal of a key in DuckDB.

    >>> _literal(-7), _literal("o'clock")
    ('-7', "'o''clock'")
    """
    return str(key) if isinstance(key, int) else quoted_text(key)


def is_hashed(shape: Shape) -> bool:
    """Returns whether an index of the key is one of its hashes."""
    assert shape.key
    type = shape.columns[shape.key[0]].type
    return len(shape.key) > 1 or type.is_array or type.name not in PLAIN_TYPES


def _hash(shape: Shape) -> str:
    """Returns SQL for the hash of a key. Keys that DuckDB compares as equal have the same one."""
    assert shape.key
    return f"hash({', '.join(f'CAST(c{i} AS {shape.columns[i].type.duckdb})' for i in shape.key)})"


def apply(incoming: Incoming, shape: Shape, changes: pa.Table) -> int:
    """Applies net changes: each row occurs at most once, with its weight. Returns the number of lines that the mirror gets more."""
    if changes.num_rows == 0:
        return 0
    if pc.min(changes.column(WEIGHT)).as_py() > 0:
        fill(incoming, shape, changes)
        return int(changes.num_rows)
    rows = positional(shape, changes)
    if shape.key is None:
        return _apply_multiset(incoming, shape, rows)
    removed = f"(SELECT * FROM {incoming.name} WHERE {WEIGHT} < 0)"
    incoming.run(f"DELETE FROM {shape.table} AS r USING {removed} AS g WHERE {_same(shape, shape.key)}", rows)
    incoming.run(f"INSERT INTO {shape.table} SELECT {_columns(shape)} FROM {incoming.name} WHERE {WEIGHT} > 0", rows)
    return int(changes.num_rows - 2 * pc.sum(pc.less(changes.column(WEIGHT), 0)).as_py())


def update(incoming: Incoming, shape: Shape, changes: pa.Table, removals: int) -> None:
    """Applies net changes to a keyed mirror, of which `removals` have weights below zero; replaced rows are updated in place."""
    assert shape.key is not None
    rows, new = positional(shape, changes), changes.num_rows - removals
    same = _same(shape, shape.key)
    added = f"(SELECT * FROM {incoming.name} WHERE {WEIGHT} > 0)"
    values = ", ".join(f"c{i} = g.c{i}" for i in _replaced_columns(shape, shape.key))
    row = incoming.run(f"UPDATE {shape.table} AS r SET {values} FROM {added} AS g WHERE {same}", rows).fetchone()
    assert row is not None
    replaced, keys = int(row[0]), ", ".join(f"c{i}" for i in shape.key)
    if replaced < new:  # a new key has no row to remove
        columns = ", ".join(f"first({c})" for c in shape.names)
        one = f"SELECT {columns} FROM {incoming.name} GROUP BY {keys or '()'} HAVING min({WEIGHT}) > 0"
        incoming.run(f"INSERT INTO {shape.table} {one}", rows)
    if replaced < removals:
        removed = f"SELECT {keys or '1'} FROM {incoming.name} GROUP BY {keys or '()'} HAVING max({WEIGHT}) < 0"
        incoming.run(f"DELETE FROM {shape.table} AS r USING ({removed}) AS g WHERE {same}", rows)


def _replaced_columns(shape: Shape, key: tuple[int, ...]) -> list[int]:
    """Returns the columns that a new row with the same key may change. Equal keys may have different forms, such as 1.0 and 1.00."""
    fixed = {i for i in key if not shape.columns[i].type.is_array and shape.columns[i].type.name in PLAIN_TYPES}
    return [i for i in range(len(shape.columns)) if i not in fixed] or list(key)


def copy(connection: duckdb.DuckDBPyConnection, source: Shape, target: Shape, *, temporary: bool, indexed: bool) -> int:
    """Copies a table, without what DuckDB keeps of earlier rows. Returns the number of lines. `indexed`: the copy has an index."""
    columns = _indexed_columns(source) if indexed else "*"
    kind = "TEMP TABLE" if temporary else "TABLE"
    row = connection.execute(f"CREATE {kind} {target.table} AS SELECT {columns} FROM {source.table}").fetchone()
    assert row is not None
    return int(row[0])


def rename(connection: duckdb.DuckDBPyConnection, shape: Shape) -> Shape:
    """Gives a table without an index the name of the mirror. Returns its shape then."""
    connection.execute(f"ALTER TABLE {shape.table} RENAME TO {shape.name}")
    return replace(shape, number=0)


def show(connection: duckdb.DuckDBPyConnection, shape: Shape) -> None:
    """Makes a table what queries of the mirror read."""
    connection.execute(f"CREATE OR REPLACE VIEW {shape.name} AS SELECT {_columns(shape)} FROM {shape.table}")


def hide(connection: duckdb.DuckDBPyConnection, shape: Shape) -> None:
    """Removes the effect of `show`."""
    connection.execute(f"DROP VIEW IF EXISTS {shape.name}")


def _apply_multiset(incoming: Incoming, shape: Shape, changes: pa.Table) -> int:
    """Applies net changes to a mirror without a key. Returns the number of lines that it gets more."""
    columns = ", ".join(shape.names)
    same = _same(shape, range(len(shape.columns)))
    removed = f"(SELECT * FROM {incoming.name} WHERE {WEIGHT} < 0)"
    delete = f"DELETE FROM {shape.table} AS r USING {removed} AS g WHERE {same} RETURNING r.*"
    touched = incoming.run(delete, changes).to_arrow_table()
    row = incoming.run(
        f"INSERT INTO {shape.table} SELECT {columns}{', ' if columns else ''}sum({WEIGHT}) FROM {incoming.name} "
        f"GROUP BY {columns or '()'} HAVING sum({WEIGHT}) > 0",
        pa.concat_tables([conform(touched, changes.schema), changes]),
    ).fetchone()
    assert row is not None
    return int(row[0] - touched.num_rows)


def rows(connection: duckdb.DuckDBPyConnection, shape: Shape) -> pa.Table:
    """Returns all rows with their weights, in the form of `lake.snapshot`."""
    columns = ", ".join(shape.names)
    if shape.key is None:
        grouped = f"GROUP BY {columns}" if columns else "HAVING count(*) > 0"
        query = f"SELECT {columns}{', ' if columns else ''}CAST(sum({WEIGHT}) AS BIGINT) FROM {shape.table} {grouped}"
    else:
        query = f"SELECT {columns}, CAST(1 AS BIGINT) FROM {shape.table}"
    return conform(connection.execute(query).to_arrow_table(), arrow_schema(shape.columns, weight=True))


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Returns the table with exactly these names and types; copies only columns that differ.

    DuckDB returns one column in place of none. It is kept, because an Arrow table without columns
    loses its row count.
    """
    if table.schema.equals(schema) or not schema:
        return table
    columns = [_conformed(c, f.type) for c, f in zip(table.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _conformed(column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    """Casts a column. DuckDB may return an all-NULL column as integers, which cannot be cast."""
    if column.type == type:
        return column
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column), type)])
    return column.cast(type)


def positional(shape: Shape, rows: pa.Table) -> pa.Table:
    """Returns rows of the lake with the column names c0, c1, … and __weight."""
    # the rows may be older or newer than the relation's current columns
    if rows.num_columns != len(shape.columns) + 1:
        rows = formed(rows, arrow_schema(shape.columns, weight=True))
    return rows.rename_columns([*shape.names, WEIGHT])


def _placed(shape: Shape, indexed: bool) -> list[int]:
    """Returns the columns in the order of a table. Queries of a view use an index only if its column is the first one."""
    columns = list(range(len(shape.columns)))
    if indexed and not is_hashed(shape):
        assert shape.key
        columns.insert(0, columns.pop(shape.key[0]))
    return columns


def _indexed_columns(shape: Shape) -> str:
    """Returns the columns of a table with an index, from rows."""
    names = [f"c{i}" for i in _placed(shape, True)]
    return ", ".join([*names, f"{_hash(shape)} AS {HASH}"] if is_hashed(shape) else names)


def _columns(shape: Shape) -> str:
    names = shape.names if shape.key is not None else [*shape.names, WEIGHT]
    return ", ".join(names) or WEIGHT


def _same(shape: Shape, columns: tuple[int, ...] | range) -> str:
    """Returns SQL that compares columns of r and g; NULLs are equal, because keys may be NULL."""
    return " AND ".join(f"r.c{i} IS NOT DISTINCT FROM g.c{i}" for i in columns) or "true"
