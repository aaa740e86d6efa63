"""Finds rows of a statement whose key another row has. A key is a primary key or an enforced unique index.

A key with NULL differs from all others, unless the index is NULLS NOT DISTINCT. A row for which the condition of the index is not true
has no key. Rows have the columns that `Key` numbers: those of the table, and the values of expressions and conditions behind them.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.mirrors.incoming import registered, with_places
from tailgate.gateway.writes.constraints.hashes import comparable, hashes, salted
from tailgate.lake.catalog import Table
from tailgate.lake.constraints import Key, Reference
from tailgate.lake.types import WEIGHT, Field, Type

COMPARED_AS_VALUES = frozenset({"bool", "int2", "int4", "int8", "text", "varchar"})  # types of equal values that are equal in Python
FEW_ROWS = 50  # rows whose keys are looked up as a list: 0.4 ms for one, 0.8 ms for 50; a join with the table takes 1.5 ms


def key_hashes(key: Key, rows: pa.Table) -> np.ndarray:
    """Returns the hashes of the keys of rows. Keys of different indexes have different hashes."""
    compared = _compared(key, rows)
    return salted(hashes(rows.select(list(key.columns)).filter(pa.array(compared))), key.index)


def row_hashes(key: Key, rows: pa.Table) -> list[int | None]:
    """Returns the hash of each row's key; None for a key that differs from all others."""
    values = iter(key_hashes(key, rows).tolist())
    return [next(values) if compared else None for compared in _compared(key, rows).tolist()]


def all_hashes(keys: Sequence[Key], rows: pa.Table) -> np.ndarray:
    """Returns the hashes of several keys of rows."""
    return np.concatenate([np.empty(0, np.uint64), *(key_hashes(key, rows) for key in keys)])


def _compared(key: Key, rows: pa.Table) -> np.ndarray:
    """Returns for each row whether its key can equal that of another row."""
    return present(key.columns, rows) & has_key(key, rows) if key.nulls_distinct else has_key(key, rows)


def has_key(key: Key, rows: pa.Table) -> np.ndarray:
    """Returns for each row whether the condition of the index is true."""
    if key.condition is None:
        return np.ones(rows.num_rows, bool)
    return np.asarray(pc.fill_null(rows.column(key.condition), False).to_numpy())


def present(columns: Sequence[int], rows: pa.Table) -> np.ndarray:
    """Returns for each row whether none of these columns is NULL."""
    mask = np.ones(rows.num_rows, bool)
    for column in columns:
        if rows.column(column).null_count:
            mask &= pc.is_valid(rows.column(column)).to_numpy()
    return mask


def checked(reference: Reference, rows: pa.Table) -> np.ndarray:
    """Returns for each row whether a foreign key is checked: all of its columns have values or, with MATCH FULL, one of them has."""
    if not reference.constraint.match_full:
        return present(reference.columns, rows)
    mask = np.zeros(rows.num_rows, bool)
    for column in reference.columns:
        mask |= pc.is_valid(rows.column(column)).to_numpy()
    return mask


def repeated(key: Key, rows: pa.Table) -> np.ndarray:
    """Returns the positions of rows whose key occurs in an earlier row."""
    values = key_hashes(key, rows)
    if len(values) < 2 or len(np.unique(values)) == len(values):
        return np.empty(0, np.int64)
    places = np.flatnonzero(_compared(key, rows))
    names = [f"k{i}" for i in range(len(key.columns))]
    keys = comparable(rows.select(list(key.columns))).rename_columns(names)
    keys = with_places(keys).take(places)
    firsts = keys.group_by(names, use_threads=False).aggregate([("place", "min")]).column("place_min").to_numpy()
    return np.setdiff1d(places, firsts)


def existing(cursor: duckdb.DuckDBPyConnection, fields: Sequence[Field], key: Key, rows: pa.Table, stored: str) -> np.ndarray:
    """Returns the positions of rows whose keys exist in the table, in order.

    `fields`: the columns of the rows. `stored`: SQL for the rows of the table with these columns.
    """
    compared = _compared(key, rows)
    if not compared.all():
        return np.asarray(np.flatnonzero(compared)[existing(cursor, fields, key, rows.filter(pa.array(compared)), stored)])
    few = _few_existing(cursor, fields, key, rows, stored)
    if few is not None:
        return few
    placed = with_places(rows.select(list(key.columns)).rename_columns(_names(key)))
    with registered(cursor, "new", placed) as new:
        query = f"SELECT place FROM {new} AS n SEMI JOIN {stored} AS r ON {same(fields, key, 'r', 'n')} ORDER BY place"
        return np.asarray(cursor.execute(query).fetchnumpy()["place"])


def _few_existing(cursor: duckdb.DuckDBPyConnection, fields: Sequence[Field], key: Key, rows: pa.Table, stored: str) -> np.ndarray | None:
    """Returns the positions of rows whose keys, without NULL, exist in the table, by a list; None if a join is needed."""
    types = {fields[k].type.name for k in key.columns}
    if rows.num_rows > FEW_ROWS or not types <= COMPARED_AS_VALUES or not key.nulls_distinct or key.condition is not None:
        return None
    keys = list(zip(*(rows.column(k).to_pylist() for k in key.columns), strict=True))
    if not keys:
        return np.empty(0, np.int64)
    names = ", ".join(f"c{k}" for k in key.columns)
    numbers = iter(range(1, len(keys) * len(key.columns) + 1))
    lists = ", ".join(f"({', '.join(f'${next(numbers)}' for _ in key.columns)})" for _ in keys)
    tested = f"({names})" if len(key.columns) > 1 else names
    matches = cursor.execute(f"SELECT {names} FROM {stored} WHERE {tested} IN ({lists})", [value for key in keys for value in key])
    exists = set(matches.fetchall())
    return np.array([place for place, values in enumerate(keys) if values in exists], np.int64)


