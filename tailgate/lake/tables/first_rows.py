"""Some rows of a Delta table, read from its first files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from tailgate.lake.store import Store
from tailgate.lake.tables import delta

BATCH_ROWS = 1_024  # that Arrow decodes at once


def first_rows(store: Store, name: str, table: DeltaTable, count: int) -> pa.Table:
    """Returns `count` rows of a table's version, or all if it has fewer. Columns that a file does not have are NULL."""
    schema, live = pa.schema(table.schema().to_arrow()), delta.live_rows(table)
    parts = [schema.empty_table()]
    for file in delta.file_names(table):
        missing = count - sum(part.num_rows for part in parts)
        if missing <= 0:
            break
        limit = int(np.searchsorted(np.cumsum(live[file]), missing)) + 1 if file in live else missing
        fragment = delta.PARQUET.make_fragment(store.get(f"{name}/{file}"))
        rows = fragment.scanner(schema=schema, batch_size=BATCH_ROWS, use_threads=False).head(limit)
        parts.append(rows.filter(pa.array(live[file][: rows.num_rows])) if file in live else rows)
    return pa.concat_tables(parts)
