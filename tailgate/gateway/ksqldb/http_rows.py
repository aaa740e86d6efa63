"""The rows of queries in the dialect of the HTTP API: columns with ksqlDB's names and types, and tombstones.

    SELECT … EMIT CHANGES    mz_timestamp, tombstone, the columns     a row per key and time, or per row of a stream
    SELECT …                 the columns

A column's name is its declaration in ksqlDB's schemas, such as `AREA` STRING. In pull queries of tables, columns of the key
end with KEY.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.results.envelopes import NONE_RELEASED, Keyed
from tailgate.lake.types import BOOL, Field
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.types import KEY, in_schema

TOMBSTONE = Field("tombstone", BOOL, False)
Columns = Sequence[tuple[str, TypeName]]


def declared(fields: Sequence[Field], columns: Columns, key: Collection[str] = ()) -> tuple[Field, ...]:
    """Returns fields whose names are declarations of ksqlDB. `columns`: their names and types. `key`: the names of those in the key."""
    ends = [KEY if name in key else "" for name, _ in columns]
    names = [declaration(name, type) + end for (name, type), end in zip(columns, ends, strict=True)]
    return tuple(replace(field, name=name) for field, name in zip(fields, names, strict=True))


def declaration(name: str, type: TypeName) -> str:
    """Returns the declaration of a column of the catalog.

    >>> declaration("area", TypeName("varchar"))
    '`AREA` STRING'
    """
    return f"`{ksqldb_name(name).replace('`', '``')}` {in_schema(type)}"


@dataclass(frozen=True, slots=True)
class Changes:
    """The format of a push query: a tombstone flag and the columns. `key`: the positions of the columns that identify a row.

    The changes of a key at one time become one row: the new one, or a tombstone with NULLs outside of the key. Without a key, rows
    are never replaced, and rows that are removed are left out. `windows`: the id of a table with windows, whose end in ms is the last
    column: one that leaves because of its retention has no tombstone.
    """

    columns: tuple[Field, ...]
    key: tuple[int, ...]
    windows: int | None = None

    @property
    def outputs(self) -> tuple[Field, ...]:
        return (TOMBSTONE, *self.columns)

    def shaped(self, table: pa.Table, released: Mapping[str, int] = NONE_RELEASED) -> list[pa.ChunkedArray]:
        """Returns the output columns, as of `Shape`."""
        if (until := released.get(str(self.windows))) is not None:
            end, weights = table.columns[-2:]
            left = pc.and_(pc.less(weights, 0), pc.less_equal(end, until))
            table = table.filter(pc.invert(pc.fill_null(left, False)))
        if not self.key:
            weights = np.maximum(table.column(table.num_columns - 1).to_numpy(), 0)
            rows = table.take(pa.array(np.repeat(np.arange(table.num_rows), weights)))
            return [pa.chunked_array([pa.repeat(pa.scalar(False), rows.num_rows)]), *rows.columns[:-1]]
        rest = tuple(i for i in range(len(self.columns)) if i not in self.key)
        state, *shaped = Keyed("upsert", self.columns, self.key, rest).shaped(table)
        by_position = dict(zip((*self.key, *rest), shaped, strict=True))
        return [pc.equal(state, "delete"), *(by_position[i] for i in range(len(self.columns)))]