def moved(cursor: duckdb.DuckDBPyConnection, fields: Sequence[Field], key: Key, old: pa.Table, new: pa.Table, stored: str) -> int | None:
    """Returns the position of the first changed row whose key another stored row has.

    `new`: the rows that replace `old`. `fields`, `stored`: as for `existing`.
    """
    names = _names(key)
    placed = with_places(new.select(list(key.columns)).rename_columns(names))
    placed, old = placed.filter(pa.array(has_key(key, new))), old.filter(pa.array(has_key(key, old)))
    types = [fields[column].type for column in key.columns]
    both = " AND ".join(
        f"{compared(f'n.{name}', type)} IS NOT DISTINCT FROM {compared(f'o.{name}', type)}" for name, type in zip(names, types, strict=True)
    )
    with (
        registered(cursor, "new", placed) as after,
        registered(cursor, "old", old.select(list(key.columns)).rename_columns(names)) as before,
    ):
        place = cursor.execute(
            f"SELECT min(place) FROM (SELECT * FROM {after} AS n ANTI JOIN {before} AS o ON {both}) AS n "
            f"SEMI JOIN {stored} AS r ON {same(fields, key, 'r', 'n')}"
        ).fetchone()
    return None if place is None or place[0] is None else int(place[0])


def shared(cursor: duckdb.DuckDBPyConnection, table: Table, key: Key, rows: pa.Table, stored: str) -> int | None:
    """Returns the position of the first stored row whose key another stored row has, too. `key`: one without expressions and condition."""
    compared = _compared(key, rows)
    placed = with_places(rows.select(list(key.columns)).rename_columns(_names(key)))
    weight = "1" if table.key is not None else f"r.{WEIGHT}"
    with registered(cursor, "new", placed.filter(pa.array(compared))) as new:
        place = cursor.execute(
            f"SELECT min(place) FROM (SELECT n.place FROM {new} AS n JOIN {stored} AS r ON {same(table.columns, key, 'r', 'n')} "
            f"GROUP BY n.place HAVING sum({weight}) > 1)"
        ).fetchone()
    return None if place is None or place[0] is None else int(place[0])


def others(
    cursor: duckdb.DuckDBPyConnection, fields: Sequence[Field], columns: Sequence[int], rows: pa.Table, removed: pa.Table
) -> np.ndarray:
    """Returns the positions of rows that differ from all `removed` rows, in order. Both have these columns of the table."""
    names = [f"k{i}" for i in range(len(columns))]
    placed = with_places(rows.rename_columns(names))
    same = " AND ".join(
        f"{compared(f'n.{name}', fields[column].type)} IS NOT DISTINCT FROM {compared(f'o.{name}', fields[column].type)}"
        for name, column in zip(names, columns, strict=True)
    )
    with registered(cursor, "new", placed) as new, registered(cursor, "old", removed.rename_columns(names)) as old:
        query = f"SELECT place FROM {new} AS n ANTI JOIN {old} AS o ON {same} ORDER BY place"
        return np.asarray(cursor.execute(query).fetchnumpy()["place"])


def changed(columns: Sequence[int], old: pa.Table, new: pa.Table) -> np.ndarray:
    """Returns for each row whether one of these columns changes."""
    mask = np.zeros(old.num_rows, bool)
    for column in columns:
        before, after = (comparable(rows.select([column])).column(0) for rows in (old, new))
        if before.equals(after):
            continue
        differs = pc.fill_null(pc.not_equal(before, after), False)
        mask |= pc.or_(differs, pc.xor(pc.is_null(before), pc.is_null(after))).to_numpy()
    return mask


def same(fields: Sequence[Field], key: Key, stored: str, other: str) -> str:
    """Returns SQL that compares the key of a stored row with the columns k0, k1, … of another."""
    condition = "" if key.condition is None else f" AND {stored}.c{key.condition}"
    return equal(fields, key.columns, stored, f"{other}.k", "=" if key.nulls_distinct else "IS NOT DISTINCT FROM") + condition


def equal(fields: Sequence[Field], columns: Sequence[int], stored: str, other: str, operator: str = "=") -> str:
    """Returns SQL that compares columns of a stored row with others. `fields`: of the stored row. `other`: the others without numbers.

    >>> equal([Field("id", Type("int4"))], [0], "t", "g.k")
    't.c0 = g.k0'
    """
    types = [fields[column].type for column in columns]
    return " AND ".join(
        f"{compared(f'{stored}.c{column}', type)} {operator} {compared(f'{other}{i}', type)}"
        for i, (column, type) in enumerate(zip(columns, types, strict=True))
    )


def compared(value: str, type: Type) -> str:
    """Returns SQL of a value in a form that is equal if the values are."""
    return f"tg_general_key_any({value})" if type.general else value


def _names(key: Key) -> list[str]:
    return [f"k{i}" for i in range(len(key.columns))]


def shown(columns: Sequence[int], fields: Sequence[Field]) -> str:
    """Returns the names of columns as in `Key (a, b)=(1, 2) already exists.`"""
    return ", ".join(fields[column].name for column in columns)
