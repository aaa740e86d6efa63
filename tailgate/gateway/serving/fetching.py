"""Fetches rows of a statement from DuckDB, and charges them to the session's memory budget.

DuckDB ──batches──► [session's memory limit] ──► pa.Table ──slices──► client
                         └─ 53200                    └─ freed: the charge is released
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from tailgate.gateway.mirrors import mirror
from tailgate.gateway.resources.budgets import TASK_BUDGET, Charge

BATCH_ROWS = 16_384  # rows between two charges
CHARGED_MIN = 16 << 10  # bytes; smaller results are frequent and short-lived, so they are not charged

# Arrow raises an error within a stream as OSError with DuckDB's message only.
ERRORS: dict[str, type[duckdb.Error]] = {
    "Conversion Error": duckdb.ConversionException,
    "INTERRUPT Error": duckdb.InterruptException,
    "Invalid Input Error": duckdb.InvalidInputException,
    "Out of Memory Error": duckdb.OutOfMemoryException,
    "Out of Range Error": duckdb.OutOfRangeException,
}


def _duckdbs(error: BaseException) -> BaseException:
    if not isinstance(error, OSError):
        return error
    return ERRORS.get(str(error).split(":", 1)[0], duckdb.Error)(str(error))


def fetched(result: duckdb.DuckDBPyConnection, schema: pa.Schema | None = None) -> pa.Table:
    """Returns all rows of an executed statement. Raises 53200, without computing the rest, if too large."""
    reader = result.to_arrow_reader(BATCH_ROWS)
    batches: list[pa.RecordBatch] = []
    budget = TASK_BUDGET.get()
    held, size = Charge(budget), 0
    try:
        for batch in reader:
            batches.append(batch)
            size += batch.nbytes
            if size >= CHARGED_MIN:
                held.set(size)
    except BaseException as error:
        held.set(0)
        raise _duckdbs(error) from error
    table = pa.Table.from_batches(batches, reader.schema)
    if schema is not None:
        table = mirror.conform(table, schema)
    if held.size:
        budget.release_with(table, held.size)
    return table
