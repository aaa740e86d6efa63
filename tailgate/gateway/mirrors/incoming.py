"""Rows of Arrow as a relation in a statement of DuckDB.

    few rows    a parameter for each column, a list, or the value of a single row: an UPDATE of 12 rows takes 0.7 ms of CPU
    others      a table that is registered under a name: 1.9 ms for the same, and its scan waits for other threads

Timestamps and dates are parameters as numbers, because Python's do not have all values of PostgreSQL's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.types import WEIGHT, Field

NUMBERS = 1_000_000  # the first number of a parameter; those of statements and constants (`sql.render`) are below it
FEW_ROWS = 200  # that are parameters; for more, a scan costs less
# a value from its number, the type of the numbers in Arrow and DuckDB, and the limit of their absolute values
_FROM_NUMBER = {
    "DATE": ("DATE '1970-01-01' + {}", pa.int32(), "INTEGER", 2_000_000),
    "TIMESTAMP": ("make_timestamp({})", pa.int64(), "BIGINT", 200_000_000_000_000_000),
    "TIMESTAMPTZ": ("make_timestamptz({})", pa.int64(), "BIGINT", 200_000_000_000_000_000),
}
_FLOATS = frozenset({"FLOAT", "DOUBLE"})
_AS_THEY_ARE = _FLOATS | {"BOOLEAN", "SMALLINT", "INTEGER", "BIGINT", "VARCHAR", "BLOB"}


class registered:
    """An Arrow table, registered under a name in a connection within a `with` block."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
        self.connection, self.name, self.table = connection, f"__{name}", table

    def __enter__(self) -> str:
        self.connection.register(self.name, self.table)
        return self.name

    def __exit__(self, *exception: object) -> None:
        self.connection.unregister(self.name)


def with_places(rows: pa.Table) -> pa.Table:
    """Returns rows with one more column, `place`: their positions, from 0."""
    return rows.append_column("place", pa.array(np.arange(rows.num_rows, dtype=np.int64)))


@dataclass(frozen=True, slots=True)
class Incoming:
    """Rows in a statement. `text`: what FROM reads, with the columns c0, c1, … and __weight; it may occur more than once.

    `parameters`: by their numbers, which no others of the statement have.
    """

    text: str
    parameters: dict[str, object] = field(default_factory=dict)


@contextmanager
def incoming(connection: duckdb.DuckDBPyConnection, fields: Sequence[Field], rows: pa.Table) -> Iterator[Incoming]:
    """Makes rows readable in the statements of a `with` block. `rows`: columns c0, c1, … of these fields, and __weight."""
    few = _few(fields, rows)
    if few is not None:
        yield few
        return
    with registered(connection, "incoming", rows) as name:
        yield Incoming(name)


def _few(fields: Sequence[Field], rows: pa.Table) -> Incoming | None:
    """Returns rows as parameters, or None if there are too many or some values cannot be parameters."""
    if not 0 < rows.num_rows <= FEW_ROWS:
        return None
    expressions, columns, parameters, many = list[str](), list[str](), dict[str, object](), rows.num_rows > 1

    def add(name: str, values: list[object], stored: str) -> None:
        parameter = str(NUMBERS + len(parameters))
        parameters[parameter] = values if many else values[0]
        columns.append(f"unnest(CAST(${parameter} AS {stored}[])) AS {name}" if many else f"CAST(${parameter} AS {stored}) AS {name}")

    for each, name, column in zip(fields, rows.column_names, rows.columns, strict=False):
        stored = each.type.duckdb
        if column.null_count == len(column):
            expressions.append(f"CAST(NULL AS {stored}) AS {name}")
        elif stored in _AS_THEY_ARE or stored.startswith("DECIMAL("):
            if many and stored in _FLOATS and pc.any(pc.is_nan(column)).as_py():
                return None  # DuckDB reads NaN in a list as NULL
            add(name, column.to_pylist(), stored)
            expressions.append(name)
        elif stored in _FROM_NUMBER:
            expression, number, type, limit = _FROM_NUMBER[stored]
            numbers = column.cast(number)
            bounds = pc.min_max(numbers).as_py()
            if bounds["min"] <= -limit or bounds["max"] >= limit:
                return None
            add(name, numbers.to_pylist(), type)
            expressions.append(f"{expression.format(name)} AS {name}")
        else:
            return None
    add(WEIGHT, rows.column(WEIGHT).to_pylist(), "BIGINT")
    return Incoming(f"(SELECT {', '.join([*expressions, WEIGHT])} FROM (SELECT {', '.join(columns)}))", parameters)
