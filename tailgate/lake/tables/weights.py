"""Sums of weighted rows in Arrow.

The last column of a table of changes is `__weight`. Its *net* has each distinct row once, with the sum
of its weights, without rows whose sum is zero. NULL equals NULL and NaN equals NaN, as in GROUP BY.
Values that are equal in SQL are already normalized to the same bytes (architecture, section 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.tables import moments
from tailgate.lake.types import WEIGHT

FOLD_ROWS = 200_000  # changes that are collected before they are summed: some 20 MB of narrow rows

_ROW = "__row"


def weighted(rows: pa.Table, weights: int | np.ndarray) -> pa.Table:
    """Appends weights as the last column."""
    column = np.full(rows.num_rows, weights, np.int64) if isinstance(weights, int) else weights.astype(np.int64)
    return rows.append_column(pa.field(WEIGHT, pa.int64(), False), pa.array(column))


def net(changes: pa.Table) -> pa.Table:
    """Returns the net of changes. Does not preserve the order of rows."""
    if changes.num_rows == 0:
        return changes
    names = changes.column_names[:-1]
    if any(pa.types.is_nested(changes.schema.field(name).type) for name in names):
        return _net_by_row(changes)
    numbers = [f"c{i}" for i in range(len(names))]  # Arrow takes a name that begins with a point for a path
    total = changes.rename_columns([*numbers, WEIGHT]).group_by(numbers, use_threads=False).aggregate([(WEIGHT, "sum")])
    total = total.select([*numbers, WEIGHT + "_sum"]).rename_columns([*names, WEIGHT]).cast(changes.schema)
    return _filtered(total, pc.not_equal(total[WEIGHT], 0))


def _net_by_row(changes: pa.Table) -> pa.Table:
    """Returns the net of changes with nested columns: groups by a flat form of the rows and takes one row per group."""
    flat = flattened(changes.drop_columns([WEIGHT]))
    numbered = flat.append_column(_ROW, pa.array(range(changes.num_rows), pa.int64())).append_column(WEIGHT, changes[WEIGHT])
    total = numbered.group_by(flat.column_names, use_threads=False).aggregate([(_ROW, "min"), (WEIGHT, "sum")])
    total = _filtered(total, pc.not_equal(total[WEIGHT + "_sum"], 0))
    return changes.take(total[_ROW + "_min"]).set_column(changes.num_columns - 1, changes.schema.field(WEIGHT), total[WEIGHT + "_sum"])


def net_without(changes: pa.Table, *columns: str) -> pa.Table:
    """Returns the net of changes without those that only change these columns. Does not preserve the order of rows."""
    changes = net(changes)
    rest = flattened(changes.drop_columns([*columns, WEIGHT]))
    numbered = rest.append_column(_ROW, pa.array(range(changes.num_rows), pa.int64())).append_column(WEIGHT, changes[WEIGHT])
    groups = numbered.group_by(rest.column_names, use_threads=False).aggregate([(_ROW, "list"), (WEIGHT, "sum")])
    changed = groups.filter(pc.not_equal(groups[WEIGHT + "_sum"], 0))
    return changes.take(pc.list_flatten(changed[_ROW + "_list"]))


def flattened(table: pa.Table) -> pa.Table:
    """Returns columns without nesting, named by position. Two rows of them are equal if and only if the original rows are."""
    columns: list[pa.ChunkedArray] = []
    for column in table.columns:
        columns.extend(_flat(column.combine_chunks()))
    return pa.table(columns, names=[f"c{i}" for i in range(len(columns))])


def _flat(column: pa.Array) -> list[pa.Array]:
    if pa.types.is_struct(column.type):
        children = column.flatten() if column.type.num_fields else []
        return [column.is_valid(), *(flat for child in children for flat in _flat(child))]
    if pa.types.is_nested(column.type):
        return [pa.array([None if value is None else repr(value) for value in moments.numbers(column).to_pylist()], pa.string())]
    return [column]


def formed(part: pa.Table, schema: pa.Schema) -> pa.Table:
    """Returns a table with the names and types of `schema`. Columns are matched by position.

    Columns that the relation got later are NULL; they precede the weight. Columns that are not in the
    schema are dropped.
    """
    if part.schema.equals(schema):
        return part
    weight, width = part.num_columns - 1, len(schema) - 1
    if weight > width:
        part = part.select([*range(width), weight])
    for i in range(weight, width):
        part = part.add_column(i, schema.field(i), pa.nulls(part.num_rows, schema.field(i).type))
    return part.rename_columns(schema.names).cast(schema)


def total(parts: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """Returns the net of many tables of changes. Needs memory for the result and a bounded number of changes."""
    waiting: list[pa.Table] = []
    rows = 0
    limit = FOLD_ROWS
    for part in parts:
        waiting.append(formed(part, schema))
        rows += part.num_rows
        if rows > limit:
            waiting = [net(pa.concat_tables(waiting))]
            rows = waiting[0].num_rows
            limit = FOLD_ROWS + 2 * rows  # so that a large sum is not recomputed for every part
    return net(pa.concat_tables(waiting)) if waiting else schema.empty_table()


def negated(table: pa.Table) -> pa.Table:
    """Returns the changes with negated weights."""
    return table.set_column(table.num_columns - 1, table.schema.field(table.num_columns - 1), pc.negate(table[table.num_columns - 1]))


def positive(table: pa.Table) -> pa.Table:
    """Returns the rows with weights above zero."""
    return _filtered(table, pc.greater(table[WEIGHT], 0))


def _filtered(table: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """Returns the rows for which a mask is true, without a copy if it is true for all."""
    return table if pc.all(mask, min_count=0).as_py() else table.filter(mask)


def count_added(changes: pa.Table) -> int:
    """Returns the number of rows with weights above zero, each as often as its weight says."""
    weights = changes[WEIGHT].to_numpy()
    return int(weights[weights > 0].sum())


def negative(table: pa.Table) -> pa.Table:
    """Returns the rows with weights below zero."""
    return table.filter(pc.less(table[WEIGHT], 0))


def keys_only_in(left: pa.Table, right: pa.Table, key: Sequence[str]) -> pa.Table:
    """Returns the rows of `left` (each key at most once) whose key is not in `right`. NULL equals NULL."""
    both = pa.concat_tables([left.select(key), right.select(key)])
    flat = flattened(both)
    sides = pa.array([0] * left.num_rows + [1] * right.num_rows, pa.int64())
    numbered = flat.append_column(_ROW, pa.array(range(both.num_rows), pa.int64())).append_column("side", sides)
    groups = numbered.group_by(flat.column_names, use_threads=False).aggregate([(_ROW, "min"), ("side", "max")])
    return left.take(groups.filter(pc.equal(groups["side_max"], 0))[_ROW + "_min"])
