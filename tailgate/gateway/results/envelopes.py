"""The output formats of SUBSCRIBE: plain, with ENVELOPE UPSERT or DEBEZIUM, or sorted within each time.

    ENVELOPE UPSERT (KEY (k))      mz_state, k…, other columns           upsert, delete (NULLs), key_violation (NULLs)
    ENVELOPE DEBEZIUM (KEY (k))    mz_state, k…, before_…, after_…       insert, upsert, delete, key_violation (NULLs)
    WITHIN TIMESTAMP ORDER BY      mz_diff, the columns                  sorted

The net changes of a key at one time are an inserted row, a deleted row, or one of each. Anything else violates the key. Only the
changes of a time are considered, so a duplicate key is reported at the time at which one of its rows changes.

Source: Materialize, SUBSCRIBE; its test/testdrive/subscribe-output.td, test/sqllogictest/subscribe_outputs.slt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.errors import AmbiguousColumn, FeatureNotSupported, InvalidColumnReference, UndefinedColumn
from tailgate.lake.types import GENERAL_ARROW, INT8, TEXT, Field
from tailgate.sql.statements import KeyEnvelope, OrderWithin
from tailgate.values.numbers import general

MZ_DIFF = Field("mz_diff", INT8)
MZ_STATE = Field("mz_state", TEXT, False)
NONE_RELEASED: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class Plain:
    """The plain format: mz_diff and the columns.

    `order`: the sort order of each time as (position, descending, NULLs first); position 0 is mz_diff.
    """

    columns: tuple[Field, ...]
    order: tuple[tuple[int, bool, bool], ...] = ()

    @property
    def outputs(self) -> tuple[Field, ...]:
        return (MZ_DIFF, *self.columns)

    def shaped(self, table: pa.Table, released: Mapping[str, int] = NONE_RELEASED) -> list[pa.ChunkedArray]:
        """Returns the output columns, as of `Shape`."""
        weights = table.column(table.num_columns - 1)
        output = pa.Table.from_arrays([weights, *table.columns[:-1]], names=[f"c{i}" for i in range(table.num_columns)])
        for position, descending, nulls_first in reversed(self.order):  # sorting is stable
            output = output.take(_sorted(output.column(position), descending, nulls_first))
        return list(output.columns)


@dataclass(frozen=True, slots=True)
class Keyed:
    """ENVELOPE UPSERT or DEBEZIUM, by `kind`. `key` and `rest`: positions of the key columns and of the other columns."""

    kind: str
    columns: tuple[Field, ...]
    key: tuple[int, ...]
    rest: tuple[int, ...]

    @property
    def outputs(self) -> tuple[Field, ...]:
        keys = tuple(self.columns[i] for i in self.key)
        rest = tuple(self.columns[i] for i in self.rest)
        if self.kind == "upsert":
            return (MZ_STATE, *keys, *rest)
        return (MZ_STATE, *keys, *(_prefixed("before", f) for f in rest), *(_prefixed("after", f) for f in rest))

    def shaped(self, table: pa.Table, released: Mapping[str, int] = NONE_RELEASED) -> list[pa.ChunkedArray]:
        """Returns the output columns, as of `Shape`."""
        table = table.combine_chunks()
        for position in (table.num_columns - 1, *reversed(self.key)):
            table = table.take(_sorted(table.column(position), False, False))
        starts = _starts(table, self.key)
        ends = np.append(starts[1:], table.num_rows)[: len(starts)]
        weights = table.column(table.num_columns - 1).to_numpy()
        sizes, first, last = ends - starts, weights[starts], weights[ends - 1]
        came, went = (sizes == 1) & (first == 1), (sizes == 1) & (first == -1)
        changed = (sizes == 2) & (first == -1) & (last == 1)
        debezium = self.kind == "debezium"
        state = np.select([came, went, changed], ["insert" if debezium else "upsert", "delete", "upsert"], "key_violation")
        before = _places(starts, went | changed)
        after = _places(ends - 1, came | changed)
        out = [pa.chunked_array([pa.array(state.tolist(), pa.string())])]
        out += [table.column(i).take(pa.array(starts)) for i in self.key]
        for places in (before, after) if debezium else (after,):
            out += [table.column(i).take(places) for i in self.rest]
        return out


@dataclass(frozen=True, slots=True)
class Trimmed:
    """Another format without its last columns, of which there are `hidden`. `sorted`: whether the rows of a time are sorted by them."""

    shape: Shape
    hidden: int
    sorted: bool

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.shape.columns

    @property
    def outputs(self) -> tuple[Field, ...]:
        return self.shape.outputs[: -self.hidden]

    def shaped(self, table: pa.Table, released: Mapping[str, int] = NONE_RELEASED) -> list[pa.ChunkedArray]:
        """Returns the output columns, as of `Shape`."""
        if self.sorted:
            end = table.num_columns - 1
            for position in reversed(range(end - self.hidden, end)):
                table = table.take(_sorted(table.column(position), False, False))
        return self.shape.shaped(table, released)[: -self.hidden]


class Shape(Protocol):
    """An output format: a hashable value. `columns`: those of the followed relation or query."""

    @property
    def columns(self) -> tuple[Field, ...]: ...

    @property
    def outputs(self) -> tuple[Field, ...]:
        """Returns the output columns, without mz_timestamp."""
        ...

    def shaped(self, table: pa.Table, released: Mapping[str, int] = NONE_RELEASED) -> list[pa.ChunkedArray]:
        """Returns the output columns. `table`: the net changes of one time, with the weight in the last column. `released`: see Header."""
        ...


def shape_of(columns: Sequence[Field], envelope: KeyEnvelope | None, order: Sequence[OrderWithin]) -> Shape:
    """Returns the format of a SUBSCRIBE over a relation with these columns. Raises 42703 if a column does not exist."""
    fields = tuple(columns)
    if envelope is None:
        return Plain(fields, tuple((_ordered(o, fields), o.descending, o.nulls_first) for o in order))
    key = tuple(_position(name, [f.name for f in fields], None) for name in envelope.key)
    for position in key:
        _check_sortable(fields[position], "a key of ENVELOPE")
    return Keyed(envelope.kind, fields, key, tuple(i for i in range(len(fields)) if i not in key))


def _position(name: str, names: Sequence[str], at: int | None) -> int:
    positions = [i for i, other in enumerate(names) if other == name]
    if not positions:
        raise UndefinedColumn(f'column "{name}" does not exist', position=at)
    if len(positions) > 1:
        raise AmbiguousColumn(f'column reference "{name}" is ambiguous', position=at)
    return positions[0]


def _ordered(order: OrderWithin, columns: Sequence[Field]) -> int:
    names = ["mz_diff", *(f.name for f in columns)]
    if isinstance(order.column, int):
        if not 1 <= order.column <= len(names):
            raise InvalidColumnReference(f"ORDER BY position {order.column} is not in select list", position=order.position)
        position = order.column - 1
    else:
        position = _position(order.column, names, order.position)
    if position:
        _check_sortable(columns[position - 1], "ORDER BY")
    return position


def _check_sortable(field: Field, where: str) -> None:
    if field.type.is_array or field.type.name == "interval":
        raise FeatureNotSupported(f'column "{field.name}" of type {field.type} in {where} is not supported')


def _prefixed(prefix: str, field: Field) -> Field:
    return Field(f"{prefix}_{field.name}", field.type)


def _sorted(column: pa.ChunkedArray, descending: bool, nulls_first: bool) -> pa.Array:
    """Returns the row numbers in the order of a column's values. NaN is the greatest value, as in PostgreSQL."""
    order = "descending" if descending else "ascending"
    column = _comparable(column)
    keys = {"null": column.is_null()}
    if pa.types.is_floating(column.type):
        keys["nan"] = pc.is_nan(column)
    table = pa.table({**keys, "value": column})
    places = [("null", "descending" if nulls_first else "ascending"), *((name, order) for name in table.column_names[1:])]
    return pc.sort_indices(table, sort_keys=places)


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns a column in a form that Arrow compares as PostgreSQL compares the values."""
    return pa.chunked_array([general.sort_keys(column)]) if column.type == GENERAL_ARROW else column


def _starts(table: pa.Table, key: Sequence[int]) -> np.ndarray:
    """Returns the first row number of each key. The rows are sorted by key."""
    count = table.num_rows
    differs = np.zeros(max(count - 1, 0), dtype=bool)
    for position in key:
        column = _comparable(table.column(position))
        left, right = column.slice(0, count - 1), column.slice(1)
        same = pc.or_(pc.equal(left, right).fill_null(False), pc.and_(left.is_null(), right.is_null()))
        differs |= ~np.asarray(same, dtype=bool)
    return np.concatenate([[0], np.nonzero(differs)[0] + 1]) if count else np.zeros(0, dtype=np.int64)


def _places(rows: np.ndarray, present: np.ndarray) -> pa.Array:
    """Returns the row numbers as an array, with NULL where `present` is false."""
    return pa.array(rows, pa.int64(), mask=~present)
