"""An estimate of a relation's number of rows, from the metadata of its Delta table and the log, without reading rows."""

from __future__ import annotations

from tailgate.lake.folder import Lake
from tailgate.lake.readers.reading import table_at
from tailgate.lake.tables import checkpoints, delta
from tailgate.lake.tables.stored_relations import begun, table_name
from tailgate.lake.tables.table_sizes import remaining_rows


def about(lake: Lake, relation: int) -> int:
    """Returns the approximate number of rows of a stored relation now.

    Each change since the newest checkpoint, about a second ago, counts as one row. Equal rows may count as one.
    """
    newest = lake.log.newest()
    if newest is None:
        return 0
    version, position = table_at(checkpoints.newest(lake), relation)
    rows = 0
    if version is not None:
        name = table_name(relation)
        rows = remaining_rows(lake.store, name, delta.table(lake.store, name, version))
    for entry in lake.log.after(position, newest.n):
        if relation in begun(entry.header.catalog):
            rows = 0
        section = entry.header.section(relation)
        rows += 0 if section is None else section.rows
    return rows
