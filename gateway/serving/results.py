"""Rows of a statement out of DuckDB, within limits: of one result, and of all that wait in this process for their readers.

DuckDB ──batches──► [RESULT_BYTES_MAX, HELD_BYTES_MAX] ──► pa.Table ──slices──► client
                         └─ 54000, 53200                       └─ freed: counted no more
"""

from __future__ import annotations

import threading
import weakref

import duckdb
import pyarrow as pa

from gateway.serving import mirror
from lake.errors import OutOfMemory, ProgramLimitExceeded

BATCH_ROWS = 16_384  # between two looks at the limits
COUNTED_BYTES_MIN = 1 << 20  # smaller results are not counted: there are many, and each lives for a moment
RESULT_BYTES_MAX = 2 << 30  # of one statement
HELD_BYTES_MAX = 4 << 30  # of all: as much again as DuckDB may take
HINT = "Ask for less at once, with LIMIT or by ranges of a key."


class Held:
    """Bytes of results that clients have not taken yet. Safe from many threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.bytes = 0
        self._lock = threading.Lock()

    def add(self, size: int) -> None:
        """Raises 53200 if that is too much."""
        with self._lock:
            if self.bytes + size > self.most:
                raise OutOfMemory(
                    "out of memory", detail=f"Results that wait for their readers hold {self.bytes} bytes of {self.most}.", hint=HINT
                )
            self.bytes += size

    def remove(self, size: int) -> None:
        with self._lock:
            self.bytes -= size


HELD = Held(HELD_BYTES_MAX)

# An error in the midst of a stream comes through Arrow, with DuckDB's words alone.
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


def fetched(result: duckdb.DuckDBPyConnection, schema: pa.Schema) -> pa.Table:
    """All rows of what was executed. Raises 54000 and 53200 as soon as they are too many, with the rest not computed."""
    reader = result.to_arrow_reader(BATCH_ROWS)
    batches: list[pa.RecordBatch] = []
    size = counted = 0
    try:
        for batch in reader:
            batches.append(batch)
            size += batch.nbytes
            if size > RESULT_BYTES_MAX:
                raise ProgramLimitExceeded(f"a result may have at most {RESULT_BYTES_MAX} bytes", hint=HINT)
            if size >= COUNTED_BYTES_MIN:
                HELD.add(size - counted)
                counted = size
    except BaseException as error:
        HELD.remove(counted)
        raise _duckdbs(error) from error
    table = mirror.conform(pa.Table.from_batches(batches, reader.schema), schema)
    if counted:
        weakref.finalize(table, HELD.remove, counted)
    return table
