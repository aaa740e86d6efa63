"""The size of a relation in its Delta table: from the metadata of the table, mostly without reading rows."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from tailgate.lake.store import Store
from tailgate.lake.tables import delta
from tailgate.lake.tables.stored_relations import COUNT
from tailgate.lake.types import WEIGHT

READ_BYTES_MAX = 256 << 20  # of the data files whose counts are read; with more of them, the number of rows is not known


class TableSize(NamedTuple):
    """The number of rows of a relation, None if it is not known, and the bytes of the data files of its table, with deleted rows."""

    rows: int | None
    bytes: int

    def after(self, changes: pa.Table, table: DeltaTable) -> TableSize:
        """Returns the size after changes that the table contains now."""
        return TableSize(None if self.rows is None else self.rows + (pc.sum(changes[WEIGHT]).as_py() or 0), _bytes(table))


EMPTY = TableSize(0, 0)


def measured(store: Store, name: str, table: DeltaTable, *, is_keyed: bool) -> TableSize:
    """Returns the size of a relation, with or without a key."""
    return TableSize(remaining_rows(store, name, table) if is_keyed else _counted_rows(store, name, table), _bytes(table))


def remaining_rows(store: Store, name: str, table: DeltaTable) -> int:
    """Returns the number of rows of a table's version that are not deleted. Equal rows with a count are one."""
    rows = delta.row_count(table)
    if delta.has_vectors(table):
        vectors = (add.get("deletionVector") for add in delta.adds(store, name, table.version()).values())
        rows -= sum(vector["cardinality"] for vector in vectors if vector is not None)
    return rows


def _counted_rows(store: Store, name: str, table: DeltaTable) -> int | None:
    """Returns the sum of the counts of all rows. Reads only files in which the counts differ; None if these are too large."""
    actions = pa.table(table.get_add_actions(flatten=True))
    columns = ["path", "num_records", "size_bytes", f"min.{COUNT}", f"max.{COUNT}"]
    rows, size, differing = 0, 0, []
    for file in actions.select([column for column in columns if column in actions.column_names]).to_pylist():
        count = file.get(f"min.{COUNT}")
        if count is not None and count == file.get(f"max.{COUNT}"):
            rows += file["num_records"] * count
        else:
            differing.append(file["path"])
            size += file["size_bytes"]
    if size > READ_BYTES_MAX:
        return None
    schema = pa.schema([pa.field(COUNT, pa.int64())])
    return rows + sum(pc.sum(delta.read_file(store, name, path, schema)[COUNT]).as_py() or 0 for path in differing)


def _bytes(table: DeltaTable) -> int:
    return pc.sum(pa.table(table.get_add_actions())["size_bytes"]).as_py() or 0
