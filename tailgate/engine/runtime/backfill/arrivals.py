"""The order in which the rows of a stream have arrived: the texts in the column `_arrival`.

A text begins with the time of the tick that read the record, or with that of a fill (`HISTORY`).
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.engine.plan.sources.row_columns import HISTORY, TIME_DIGITS, digits
from tailgate.lake.types import WEIGHT
from tailgate.sql.ksqldb.pseudo_columns import ARRIVAL


def arrived_after(rows: pa.Table, time: int) -> pa.Table:
    """Returns the rows whose records ticks after a time have read."""
    return rows.filter(pc.greater_equal(rows[ARRIVAL], digits(time + 1)))


def arriving(changes: pa.Table, time: int) -> pa.Table:
    """Returns changes in which the rows that a fill adds arrive at a time, in their order."""
    if ARRIVAL not in changes.column_names:
        return changes
    texts = changes[ARRIVAL]
    is_filled = pc.and_(pc.greater(changes[WEIGHT], 0), pc.starts_with(texts, digits(HISTORY)))
    places = pc.binary_join_element_wise(digits(time), pc.utf8_slice_codeunits(texts, TIME_DIGITS), "")
    number = changes.column_names.index(ARRIVAL)
    return changes.set_column(number, changes.schema.field(number), pc.if_else(is_filled, places, texts))
